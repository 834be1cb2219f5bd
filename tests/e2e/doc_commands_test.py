"""What runs the documents finds what is wrong with them.

usage: doc_commands_test.py TRAINYARD [unittest arguments]
"""

import os
import shutil
import tempfile
import unittest

import cases
from cluster import environment
from doc_commands import Document, Shell, parse


class DocCommands(unittest.TestCase):
    def run_document(self, text, real=None):
        folder = tempfile.mkdtemp(prefix="trainyard-doc.")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with open(os.path.join(folder, "a.md"), "w", encoding="utf-8") as file:
            file.write(text)
        shell = Shell(folder, environment())
        try:
            return Document(folder, "a.md", shell, real).run()
        finally:
            shell.end()

    def assert_fails(self, text, why):
        document = self.run_document(text)
        self.assertEqual(len(document.failures), 1, document.failures)
        self.assertIn(why, document.failures[0])

    def assert_passes(self, text, **counts):
        document = self.run_document(text)
        self.assertEqual(document.failures, [])
        for what, count in counts.items():
            self.assertEqual(document.counts[what.replace("_", " ")], count, what)
        return document

    def test_share_one_shell_and_are_compared(self):
        document = self.assert_passes("```console\n$ export A=7; mkdir b; cd b\n$ echo $A \\\n    ${PWD##*/}\n3 b\n```\n", run=2)
        self.assertEqual(document.compared, 1)

    def test_that_fail_or_print_something_else_are_told(self):
        self.assert_fails("```sh\nfalse\n```\n", "exited 1")
        self.assert_fails("```console\n$ echo one two\none three\n```\n", "did not print what is shown")
        self.assert_fails("```sh\nif\n```\n", "the shell ended")

    def test_that_shall_fail_must(self):
        self.assert_passes("<!-- run: fails no such -->\n```sh\necho no such thing; false\n```\n", run=1)
        self.assert_fails("<!-- run: fails -->\n```sh\ntrue\n```\n", "was to fail")
        self.assert_fails("<!-- run: fails no such -->\n```sh\nfalse\n```\n", "was to fail")

    def test_without_an_end_are_ended(self):
        self.assert_passes("<!-- run: until here -->\n```sh\necho here; exec 3>&1; sleep 1000\n```\n", run=1)
        self.assert_fails("<!-- run: until ready -->\n```sh\necho there\n```\n", "without 'ready'")
        document = self.assert_passes("<!-- run: serves up -->\n```sh\necho up; sleep 1000 &\n```\n```sh\ntrue\n```\n", run=2)
        self.assertEqual(document.counts["run"], 2)

    def test_are_changed_only_as_is_said(self):
        self.assert_passes("<!-- run: let NODE = here -->\n<!-- run: with there -->\n```console\n$ echo NODE   # a host\nhere there\n```\n", run=1)
        self.assert_passes("<!-- run file: ports 2379 -->\n```sh\n[ 2379 -ne $((2378 + 1)) ]\n```\n", run=1)

    def test_of_other_tests_must_be_there(self):
        with_test = "<!-- run: by ./a.md: %s -->\n```sh\nscripts/quickstart --keep\n```\n"
        self.assert_passes(with_test % "scripts/quickstart", by_another_test=1, run=0)
        self.assert_fails(with_test % "scripts/tour", "is no part of the command")
        self.assert_fails("<!-- run: by nobody_test.py: scripts/tour -->\n```sh\nscripts/tour\n```\n", "there is no nobody_test.py")

    def test_for_a_real_cluster_are_checked_or_run(self):
        text = "<!-- run: kubernetes: echo instead -->\n```console\n$ echo at $KUBECONFIG\nat there\n```\n"
        document = self.assert_passes(text, checked_only=1, run=0)
        self.assertEqual(len(document.notes), 1)
        document = self.run_document(text, {"KUBECONFIG": "there"})
        self.assertEqual((document.failures, document.counts["run"]), ([], 1))
        self.assert_fails("<!-- run: check: false -->\n```sh\npodman build\n```\n", "in its place")

    def test_that_name_no_command_are_refused(self):
        self.assert_fails('<!-- run "nothing": fails -->\n```sh\ntrue\n```\n', "no command has 'nothing'")
        self.assertRaises(AssertionError, parse, "<!-- run: fails -->\nwords\n")

    def test_other_blocks_must_be_whole(self):
        self.assert_passes("```yaml\na: {b: 1}\n```\n```python\nx = 1\n```\n", compiled_or_parsed=2)
        self.assert_fails("```yaml\na: {b: 1\n```\n", "expected ',' or '}'")
        self.assert_fails("```python\nx = = 1\n```\n", "invalid syntax")


if __name__ == "__main__":
    cases.main()
