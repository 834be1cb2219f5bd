"""Images that have the agent as their entry point, by buildah where it works.

usage: image_wrap_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import cases
from cluster import environment

STORAGE = """[storage]
driver = "vfs"
graphroot = "%(folder)s/images"
runroot = "%(folder)s/run"
"""


class ImageWrap(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-image.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with open(self.path("storage.conf"), "w") as file:
            file.write(STORAGE % {"folder": self.folder})
        self.env = environment(CONTAINERS_STORAGE_CONF=self.path("storage.conf"), BUILDAH_ISOLATION="chroot")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_here(self, *words, **kwargs):
        return subprocess.run(list(words), capture_output=True, text=True, timeout=300, check=False, **{"env": self.env, **kwargs})

    def wrap(self, *words, **kwargs):
        return self.run_here(cases.TRAINYARD, "image", "wrap", *words, **kwargs)

    def test_has_the_agent_as_its_entry_point(self):
        if shutil.which("buildah") is None:
            self.skipTest("SKIPPED: there is no buildah")
        with open(self.path("exec.py"), "w") as file:
            file.write("print('hello')\n")
        with open(self.path("Containerfile"), "w") as file:
            file.write("FROM scratch\nCOPY exec.py /app/exec.py\nWORKDIR /app\n")
        built = self.run_here("buildah", "build", "--tag", "train:1", "--file", self.path("Containerfile"), self.folder)
        if built.returncode != 0:
            self.skipTest("SKIPPED: buildah cannot build here: " + built.stderr.strip().splitlines()[-1])
        done = self.wrap("localhost/train:1", "--tool", "buildah")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "localhost/train:1-agent\n")
        config = json.loads(self.run_here("buildah", "inspect", "--type", "image", "localhost/train:1-agent").stdout)["OCIv1"]["config"]
        self.assertEqual(config["Entrypoint"], ["/trainyard-agent", "--script=exec.py"])
        self.assertEqual(config["WorkingDir"], "/app")
        container = self.run_here("buildah", "from", "localhost/train:1-agent").stdout.strip()
        mounted = self.run_here("buildah", "mount", container).stdout.strip()
        version = self.run_here(os.path.join(mounted, "trainyard-agent"), "--version")
        self.assertEqual(version.returncode, 0, version.stderr)
        self.assertTrue(os.path.exists(os.path.join(mounted, "app/exec.py")))

    def test_says_what_is_missing(self):
        done = self.wrap("image", env=environment(PATH="/nowhere"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("neither buildah nor docker is here", done.stderr)
        if shutil.which("buildah"):
            done = self.wrap("localhost/nobody/has:this", "--tool", "buildah")
            self.assertEqual(done.returncode, 1)
            self.assertIn("buildah build exited", done.stderr)


if __name__ == "__main__":
    cases.main()
