"""Several nodes on one machine: how they fail and come back, and the commands around the cluster.

usage: nodes_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest
import uuid

import cases
import processes
from cases import ClusterCase, eventually
from cluster import Cluster, environment

MARK = "TRAINYARD_TEST_MARK"


def sleeper(name, mark, **spec):
    container = {"name": "main", "image": "none", "command": ["sleep", "1000"], "env": [{"name": MARK, "value": mark}]}
    container.update(spec.pop("container", {}))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}}


class Nodes(ClusterCase):
    flags = ("--nodes", "3", "--capacity", "cpu=4,memory=8Gi,nvidia.com/gpu=2", "--node-grace", "2s")

    def conditions(self, node):
        return {c["type"]: c["status"] for c in self.cluster.get("node", node)["status"].get("conditions", [])}

    def is_ready(self, node):
        return self.conditions(node).get("Ready") == "True"

    def pod(self, name):
        return self.cluster.get("pod", name, "-n", self.namespace)

    def run_on(self, node, name, seconds):
        """A pod on that node, that stands its failure for so long; its mark."""
        mark = str(uuid.uuid4())
        tolerations = [{"key": "node.kubernetes.io/" + key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
                       for key in ("not-ready", "unreachable")]
        self.cluster.apply(sleeper(name, mark, nodeSelector={"kubernetes.io/hostname": node}, tolerations=tolerations),
                           "-n", self.namespace)
        eventually(lambda: self.pod(name)["status"]["phase"] == "Running", "pod %s to run" % name)
        return mark

    def test_have_what_was_asked_for(self):
        eventually(lambda: all(self.is_ready("node-%d" % n) for n in (1, 2, 3)), "three nodes")
        for node in self.cluster.get("nodes")["items"]:
            self.assertEqual({k: node["status"]["allocatable"][k] for k in ("cpu", "memory", "nvidia.com/gpu")},
                             {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"})

    def test_that_are_killed_lose_their_pods(self):
        mark = self.run_on("node-2", "on-killed", 1)
        self.assertEqual(len(processes.with_mark(MARK, mark)), 1)
        self.assertEqual(self.cluster.run("node", "kill", "node-2").returncode, 0)
        eventually(lambda: not processes.with_mark(MARK, mark), "the process to die")
        eventually(lambda: not self.is_ready("node-2"), "the node to be not ready")
        eventually(lambda: "deletionTimestamp" in self.pod("on-killed")["metadata"], "the pod to be evicted")
        self.assertEqual(self.cluster.run("node", "start", "node-2").returncode, 0)
        eventually(lambda: self.is_ready("node-2"), "the node to be back")
        eventually(lambda: self.cluster.kubectl("get", "pod", "on-killed", "-n", self.namespace, check=False).returncode != 0,
                   "the pod to go")

    def test_that_are_stopped_keep_their_processes(self):
        mark = self.run_on("node-3", "on-stopped", 600)
        before = set(processes.with_mark(MARK, mark))
        self.assertEqual(self.cluster.run("node", "stop", "node-3").returncode, 0)
        eventually(lambda: not self.is_ready("node-3"), "the node to be not ready")
        self.assertEqual(set(processes.with_mark(MARK, mark)), before)
        self.assertEqual(self.cluster.run("node", "start", "node-3").returncode, 0)
        eventually(lambda: self.is_ready("node-3"), "the node to be back")
        eventually(lambda: {c["type"]: c["status"] for c in self.pod("on-stopped")["status"]["conditions"]}["Ready"] == "True",
                   "the pod to be ready again")
        self.assertEqual(set(processes.with_mark(MARK, mark)), before)

    def test_that_are_cordoned_take_no_pods(self):
        self.assertEqual(self.cluster.run("node", "cordon", "node-1").returncode, 0)
        self.cluster.apply(sleeper("cordoned", "none", nodeSelector={"kubernetes.io/hostname": "node-1"}), "-n", self.namespace)
        told = eventually(lambda: [c for c in self.pod("cordoned")["status"].get("conditions", []) if c["type"] == "PodScheduled"],
                          "the pod to be told")
        self.assertIn("node-1: node(s) were unschedulable", told[0]["message"])
        self.assertEqual(self.cluster.run("node", "uncordon", "node-1").returncode, 0)
        eventually(lambda: self.pod("cordoned")["status"]["phase"] == "Running", "the pod to run")

    def test_do_not_take_more_gpus_than_they_have(self):
        self.cluster.apply(sleeper("greedy", "none", container={"resources": {"limits": {"nvidia.com/gpu": "3"}}}),
                           "-n", self.namespace)
        told = eventually(lambda: [c for c in self.pod("greedy")["status"].get("conditions", []) if c["type"] == "PodScheduled"],
                          "the pod to be told")
        for node in ("node-1", "node-2", "node-3"):
            self.assertIn(node, told[0]["message"])
        self.assertIn("Insufficient nvidia.com/gpu", told[0]["message"])

    def test_that_do_not_exist_are_named(self):
        done = self.cluster.run("node", "kill", "node-9")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.assertIn("node-9", done.stderr)


class Commands(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(cases.TRAINYARD, "--nodes", "2")
        self.addCleanup(self.cluster.remove)

    def fails(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_status_tells(self):
        self.fails(self.cluster.run("status"), 1, "no cluster is running", "trainyard up")
        self.cluster.start()
        done = self.cluster.run("status", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["pid"], self.cluster.process.pid)

    def test_one_home_has_one_cluster(self):
        self.cluster.start()
        self.fails(self.cluster.run("up"), 1, str(self.cluster.process.pid))

    def test_bad_flags(self):
        for flags, part in ((("--nodes", "0"), "--nodes"), (("--capacity", "cpu"), "cpu"), (("--capacity", "cpu=-1"), "negative"),
                            (("--capacity", "gpu=1"), "nvidia.com/gpu"), (("--capacity", "cpu=1,cpu=2"), "twice"),
                            (("--node-grace", "0s"), "--node-grace"), (("--port", "70000"), "--port"),
                            (("--ephemeral", "--cluster-store", "memory:"), "--ephemeral")):
            self.fails(self.cluster.run("up", *flags), 2, part)

    def test_fewer_nodes_than_before(self):
        self.cluster.start()
        eventually(lambda: len(self.cluster.get("nodes")["items"]) == 2, "two nodes")
        mark = str(uuid.uuid4())
        self.cluster.apply(sleeper("left", mark, nodeSelector={"kubernetes.io/hostname": "node-2"}))
        eventually(lambda: processes.with_mark(MARK, mark), "the pod to run")
        self.cluster.kill()
        self.cluster.flags = ("--nodes", "1")
        self.cluster.start()
        self.assertEqual([n["metadata"]["name"] for n in self.cluster.get("nodes")["items"]], ["node-1"])
        eventually(lambda: not processes.with_mark(MARK, mark), "what ran on the other node to end")

    def test_down_leaves_nothing_behind(self):
        mark = str(uuid.uuid4())
        self.cluster.start()
        self.cluster.apply(sleeper("runs", mark))
        eventually(lambda: processes.with_mark(MARK, mark), "the pod to run")
        self.assertEqual(self.cluster.down().returncode, 0)
        self.assertEqual(processes.with_mark(MARK, mark), {})
        self.assertEqual(self.cluster.process.wait(), 0)


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: only root can become another user")
class OrdinaryUser(unittest.TestCase):
    def test_runs_pods(self):
        nobody = pwd.getpwnam("nobody")
        folder = tempfile.mkdtemp(prefix="trainyard-e2e.")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        binary = shutil.copy(cases.TRAINYARD, folder)
        home = os.path.join(folder, "home")
        os.mkdir(home, 0o700)
        os.chmod(folder, 0o755)
        os.chown(home, nobody.pw_uid, nobody.pw_gid)

        def run(*args, **kwargs):
            return subprocess.run(args, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], cwd=home, text=True,
                                  env=environment(HOME=home, KUBECONFIG=home + "/kubeconfig"), capture_output=True, timeout=300,
                                  check=False, **kwargs)
        self.addCleanup(run, binary, "down", "--home", home)
        up = run(binary, "up", "--detach", "--home", home)
        self.assertEqual(up.returncode, 0, up.stderr)
        pod = json.dumps(sleeper("mine", "none", container={"command": ["sh", "-c", "id -u; echo $HOSTNAME"]}, restartPolicy="Never"))
        done = run("kubectl", "apply", "-f", "-", input=pod)
        self.assertEqual(done.returncode, 0, done.stderr)
        eventually(lambda: run("kubectl", "get", "pod", "mine", "-o", "jsonpath={.status.phase}").stdout == "Succeeded",
                   "the pod to end")
        self.assertEqual(run("kubectl", "logs", "mine").stdout, "%d\nmine\n" % nobody.pw_uid)
        down = run(binary, "down", "--home", home)
        self.assertEqual(down.returncode, 0, down.stderr)


if __name__ == "__main__":
    cases.main()
