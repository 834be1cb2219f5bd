"""Elastic jobs that lose the node of their master.

usage: elastic_nodes_test.py TRAINYARD [unittest arguments]
"""

import os
import signal

import elastic_jobs
from cluster import eventually
from elastic_jobs import CountingCase
from graph_jobs import JobOver, longer_if_over


class Nodes(CountingCase):
    flags = ("--nodes", "3", "--node-grace", "2s", "--capacity", "cpu=8,memory=16Gi")

    def node_of(self, pod):
        return self.cluster.get("pod", pod)["spec"]["nodeName"]

    def lose_the_master(self, name, verb):
        """Its node is lost by `trainyard node VERB` amid the training; the node and what `trainyard train` printed."""
        epochs = 600 * self.times
        job = self.start_job("train", *self.counting(name, epochs), "--checkpoint-steps", 50, "--keep")
        self.await_progress(name, lambda p: p["version"] > 200 and p["workers"] == 2, "training to begin")
        node = self.node_of(name + "-master-0")
        done = self.cluster.run("node", verb, node)
        self.assertEqual(done.returncode, 0, done.stderr)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assert_each_record_used(name, epochs)
        if self.node_of(name + "-master-0") == node:  # the master that was cut off trained on to the end
            raise JobOver(err)
        return node, err

    def check(self, name, node, err):
        self.assertIn("master-0 is restarted: %s-master-0 was lost with %s" % (name, node), err)
        self.assertIn("goes on from a checkpoint", self.cluster.kubectl("logs", name + "-master-0").stdout)

    @longer_if_over
    def test_goes_on_when_the_node_of_the_master_is_killed(self):
        name = "killed%d" % self.times
        node, err = self.lose_the_master(name, "kill")
        self.addCleanup(self.cluster.run, "node", "start", node)
        self.check(name, node, err)

    @longer_if_over
    def test_goes_on_when_the_node_of_the_master_is_cut_off(self):
        name = "cut-off%d" % self.times
        node, err = self.lose_the_master(name, "stop")
        self.addCleanup(self.cluster.run, "node", "start", node)
        self.check(name, node, err)
        eventually(lambda: not self.cluster.processes(name + "-master-0"), "the master that was cut off to end")

    def test_replaces_a_worker_that_runs_and_does_not_answer(self):
        """Its node and its pod are well; only the master sees that it is gone."""
        job = self.start_job("train", *self.counting("silent", 1000000), "--keep")
        self.await_progress("silent", lambda p: p["workers"] == 2, "training to begin")
        uids = [self.cluster.get("pod", "silent-worker-%d" % index)["metadata"]["uid"] for index in (0, 1)]
        os.kill(self.pid("silent", "worker", "silent-worker-0"), signal.SIGSTOP)
        self.await_progress("silent", lambda p: p["workers"] == 1, "its stream to break")
        eventually(lambda: "silent-worker-0" in self.replaced("silent"), "its pod to be replaced")
        self.await_progress("silent", lambda p: p["workers"] == 2, "another to train")
        self.assertIn("asks for another pod", self.cluster.kubectl("logs", "silent-master-0").stdout)
        again = [self.cluster.get("pod", "silent-worker-%d" % index)["metadata"]["uid"] for index in (0, 1)]
        self.assertNotEqual(again[0], uids[0])
        self.assertEqual(again[1], uids[1], "the other one answers")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=300)


if __name__ == "__main__":
    elastic_jobs.main()
