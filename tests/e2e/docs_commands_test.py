"""Every command in the documents is run, or another test runs it, or it is said why it can only be checked here.

usage: docs_commands_test.py TRAINYARD [unittest arguments]
The default tier leaves out documents that are marked as long. TRAINYARD_TEST_DOCUMENTS, names with commas, has only these
run. doc_commands.py says how a document is run.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import processes
from cluster import environment
from doc_commands import Document, Shell, parse
from docs_test import documents, read
from real_server import assets

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AT_A_TIME = 2
COPIED = ("bench", "deploy", "docs", "examples", "scripts")
# The tree that is tested is built: what documents build with must find it so, and change nothing.
CMAKE = "#!/bin/sh\nexit 0\n"


class Scratch:
    """What a reader has: a clone that is built, a home, `trainyard` on the PATH, and nothing else of ours."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-docs.")
        self.clone, home = self.path("clone"), self.path("home")
        build = os.path.dirname(os.path.dirname(cases.TRAINYARD))
        for folder in (home, self.path("tmp"), self.path("bin"), os.path.join(self.clone, "build")):
            os.makedirs(folder)
        for name in COPIED:
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.clone, name), ignore=shutil.ignore_patterns("__pycache__"))
        os.symlink(build, os.path.join(self.clone, "build", "release"))
        with open(self.path("bin", "cmake"), "w", encoding="ascii") as file:
            file.write(CMAKE)
        os.chmod(self.path("bin", "cmake"), 0o755)
        tests = "/usr/bin/python3 -B " + os.path.join(ROOT, "tests", "e2e", "")
        self.env = environment(HOME=home, DIGITS=tests + "doc_digits.py", MANIFESTS=tests + "doc_manifests.py", REPOSITORY=ROOT, TMPDIR=self.path("tmp"), PYTHONDONTWRITEBYTECODE="1",
                               PATH="%s:%s:/usr/bin:/bin:%s" % (self.path("bin"), os.path.dirname(cases.TRAINYARD), os.environ["PATH"]))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def remove(self):
        """Ends what is left; whose clusters there are is known by their folders."""
        for folder, _, names in os.walk(self.folder):
            if "kubeconfig" in names:
                subprocess.run([cases.TRAINYARD, "down", "--home", folder], capture_output=True, env=self.env, timeout=300, check=False)
        end = time.monotonic() + 5
        while (left := processes.with_argument(self.folder)) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            Shell.signal(pid, 9)
        shutil.rmtree(self.folder, ignore_errors=True)
        return left


def real_environment():
    """Where a real API server is, if there is one to start: documents delete what they have deployed, and more, so no cluster will do."""
    return {"KUBECONFIG": cases.shared_real_server().kubeconfig} if assets() else None


def takes_long(name):
    return any(order.verb == "long" for order in parse(read(name))[1])


def size(name):
    """How long it will take, roughly: the longest go first."""
    blocks, _ = parse(read(name))
    return takes_long(name), sum(len(block.commands()) for block in blocks if block.language in ("console", "sh"))


def run(name, real):
    scratch = Scratch()
    try:
        shell = Shell(scratch.clone, scratch.env)
        try:
            document = Document(ROOT, name, shell, real).run()
        finally:
            shell.end()
    finally:
        left = scratch.remove()
    if left:
        document.failures.append("%s left processes behind: %s" % (name, left))
    return document


class DocsCommandsTest(unittest.TestCase):
    def setUp(self):
        if not os.path.samefile(cases.TRAINYARD, os.path.join(ROOT, "build/release/bin/trainyard")):
            self.skipTest("SKIPPED: documents are about build/release, and another build is tested")

    def test_every_command_does_what_is_said(self):
        wanted = os.environ.get("TRAINYARD_TEST_DOCUMENTS")
        names = [name for name in documents() if (name in wanted.split(",") if wanted else cases.LONG or not takes_long(name))]
        real = real_environment()
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            done = list(pool.map(lambda name: run(name, real), sorted(names, key=size, reverse=True)))
        total = {}
        for document in done:
            for what, count in document.counts.items():
                total[what] = total.get(what, 0) + count
            if any(document.counts.values()):
                print("%-36s %s; %d lines of output compared; %d s" % (
                    document.name, ", ".join("%d %s" % (count, what) for what, count in document.counts.items() if count),
                    document.compared, document.seconds), file=sys.stderr)
        notes = [note for document in done for note in document.notes]
        print("%d documents: %s" % (len(done), ", ".join("%d %s" % (count, what) for what, count in total.items())), file=sys.stderr)
        for note in notes:
            print("checked only, not run: " + note, file=sys.stderr)
        failures = [failure for document in done for failure in document.failures]
        self.assertEqual(len(failures), 0, "\n\n".join(["", *failures]))
        if not wanted:
            self.assertGreater(total["run"], 100)
            self.assertGreater(total["run"], 4 * total["checked only"])


if __name__ == "__main__":
    cases.main()
