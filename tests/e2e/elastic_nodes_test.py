"""Elastic jobs that lose the node of their master.

usage: elastic_nodes_test.py TRAINYARD [unittest arguments]
"""

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


if __name__ == "__main__":
    elastic_jobs.main()
