"""What the documents name is there: the tests of the guide to failures, and the commands that people are told to type."""

import glob
import os
import re
import subprocess
import unittest

import yaml

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def documents():
    """Every text for people, by its path from the root."""
    found = [path for pattern in ("*.md", "docs/**/*.md", "examples/*/README.md")
             for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)]
    return sorted(os.path.relpath(path, ROOT) for path in found)


def slug(title):
    """The name of a heading within its page, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


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
        for path in documents():
            for block in re.findall(r"```(?:sh|console)\n(.*?)```", read(path), re.S):
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

    def test_the_reference_is_what_the_definitions_say(self):
        done = subprocess.run([os.path.join(ROOT, "scripts", "reference"), "--check"], capture_output=True, text=True, check=False,
                              timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_metric_is_told_and_no_other(self):
        there = set(re.findall(r'"(trainyard_[a-z_]+)"', read("src", "operator", "metrics.cc")))
        told = set(re.findall(r"trainyard_[a-z_]+", read("docs", "operations.md")))
        self.assertEqual({re.sub("_(bucket|sum|count)$", "", name) for name in told}, there)

    def test_alerts_are_rules_that_prometheus_reads(self):
        blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", read("docs", "operations.md"), re.S)]
        rules = [rule for block in blocks for group in block.get("groups", []) for rule in group["rules"]]
        self.assertGreater(len(rules), 5)
        for rule in rules:
            self.assertLessEqual(set(rule), {"alert", "expr", "for", "labels", "annotations"}, rule)
            self.assertRegex(rule["alert"], r"^Trainyard[A-Za-z]+$")
            self.assertIn("trainyard_", rule["expr"])
            self.assertEqual(rule["expr"].count("("), rule["expr"].count(")"), rule["expr"])
            self.assertTrue(rule["annotations"]["summary"])

    def test_every_link_leads_somewhere(self):
        checked = 0
        for path in documents():
            text = re.sub(r"```.*?```", "", read(path), flags=re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if target.startswith(("http:", "https:")):
                    continue
                name, _, anchor = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                self.assertTrue(os.path.exists(os.path.join(ROOT, there)), "%s: %s" % (path, target))
                if anchor:
                    self.assertIn(anchor, [slug(title) for title in re.findall(r"^#+ (.*)", read(there), re.M)], "%s: %s" % (path, target))
                checked += 1
        self.assertGreater(checked, 60)

    @staticmethod
    def help(known, words):
        """The help of a command; "" if there is none of that name."""
        key = " ".join(words)
        if key not in known:
            done = subprocess.run([cases.TRAINYARD, *words, "--help"], capture_output=True, text=True, check=False, timeout=300)
            own = done.returncode == 0 and "Usage: trainyard %s" % key in done.stdout
            known[key] = done.stdout if own else ""
        return known[key]


if __name__ == "__main__":
    cases.main()
