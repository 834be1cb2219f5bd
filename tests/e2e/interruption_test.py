"""Ctrl-C at a job that is followed: whoever sits at a terminal is asked what is to become of it."""

import subprocess
import sys

import cases
from cluster import environment, eventually
from elastic_jobs import COUNTING_MODEL, ElasticCase, load_package, write_unit_vectors
from terminals import Terminal

ASKED = r"(task|job) \S+ still runs\. e: end it, l: leave it running, c: continue to follow it\? "


class InterruptionTest(ElasticCase):
    def at_terminal(self, *words):
        terminal = Terminal([cases.TRAINYARD, *map(str, words)], environment(TRAINYARD_HOME=self.cluster.home))
        self.addCleanup(terminal.kill)
        return terminal

    def state(self, job):
        done = subprocess.run([cases.TRAINYARD, "get", job, "--home", self.cluster.home], capture_output=True, text=True,
                              env=environment(), check=False, timeout=300)
        return done.stdout.splitlines()[1].split()[1] if done.returncode == 0 else None

    def run_at_terminal(self, name):
        terminal = self.at_terminal("run", "--name", name, "--home", self.cluster.home, "--", "sh", "-c",
                                    "echo begun; sleep 1000")
        terminal.await_text(r"begun\r\n")
        return terminal

    def test_continues_and_then_leaves_a_run_to_itself(self):
        terminal = self.run_at_terminal("left")
        terminal.press("\x03")
        terminal.await_text(ASKED)
        terminal.press("xc")  # the first is no answer
        terminal.await_text("continue\r\n")
        self.assertEqual(self.state("task/left"), "Running")
        terminal.press("\x03")
        terminal.await_text(ASKED)
        terminal.press("l")
        code, shown = terminal.end()
        self.assertEqual(code, 0, shown)
        self.assertIn("trainyard launch status left", shown)
        self.assertEqual(self.state("task/left"), "Running")

    def test_ends_a_run(self):
        terminal = self.run_at_terminal("ended")
        terminal.press("\x03")
        terminal.await_text(ASKED)
        terminal.press("e")
        code, shown = terminal.end()
        self.assertEqual(code, 1, shown)
        self.assertIn("cancelling task ended", shown)
        self.assertEqual(self.state("task/ended"), "Cancelled")

    def test_ends_a_run_with_the_second_ctrl_c(self):
        terminal = self.run_at_terminal("twice")
        terminal.press("\x03")
        terminal.await_text(ASKED)
        terminal.press("\x03")
        code, shown = terminal.end()
        self.assertEqual(code, 1, shown)
        self.assertEqual(self.state("task/twice"), "Cancelled")

    def test_nothing_is_printed_over_the_question(self):
        terminal = self.at_terminal("run", "--name", "busy", "--home", self.cluster.home, "--", "sh", "-c",
                                    "while :; do echo line; sleep 0.01; done")
        terminal.await_text(r"line\r\n")
        terminal.press("\x03")
        terminal.await_text(ASKED)
        self.assertRaises(AssertionError, terminal.await_text, "line", seconds=1)
        terminal.press("e")
        self.assertEqual(terminal.end()[0], 1)

    def test_leaves_training_to_itself_or_ends_it(self):
        model, data = self.write("counting.py", COUNTING_MODEL), self.path("data.csv")
        write_unit_vectors(data, 64)
        for name, key, code in (("go-on", "l", 0), ("no-more", "e", 1)):
            with self.subTest(name):
                terminal = self.at_terminal(
                    "train", "--kubeconfig", self.cluster.kubeconfig, "--name", name, "--model", model, "--training-data", data,
                    "--param", "records=64", "--minibatch", "1", "--epochs", "100000", "--workers", "1")
                terminal.await_text(r"epoch \d")
                terminal.press("\x03")
                terminal.await_text(ASKED)
                terminal.press(key)
                ended, shown = terminal.end()
                self.assertEqual(ended, code, shown)
                if key == "l":
                    self.assertIn("trainyard delete elastic/go-on", shown)
                    self.assertEqual(self.state("elastic/go-on"), "Training")
                    self.cluster.kubectl("delete", "aitj", "go-on")
                else:
                    self.assertIn("its checkpoints stay", shown)
                    eventually(lambda: self.state("elastic/no-more") is None, "the job to be gone")


if __name__ == "__main__":
    load_package(sys.argv[1])
    cases.main()
