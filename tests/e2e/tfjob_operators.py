"""The operator as a process of its own, which tests start, look into and kill."""

import http.client
import os
import re
import signal
import subprocess
import time

import processes
from cases import eventually
from cluster import environment
from tfjobs import ROOT, JobCase, role, tfjob

ANYWHERE = "127.0.0.1:0"


def listening_ports(pid):
    """The TCP ports that a process listens at."""
    folder, inodes, ports = "/proc/%d/fd" % pid, set(), []
    for fd in os.listdir(folder):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(os.path.join(folder, fd)))
        except FileNotFoundError:
            continue  # it has just been closed
        inodes |= {found[1]} if found else set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in processes.read(table).decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.append(int(fields[1].rpartition(":")[2], 16))
    return ports


class OperatorProcess:
    def __init__(self, cluster, *flags):
        self.path = os.path.join(cluster.home, "operator-out-%s" % os.urandom(4).hex())
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen(
                [cluster.trainyard, "operator", "--kubeconfig", cluster.kubeconfig, "--metrics-bind-address", ANYWHERE,
                 "--health-probe-bind-address", ANYWHERE, *flags], stdout=out, stderr=subprocess.STDOUT, env=environment())

    def output(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """As a cluster ends it; (its exit code, the seconds that it took)."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=300)
        return code, time.monotonic() - begin

    def ask(self, path, method="GET"):
        """(code, body) of a page, from whichever of its ports has it."""
        if self.process.poll() is not None:
            raise AssertionError("the operator ended with %d:\n%s" % (self.process.returncode, self.output()))
        answer = (None, "")
        for port in listening_ports(self.process.pid):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                connection.request(method, path)
                got = connection.getresponse()
                answer = (got.status, got.read().decode())
            except (OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()
            if answer[0] != 404:
                break
        return answer

    def metrics(self):
        """{name with labels: value}."""
        code, text = self.ask("/metrics")
        if code != 200:
            return {}
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line and line[0] != "#"}

    def leads(self):
        return self.metrics().get("trainyard_leading") == 1

    def await_ready(self):
        eventually(lambda: self.ask("/readyz")[0] == 200, "the operator to be ready")
        return self


class OperatorCase(JobCase):
    """On a cluster without an operator, which tests then start."""

    flags = ("--no-operator",)

    @classmethod
    def prepare(cls):
        cls.cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds"))
        cls.cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", "crd/tfjobs.kubeflow.org", "crd/pytorchjobs.kubeflow.org",
                            "crd/aitrainingjobs.elasticdeeplearning.ai")

    def operator(self, *flags):
        made = OperatorProcess(self.cluster, *flags)
        self.addCleanup(made.kill)
        return made

    def pods_made(self, *names):
        """How many pods these jobs have been given so far."""
        return sum(1 for what, pod in list(self.pods.events)
                   if what == "ADDED" and pod["metadata"].get("labels", {}).get("tf_job_name") in names)

    def several(self, prefix, count, replicas):
        """Jobs of which each has one worker that fails once; their names."""
        names = ["%s-%d" % (prefix, i) for i in range(count)]
        for name in names:
            once = 'case $HOSTNAME-$TRAINYARD_ATTEMPT in *-worker-1-?????-0) exit 137;; esac; '
            script = self.traced(name, once + self.behind(prefix))
            self.submit(tfjob(name, {"Worker": role(script, replicas, "ExitCode")}, successPolicy="AllWorkers", backoffLimit=1))
        return names

    def all_run(self, names, replicas):
        def run():
            return all(self.running(name) == ["worker-%d" % i for i in range(replicas)] and self.state(name) == "Running"
                       and self.job(name)["status"]["restartCount"] == 1 for name in names)
        eventually(run, "all pods of %s to run, and those that fail to run again" % ", ".join(names))

    def ended_well(self, names, replicas):
        """That all have succeeded, with one restart each, and that no pod was there twice or started for nothing."""
        for name in names:
            status = self.await_state(name, "Succeeded")["status"]
            self.assertEqual((status["restartCount"], status["restarts"]["Worker"]["attempts"]), (1, "1:1"))
            self.assertEqual(status["tfReplicaStatuses"]["Worker"]["completedIndexes"], "0-%d" % (replicas - 1))
            pod = "%s-worker-%%d-%s" % (name, self.job(name)["metadata"]["uid"][:5])
            self.assertEqual(self.starts(name), {pod % i: 2 if i == 1 else 1 for i in range(replicas)})
