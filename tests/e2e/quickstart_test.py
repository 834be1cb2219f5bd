"""scripts/quickstart, as a new user runs it: on the tree that is being tested, which is built already."""

import os
import re
import subprocess
import tempfile
import unittest

import cases
import processes
from cluster import environment

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class QuickstartTest(unittest.TestCase):
    def setUp(self):
        if not os.path.samefile(cases.TRAINYARD, os.path.join(ROOT, "build/release/bin/trainyard")):
            self.skipTest("SKIPPED: it builds and runs build/release, and another build is tested")
        cache = tempfile.TemporaryDirectory(prefix="trainyard-cache.")
        self.addCleanup(cache.cleanup)
        folder = tempfile.TemporaryDirectory(prefix="trainyard-quick.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = environment(XDG_CACHE_HOME=cache.name, TMPDIR=folder.name)

    def quickstart(self, *flags):
        return subprocess.run([os.path.join(ROOT, "scripts/quickstart"), *flags], capture_output=True, text=True, env=self.env,
                              timeout=500, check=False)

    def test_trains_though_a_worker_is_killed_and_leaves_nothing(self):
        done = self.quickstart()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        out = done.stdout
        self.assertIn("worker 1 is killed", out)
        accuracy = float(re.search(r"it gets a share of ([0-9.]+) right", out).group(1))
        self.assertGreater(accuracy, 0.95 if "NOT MNIST" in out else 0.97)
        self.assertIn("It works", out)
        self.assertEqual(len([line for line in out.partition("Next:\n")[2].splitlines() if line.startswith("    ")]), 3)
        self.assertEqual(processes.with_argument(self.folder), {})
        self.assertEqual(os.listdir(self.folder), [])

    def test_builds_what_the_tour_and_the_benchmarks_build_with_the_tests_left_out(self):
        def commands(tests):
            subprocess.run(["cmake", "--preset", "release", "-B", self.folder, "-DTRAINYARD_TESTS=" + tests], cwd=ROOT, env=self.env,
                           capture_output=True, check=True)
            listed = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "trainyard", "trainyard_python"], env=self.env,
                                    capture_output=True, text=True, check=True)
            return sorted(listed.stdout.splitlines())
        self.assertEqual(commands("OFF"), commands("ON"), "a change of this setting would build the program again")
        for script in ("tour", "quickstart"):
            with open(os.path.join(ROOT, "scripts", script), encoding="utf-8") as file:
                self.assertIn("\ncmake --build --preset release --target trainyard trainyard_python\n", file.read())

    def test_refuses_what_it_does_not_know(self):
        for flags in (("--kep",), ("--keep", "more")):
            done = self.quickstart(*flags)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)


if __name__ == "__main__":
    cases.main()
