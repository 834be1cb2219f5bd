"""A real kube-apiserver with nodes whose pods are processes of this machine, and our operator as a process beside it."""

import glob
import os
import subprocess

from cluster import environment
from real_server import RealServer

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATES = {"kill": "killed", "stop": "stopped", "start": None}  # of nodes, by the command that brings them about


class RealCluster(RealServer):
    """Takes the flags of `trainyard up` that tests use."""

    runs_pods = True

    def __init__(self, trainyard, process_nodes, *flags):
        super().__init__()
        self.trainyard, self.process_nodes = trainyard, process_nodes
        self.nodes = self.flag(flags, "--nodes", "1")
        self.grace = self.flag(flags, "--node-grace", "10s").rstrip("s")
        self.capacity = self.flag(flags, "--capacity", "")
        self.with_operator = "--no-operator" not in flags
        self.helpers = []

    @staticmethod
    def flag(flags, name, otherwise):
        return flags[flags.index(name) + 1] if name in flags else otherwise

    def start(self):
        super().start()
        if self.helpers:  # the server alone was killed
            return self
        self.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds"))
        self.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/tfjobs.kubeflow.org", "crd/pytorchjobs.kubeflow.org",
                     "crd/aitrainingjobs.elasticdeeplearning.ai")
        self.helpers.append(self.spawn(self.process_nodes, self.kubeconfig, self.home, self.nodes, self.grace, self.capacity))
        if self.with_operator:
            self.helpers.append(self.spawn(self.trainyard, "operator", "--kubeconfig", self.kubeconfig, "--node-grace", "0s"))
        self.wait(lambda: self.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == int(self.nodes), "the nodes")
        return self

    def run(self, *args, **kwargs):
        """A trainyard command; of a node, what the command would do."""
        if args[0] != "node":
            return subprocess.run([self.trainyard, *args], capture_output=True, text=True,
                                  env=environment(KUBECONFIG=self.kubeconfig), timeout=60, check=False, **kwargs)
        verb, node = args[1:]
        if verb in STATES:
            state = STATES[verb]
            return self.kubectl("annotate", "--overwrite", "node", node,
                                "trainyard.dev/node-state" + ("=" + state if state else "-"), check=False)
        return self.kubectl(verb, node, check=False)

    def logs(self, pod, container=None):
        """What the last run of its container printed; a real server asks kubelets, and ours have no port."""
        folder = os.path.join(self.home, "pods", pod["metadata"]["uid"], "logs", container or pod["spec"]["containers"][0]["name"])
        runs = sorted(glob.glob(os.path.join(folder, "*.log")), key=lambda path: int(os.path.basename(path).split(".")[0]))
        text = ""
        for line in open(runs[-1], encoding="utf-8") if runs else ():
            _, _, tag, rest = line.split(" ", 3)  # time, stream, whether it is a whole line
            text += rest if tag == "F" else rest.rstrip("\n")
        return text

    def remove(self):
        for helper in reversed(self.helpers):
            helper.terminate()
            try:
                helper.wait(timeout=20)
            except subprocess.TimeoutExpired:
                helper.kill()
                helper.wait()
        super().remove()
