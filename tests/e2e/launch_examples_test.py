"""The scripts of examples/launch as a user launches them, also when some of them are killed.

usage: launch_examples_test.py TRAINYARD [unittest arguments]
"""

import importlib.util
import json
import os
import random
import re
import signal
import socketserver
import struct
import subprocess
import sys
import threading
import unittest

import cases
from cluster import environment, eventually
from graph_jobs import free_port
from launches import LaunchCase

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "launch")
CHECK = os.path.join(EXAMPLES, "check_tf_config")
SERVERS = os.path.join(EXAMPLES, "parameter_server")
ALLREDUCE = os.path.join(EXAMPLES, "allreduce")
HAS_NUMPY = importlib.util.find_spec("numpy")
HAS_TORCH = importlib.util.find_spec("torch")


class TfConfig(LaunchCase):
    def right(self, text):
        return sorted(re.findall(r"^\[(\S+)\] TF_CONFIG is right: (.*)$", text, re.MULTILINE))

    def test_is_right_for_all_reduce(self):
        done = self.complete("--task", "workers", "--worker-num", 4, "--image", CHECK)
        self.assertEqual(self.right(done.stdout), [("worker-%d" % i, "worker %d of 4" % i) for i in range(4)])

    def test_is_right_for_a_parameter_server_with_chief_and_evaluator_and_those_who_wait_are_ended(self):
        hold = self.write("hold", "")
        job = self.start("--task", "servers", "--strategy", "ParameterServer", "--ps-num", 2, "--worker-num", 3, "--chief",
                         "--evaluator", "--image", CHECK, "--env", "HOLD=" + hold)
        expected = [("chief-0", "chief 0 of 1"), ("evaluator-0", "evaluator 0 of 1"), ("ps-0", "ps 0 of 2"),
                    ("ps-1", "ps 1 of 2"), *(("worker-%d" % i, "worker %d of 3" % i) for i in range(3))]
        eventually(lambda: len(self.right(self.logs("servers"))) >= len(expected) or job.poll() is not None, "all to be right")
        self.assertEqual(sorted(self.scripts("servers").values()), [member for member, _ in expected])
        os.remove(hold)
        out, _ = self.finish(job)
        self.assertEqual(self.right(out), expected)
        self.assertEqual(self.task("servers")["restarts"], 0)
        eventually(lambda: not self.scripts("servers"), "those who wait to be stopped")

    def test_that_is_wrong_fails_the_task_with_what_is_wrong(self):
        config = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}
        done = self.launch("--task", "wrong", "--image", CHECK, "--max-restarts", 0, "--env", "TF_CONFIG=" + json.dumps(config))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("[worker-0] TF_CONFIG is wrong: task: index must be below 1", done.stdout)
        self.assertIn("worker-0 exited 1", done.stderr)


class Told(socketserver.StreamRequestHandler):
    """Another member, that says what it was told to say."""

    def handle(self):
        self.rfile.readline()
        self.wfile.write(self.server.told.encode() + b"\n")


class TheCheck(unittest.TestCase):
    def problems(self, config, **variables):
        env = environment(TF_CONFIG=config if isinstance(config, str) else json.dumps(config), **variables)
        done = subprocess.run([sys.executable, os.path.join(CHECK, "exec.py")], capture_output=True, text=True, env=env,
                              timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        return done.stderr

    def test_says_what_is_wrong(self):
        first = {"type": "worker", "index": 0}
        for config, words in (
                ("", "is no JSON"),
                ("[]", "must be an object with cluster and task"),
                ({"task": first}, "cluster must be an object of roles"),
                ({"cluster": {"master": ["a:1"]}, "task": first}, "master is no role: there are chief, worker, ps, evaluator"),
                ({"cluster": {"worker": []}, "task": first}, "worker must be a list of addresses"),
                ({"cluster": {"chief": ["a:1", "b:1"]}, "task": first}, "there may be one chief, and are 2"),
                ({"cluster": {"evaluator": ["a:1", "b:1"]}, "task": first}, "there may be one evaluator, and are 2"),
                ({"cluster": {"worker": ["a"]}, "task": first}, "worker: a is not HOST:PORT"),
                ({"cluster": {"worker": ["a:1", "a:1"]}, "task": first}, "a:1 is there 2 times"),
                ({"cluster": {"worker": ["a:1"]}}, "task must be an object"),
                ({"cluster": {"ps": ["a:1"]}, "task": first}, "there is no worker in the cluster"),
                ({"cluster": {"worker": ["a:1"]}, "task": {"type": "master", "index": 0}}, "master is no role"),
                ({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}, "index must be below 1")):
            with self.subTest(config=config):
                self.assertIn(words, self.problems(config))

    def test_says_which_variable_does_not_fit(self):
        config = {"cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
        said = self.problems(config, RANK="0", WORLD_SIZE="2", NUM_WORKERS="3", MASTER_ADDR="c")
        self.assertIn("RANK must be 1, and is 0", said)
        self.assertIn("WORLD_SIZE must be 3, and is 2", said)
        self.assertEqual(said.count("\n"), 2, said)

    def test_asks_the_others_who_they_are_and_what_they_know(self):
        other = socketserver.TCPServer(("127.0.0.1", 0), Told)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        workers = ["127.0.0.1:%d" % port for port in (free_port(), other.server_address[1])]
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}}
        for told, words in (
                ({"cluster": {"worker": workers, "ps": ["c:1"]}, "task": {"type": "worker", "index": 1}},
                 "worker 1 knows another cluster: "),
                (config, workers[1] + " must be worker 1, and is worker 0")):
            with self.subTest(words=words):
                other.told = json.dumps(told)
                self.assertIn(words, self.problems(config, RANK="0", WORLD_SIZE="2", NUM_WORKERS="2", MASTER_ADDR="127.0.0.1"))


@unittest.skipUnless(HAS_NUMPY, "SKIPPED: there is no NumPy (python3-numpy)")
class ParameterServers(LaunchCase):
    flags_of_all = ("--strategy", "ParameterServer", "--ps-num", 2, "--worker-num", 2, "--image", SERVERS)

    def assert_learnt(self, out):
        self.assertLess(float(re.search(r"^\[worker-0\] loss ([0-9.]+)$", out, re.MULTILINE).group(1)), 0.005, out)

    def test_have_what_workers_learn(self):
        self.assert_learnt(self.complete("--task", "line", *self.flags_of_all).stdout)
        eventually(lambda: not self.scripts("line"), "servers to be stopped")

    def test_stay_when_a_worker_is_killed_and_comes_back_alone(self):
        job = self.start("--task", "loss", *self.flags_of_all, "--env", "STEPS=8000")
        self.await_logs("loss", "[worker-1] step 500:")
        before = {member: self.pid("loss", member) for member in ("ps-0", "ps-1", "worker-0", "worker-1")}
        os.kill(before["worker-1"], signal.SIGKILL)
        task = self.await_task("loss", lambda t: t["restarts"] == 1, "the loss to be seen")
        self.assertEqual([one["member"] for one in task["history"]], ["worker-1"])
        self.assertIn("was killed by signal 9 (SIGKILL)", task["history"][0]["cause"])
        eventually(lambda: self.pids("loss", "worker-1") not in ([], [before["worker-1"]]), "the worker to be back")
        after = {member: self.pid("loss", member) for member in before if member != "worker-1"}
        self.assertEqual(after, {member: pid for member, pid in before.items() if member != "worker-1"})
        out, _ = self.finish(job)
        self.assert_learnt(out)
        first, again = re.findall(r"^\[worker-1\] step 0: loss ([0-9.]+)$", out, re.MULTILINE)
        # A worker that begins late finds what the other has learnt.
        self.assertLess(float(again), max(float(first) / 100, 0.01), "it goes on with what the servers have")
        task = self.task("loss")
        self.assertEqual((task["phase"], task["restarts"], len(task["history"])), ("Succeeded", 1, 1))


@unittest.skipUnless(HAS_TORCH, "SKIPPED: there is no PyTorch (python3-torch)")
class AllReduce(LaunchCase):
    def write_digits(self, name, count, seed):
        """Ten kinds of images, each with another dark band, as MNIST's files have them."""
        noise = random.Random(seed)
        labels = bytes(noise.randrange(10) for _ in range(count))
        images = b"".join(noise.randbytes(784)[:56 * label] + bytes([255] * 112) + noise.randbytes(784)[56 * label + 112:]
                          for label in labels)
        for kind, header, data in (("images-idx3-ubyte", struct.pack(">IIII", 0x803, count, 28, 28), images),
                                   ("labels-idx1-ubyte", struct.pack(">II", 0x801, count), labels)):
            with open(self.path("digits", "%s-%s" % (name, kind)), "wb") as file:
                file.write(header + data)

    def assert_learnt(self, out):
        self.assertGreater(float(re.search(r"^\[worker-0\] accuracy ([0-9.]+)$", out, re.MULTILINE).group(1)), 0.9, out)

    def test_learns_the_digits_of_files(self):
        os.mkdir(self.path("digits"))
        self.write_digits("train", 3000, 1)
        self.write_digits("t10k", 500, 2)
        done = self.complete("--task", "files", "--worker-num", 2, "--image", ALLREDUCE, "--env", "DATA=" + self.path("digits"))
        self.assertIn("2 workers learn the digits of " + self.path("digits"), done.stdout)
        self.assertIn("a restart begins anew", done.stdout)
        self.assert_learnt(done.stdout)

    def test_goes_on_from_its_checkpoint_when_a_worker_is_killed(self):
        job = self.start("--task", "killed", "--worker-num", 2, "--image", ALLREDUCE, "--env", "EPOCHS=12", "--env",
                         "CHECKPOINT=" + self.path("killed.pt"))
        self.await_logs("killed", "epoch 2 of 12:")
        os.kill(self.pid("killed", "worker-1"), signal.SIGKILL)
        out, err = self.finish(job)
        task = self.task("killed")
        self.assertEqual((task["phase"], task["restarts"], task["attempt"]), ("Succeeded", 1, 2))
        self.assertEqual([one["member"] for one in task["history"]], ["worker-1"])
        self.assertIn("was killed by signal 9 (SIGKILL)", task["history"][0]["cause"])
        self.assertIn("worker-1 was killed by signal 9", err)
        self.assertIn("2 workers learn digits that are made up", out)
        epoch = int(re.search(r"goes on from the checkpoint: epoch (\d+)", out).group(1))
        self.assertGreater(epoch, 2)
        self.assertEqual(out.count("epoch 1 of 12: "), 1, "what was done is not done again")
        self.assert_learnt(out)

    def test_stops_at_once_when_it_is_cancelled(self):
        job = self.start("--task", "endless", "--worker-num", 2, "--image", ALLREDUCE, "--env", "EPOCHS=1000000",
                         "--grace", "1h")
        self.await_logs("endless", "epoch 1 of 1000000:")
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 1, out + err)
        self.assertIn("task endless was ended", err)
        self.assertEqual(self.scripts("endless"), {})


if __name__ == "__main__":
    cases.main()
