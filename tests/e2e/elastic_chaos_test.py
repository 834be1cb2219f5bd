"""A master, workers and pservers as plain processes, killed at random, again and again: each record is used exactly once
in each epoch, by the count that the model itself keeps of them.

usage: elastic_chaos_test.py TRAINYARD [unittest arguments]
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import cases
import elastic_jobs
import graph_jobs
import processes
from cluster import environment, eventually
from elastic_jobs import COUNTING_MODEL, read_tensor, write_unit_vectors
from graph_jobs import JobOver, longer_if_over

RECORDS = 256
MINIBATCH = 4
SCALE = 10 if cases.LONG else 1
KILLS = 40 * SCALE
WORKERS = 3


class Chaos(unittest.TestCase):
    def setUp(self):
        if graph_jobs.ty is None:
            self.skipTest("SKIPPED: this build has no Python package")
        self.folder = tempfile.mkdtemp(prefix="trainyard-chaos.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        write_unit_vectors(self.path("vectors.csv"), RECORDS)
        with open(self.path("counting.py"), "w") as file:
            file.write(COUNTING_MODEL)
        self.children = []
        self.addCleanup(self.end_all)
        self.port = graph_jobs.free_port()

    def path(self, name):
        return os.path.join(self.folder, name)

    def end_all(self):
        for child in self.children:
            child.kill()
            child.wait()

    def job(self, *flags):
        """What `trainyard train` would submit, as its --dry-run says."""
        import json
        done = subprocess.run([cases.TRAINYARD, "train", "--dry-run", "--name", "chaos", "--model", self.path("counting.py"),
                               "--param", "records=%d" % RECORDS, "--training-data", self.path("vectors.csv"), "--minibatch",
                               str(MINIBATCH), "--minibatches-per-task", "4", "--output", self.path("output"), *flags],
                              capture_output=True, text=True, env=environment(), check=True, timeout=300)
        with open(self.path("job.json"), "w") as file:
            file.write(json.loads(done.stdout.splitlines()[0])["data"]["job.json"])

    def spawn(self, name, *arguments):
        with open(self.path(name), "ab") as log:
            child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", cases.TRAINYARD, *arguments, "--log-level", "info"],
                                     stdout=log, stderr=log, env=environment(TRAINYARD_CHAOS=self.folder))
        self.children.append(child)
        return child

    def worker(self, index):
        return self.spawn("worker-%d" % index, "worker", "--master", "127.0.0.1:%d" % self.port, "--worker-index", str(index),
                          "--pod-name", "worker-%d" % index)

    def pserver(self, index):
        return self.spawn("pserver-%d" % index, "pserver", "--master", "127.0.0.1:%d" % self.port, "--pserver-index", str(index),
                          "--pod-name", "pserver-%d" % index)

    def master_itself(self):
        """Not the agent that keeps it."""
        found = [pid for pid in processes.with_mark("TRAINYARD_CHAOS", self.folder)
                 if processes.arguments(pid)[1:2] == ["master"]]
        return found[0] if found else None

    def run_with_kills(self, kills, of_master, pservers=0, of_pservers=0.0):
        """Kills processes at random, and starts workers and pservers again; how often each was."""
        keeper = self.spawn("master", "agent", "keep", "--", cases.TRAINYARD, "master", "--job-file", self.path("job.json"),
                            "--state-dir", self.path("state"), "--no-pods", "--listen", "127.0.0.1:%d" % self.port)
        workers = [self.worker(index) for index in range(WORKERS)]
        servers = [self.pserver(index) for index in range(pservers)]
        source = random.Random(7)
        killed = {"worker": 0, "master": 0, "pserver": 0}
        deadline = time.monotonic() + 300 * SCALE
        while keeper.poll() is None:
            self.assertLess(time.monotonic(), deadline, "it does not end: %s" % self.log("master")[-2000:])
            time.sleep(source.uniform(0.01, 0.12))
            for children, begin in ((workers, self.worker), (servers, self.pserver)):
                for index, child in enumerate(children):
                    if child.poll() is not None and keeper.poll() is None:
                        children[index] = begin(index)
            if sum(killed.values()) >= kills:
                continue
            chance = source.random()
            if chance >= 1 - of_pservers:
                source.choice(servers).kill()
                killed["pserver"] += 1
                time.sleep(0.4)  # likewise, before a step
            elif chance < of_master:
                pid = self.master_itself()
                if pid:
                    os.kill(pid, signal.SIGKILL)
                    killed["master"] += 1
                    time.sleep(0.4)  # one that dies again and again before it is ready gives up
            else:
                source.choice(workers).kill()
                killed["worker"] += 1
        self.assertEqual(keeper.returncode, 0, self.log("master")[-3000:])
        if sum(killed.values()) < kills:
            raise JobOver(killed)
        return killed

    def log(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def assert_each_record_used(self, epochs):
        weights = read_tensor(self.path("output/w.tensor")).reshape(-1).tolist()
        wrong = {record: weight * -MINIBATCH for record, weight in enumerate(weights) if weight != -epochs / MINIBATCH}
        self.assertEqual(wrong, {}, "records that were not used %d times" % epochs)

    @longer_if_over
    def test_uses_each_record_once_in_each_epoch_whoever_is_killed(self):
        epochs = 10 * KILLS * self.times
        self.job("--epochs", str(epochs), "--checkpoint-steps", "200")
        killed = self.run_with_kills(KILLS, of_master=0.2)
        self.assertGreater(killed["master"], 3)
        self.assert_each_record_used(epochs)
        self.assertIn("version=%d" % (epochs * RECORDS // MINIBATCH), self.log("master").splitlines()[-1])

    @longer_if_over
    def test_uses_each_record_once_where_pservers_have_the_model_and_are_killed_too(self):
        epochs = 90 * SCALE * self.times
        self.job("--epochs", str(epochs), "--checkpoint-steps", "100", "--pservers", "2", "--param", "units=64")
        killed = self.run_with_kills(24 * SCALE, of_master=0.1, pservers=2, of_pservers=0.5)
        self.assertGreater(killed["pserver"], 3)
        self.assert_each_record_used(epochs)

    @longer_if_over
    def test_uses_each_record_once_where_gradients_are_used_as_they_come(self):
        epochs = 300 * SCALE * self.times
        self.job("--epochs", str(epochs), "--checkpoint-steps", "200", "--async")
        self.run_with_kills(16 * SCALE, of_master=0.1)
        self.assert_each_record_used(epochs)


if __name__ == "__main__":
    elastic_jobs.main()
