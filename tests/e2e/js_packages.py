"""Packages of npm for tests, installed into the build folder, once, with the scripts of js/ beside them."""

import fcntl
import os
import shutil
import subprocess
import unittest

import cases
from cluster import environment

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "js")


def install(package):
    """The folder where scripts find the package. SkipTest: it cannot be had."""
    for command in ("node", "npm"):
        if not shutil.which(command):
            raise unittest.SkipTest("SKIPPED: there is no %s" % command)
    name = package.strip("@").replace("/", "-").partition("@")[0]
    folder = os.path.join(os.path.dirname(cases.TRAINYARD), "..", "js", name)
    os.makedirs(folder, exist_ok=True)
    stamp = os.path.join(folder, "installed")
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(stamp) or open(stamp, encoding="ascii").read() != package:
            done = subprocess.run(["npm", "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund",
                                   "--prefix", folder, package],
                                  capture_output=True, text=True, env=environment(), timeout=300, check=False)
            if done.returncode != 0:
                raise unittest.SkipTest("SKIPPED: npm cannot install %s: %s" % (package, done.stderr.strip()[-500:]))
            with open(stamp, "w", encoding="ascii") as file:
                file.write(package)
        # Beside the packages, which a script finds in a folder above its own.
        for script in os.listdir(SCRIPTS):
            shutil.copy(os.path.join(SCRIPTS, script), folder)
    return folder
