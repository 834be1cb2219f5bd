"""What the documents name is there: the tests of the guide to failures, and the commands that people are told to type."""

import glob
import os
import re
import subprocess
import unittest

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


class DocsTest(unittest.TestCase):
    def test_every_promise_has_the_test_that_it_names(self):
        named = 0
        for line in read("docs", "faults.md").splitlines():
            for part in re.split(r"; ", line.rpartition("|")[0].rpartition("|")[2]):
                file, _, tests = part.strip().partition(": ")
                if not file.endswith("_test"):
                    continue
                source = read("tests", "e2e", file + ".py")
                for test in re.findall(r"test_\w+", tests):
                    self.assertIn("    def %s(" % test, source, file)
                    named += 1
        self.assertGreater(named, 25)

    def test_every_command_that_is_told_exists_with_its_flags(self):
        checked = 0
        known = {}
        for path in [os.path.join(ROOT, "README.md"), *glob.glob(os.path.join(ROOT, "docs", "*.md")),
                     *glob.glob(os.path.join(ROOT, "examples", "*", "README.md"))]:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for block in re.findall(r"```(?:sh|console)\n(.*?)```", text, re.S):
                for line in block.replace("\\\n", " ").splitlines():
                    match = re.match(r"(?:\$ )?(?:\S*/)?trainyard ((?:[a-z][a-z-]*(?: |$))+)(.*)", line)
                    if not match:
                        continue
                    words = match.group(1).split()
                    command = next((words[:size] for size in (2, 1) if self.help(known, words[:size]) and len(words) >= size), None)
                    self.assertIsNotNone(command, "%s: %s" % (path, line))
                    help_text = self.help(known, command)
                    told = line.partition(" -- ")[0].partition(" # ")[0].partition("    #")[0]
                    for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", told):
                        self.assertIn(flag, help_text, "%s: %s" % (path, line))
                    checked += 1
        self.assertGreater(checked, 40)

    @staticmethod
    def help(known, words):
        """The help of a command; "" if there is none of that name."""
        key = " ".join(words)
        if key not in known:
            done = subprocess.run([cases.TRAINYARD, *words, "--help"], capture_output=True, text=True, check=False, timeout=30)
            own = done.returncode == 0 and "Usage: trainyard %s" % key in done.stdout
            known[key] = done.stdout if own else ""
        return known[key]


if __name__ == "__main__":
    cases.main()
