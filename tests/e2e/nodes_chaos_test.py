"""Nodes are killed under an elastic job, a launched task and a graph job at the same time, the node of the elastic job's
master too. All three end well, each record of the elastic job and of the graph job is used exactly once in each epoch, and the
scripts of the task are run once in each attempt.

usage: nodes_chaos_test.py TRAINYARD [unittest arguments]
"""

import os
import random
import time

import cases
import elastic_jobs
import graph_jobs
from cluster import eventually
from elastic_jobs import CountingCase
from graph_jobs import CountedRows, GraphJobCase, JobOver, longer_if_over
from launches import SCRIPT, ScriptCase, launcher_beside

NODES = 4
CHAOS = 180 if cases.LONG else 6  # seconds
SCALE = 15 if cases.LONG else 1


class NodesOfAllKinds(CountingCase):
    flags = ("--nodes", str(NODES), "--node-grace", "2s", "--capacity", "cpu=8,memory=16Gi")
    records = 64

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.launcher = launcher_beside(cls)
        cls.image = os.path.join(cls.folder, "image")
        os.makedirs(cls.image)
        with open(os.path.join(cls.image, "exec.py"), "w") as file:
            file.write(SCRIPT)
        cls.yard = graph_jobs.ty.Yard(kubeconfig=cls.cluster.kubeconfig, store="")

    def part(self, case):
        """What the tests of another kind can do, on this cluster."""
        other = case("id")
        other.cluster, other.folder, other.image, other.yard = self.cluster, self.folder, self.image, self.yard
        self.addCleanup(other.doCleanups)
        return other

    def node_of(self, pod):
        found = self.cluster.read("/api/v1/namespaces/default/pods/" + pod)
        return found and found["spec"].get("nodeName")

    def node(self, verb, name):
        done = self.cluster.run("node", verb, name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def kill_nodes(self, pods, is_over):
        """Of these pods first, then of any of them, until the time is up or a job is over; how many were killed."""
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        victims = []
        end = time.monotonic() + CHAOS
        while (time.monotonic() < end or len(victims) < len(pods)) and not is_over():
            victim = pods[len(victims)] if len(victims) < len(pods) else rng.choice(pods)
            node = eventually(lambda: is_over() or self.node_of(victim), "%s to have a node" % victim)
            if node is True:
                break
            self.node("kill", node)
            time.sleep(rng.uniform(0.5, 3.5))
            self.node("start", node)
            victims.append(victim)
        print("seed %d, killed the nodes of %s" % (seed, victims), flush=True)
        return len(victims)

    def assert_scripts_ran_once(self, scripts, name, task):
        runs = scripts.runs(name)
        self.assertEqual(set(runs.values()), {1}, "a script is run once in each attempt: %s" % runs)
        for member in task["members"]:
            self.assertIn("%s-%d" % (member["name"], member["attempt"]), runs)
        self.assertEqual(max(int(run.rpartition("-")[2]) for run in runs), task["attempt"])
        self.assertGreater(task["attempt"], 1, "its node was killed")

    @longer_if_over
    def test_that_are_killed_under_jobs_of_all_kinds_lose_and_repeat_nothing(self):
        graphs, scripts = self.part(GraphJobCase), self.part(ScriptCase)
        elastic, launched, graph = ("%s%d" % (kind, self.times) for kind in ("elastic", "launched", "graph"))
        epochs = 1500 * SCALE * self.times
        training = self.start_job("train", *self.counting(elastic, epochs), "--checkpoint-steps", 200, "--keep")
        script = scripts.start("--master", self.launcher, *scripts.script(
            launched, "--worker-num", 2, "--grace", "1s", "--max-restarts", 1000, what="wait"))
        rows = CountedRows(self.path("rows.csv"), 4000 * SCALE * self.times)
        program, error = rows.program()
        net = graphs.start(graph, program, passes=rows.passes, checkpoint_every=100)
        next(net.trainers.get(error))
        self.await_progress(elastic, lambda p: p["version"] > 200 and p["workers"] == 2, "training to begin")
        scripts.master = self.launcher
        eventually(lambda: scripts.runs(launched), "the scripts to run")

        def is_over():
            return training.poll() is not None or net.status().state in ("Complete", "Failed")
        pods = ["%s-master-0" % elastic, "%s-pserver-0" % graphs.object_of(graph)["metadata"]["name"], "%s-worker-1" % launched]
        if self.kill_nodes(pods, is_over) < len(pods):
            raise JobOver("before the nodes were killed")
        scripts.go(launched)
        out, err = training.communicate(timeout=300 * SCALE)
        self.assertEqual(training.returncode, 0, out + err)
        self.assertIn("goes on from a checkpoint", self.cluster.kubectl("logs", elastic + "-master-0").stdout)
        self.assert_each_record_used(elastic, epochs)
        scripts.finish(script)
        self.assert_scripts_ran_once(scripts, launched, scripts.task(launched))
        eventually(lambda: net.status().state in ("Complete", "Failed"), "the graph job to end", seconds=300 * SCALE)
        self.assertEqual(net.status().state, "Complete", net.status().reason)
        self.assertEqual(rows.wrong(graphs.variables(program, graphs.saved(net))), {})
        self.assertGreater(graphs.object_of(graph)["status"]["restartTotal"], 0)
        for name in (elastic, launched, graphs.object_of(graph)["metadata"]["name"]):
            eventually(lambda: self.cluster.get("aitj", name)["status"]["phase"] == "Succeed", "%s to be a success" % name)


if __name__ == "__main__":
    elastic_jobs.main()
