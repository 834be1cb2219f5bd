"""An embedded cluster for tests: started as a user starts it, ended with all that it runs."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

import processes
from wire import Wire

PATIENCE = 300  # seconds until what must come is taken for lost


def environment(**more):
    """This process's environment without what would change what is tested."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINYARD_", "KUBE"))}
    env.update(more)
    return env


def eventually(condition, what, seconds=PATIENCE):
    """The condition's first result that is true. A condition that takes long is asked less often, to leave the machine to others."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if now > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(max(0.02, now - begun))


class Cluster:
    runs_pods = True
    known_access = None  # read once for each start

    def __init__(self, trainyard, *flags, home=None):
        self.trainyard = trainyard
        self.flags = flags
        self.home = home or tempfile.mkdtemp(prefix="trainyard-e2e.")
        self.kubeconfig = os.path.join(self.home, "kubeconfig")
        self.process = None

    def start(self):
        self.known_access = None
        with open(os.path.join(self.home, "test-out"), "ab") as out:
            self.process = subprocess.Popen([self.trainyard, "up", "--home", self.home, *self.flags], stdout=out,
                                            stderr=subprocess.STDOUT, env=environment())
        self.wait(self.is_ready, "the cluster to be ready")
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError("trainyard up ended with %d:\n%s" % (self.process.returncode, self.output()))
        return os.path.exists(self.kubeconfig) and self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0

    def output(self):
        with open(os.path.join(self.home, "test-out")) as file:
            return file.read()

    def kill(self):
        """As the machine does when memory runs out: only the cluster's own process."""
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        return self.start()

    def access(self):
        """What the kubeconfig says: server, and as bytes ca, certificate, key; and token."""
        if self.known_access is not None:
            return self.known_access
        config = json.loads(self.kubectl("config", "view", "--raw", "-o", "json").stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.known_access = {"server": cluster["server"], "ca": base64.b64decode(cluster["certificate-authority-data"]),
                "certificate": base64.b64decode(user["client-certificate-data"]),
                "key": base64.b64decode(user["client-key-data"]), "token": user["token"]}
        return self.known_access

    def processes(self, pod=None, command=None, **marks):
        """{pid: environment} of processes in this cluster's pods: of one pod, of one trainyard command, or with marks in their environment."""
        if pod is not None:
            marks["TRAINYARD_POD_NAME"] = pod
        port = self.access()["server"].rpartition(":")[2]
        found = processes.with_marks(KUBERNETES_SERVICE_PORT=port, **marks)
        return {pid: env for pid, env in found.items() if command is None or processes.arguments(pid)[1:2] == [command]}

    def down(self):
        return subprocess.run([self.trainyard, "down", "--home", self.home], capture_output=True, text=True,
                              env=environment(), timeout=PATIENCE, check=False)

    def remove(self):
        self.down()
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, *args, **kwargs):
        """A trainyard command on this cluster."""
        return subprocess.run([self.trainyard, *args, "--home", self.home], capture_output=True, text=True,
                              env=environment(), timeout=PATIENCE, check=False, **kwargs)

    def kubectl_command(self, *args):
        return [os.environ.get("TRAINYARD_TEST_KUBECTL", "kubectl"), "--kubeconfig", self.kubeconfig,
                "--cache-dir", os.path.join(self.home, "kubectl-cache"), *args]

    def kubectl(self, *args, stdin=None, check=True, env=None):
        done = subprocess.run(self.kubectl_command(*args), input=stdin, capture_output=True, text=True,
                              env=environment(**(env or {})), timeout=PATIENCE, check=False)
        if check and done.returncode != 0:
            raise AssertionError("kubectl %s: %d\n%s%s" % (" ".join(args), done.returncode, done.stdout, done.stderr))
        return done

    def get(self, *args):
        return json.loads(self.kubectl("get", *args, "-o", "json").stdout)

    def apply(self, manifest, *flags):
        return self.kubectl("apply", "-f", "-", *flags, stdin=manifest if isinstance(manifest, str) else json.dumps(manifest))

    wait = staticmethod(eventually)

    def read(self, path):
        """An object or a list by its path, without kubectl: for conditions that are asked often. None: it is not there."""
        code, body = Wire(self).ask("GET", path)
        if code not in (200, 404):
            raise AssertionError("GET %s: %d %s" % (path, code, body))
        return json.loads(body) if code == 200 else None

    def phase(self, pod, namespace="default"):
        found = self.read("/api/v1/namespaces/%s/pods/%s" % (namespace, pod))
        return found and found["status"].get("phase")

    def wait_for_phase(self, pod, phase):
        self.wait(lambda: self.phase(pod) == phase, "pod %s to be %s" % (pod, phase))


def pod(name, *command, labels=None, **spec):
    """A pod that runs one command."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [{"name": "main", "image": "none", "command": list(command)}],
                     "terminationGracePeriodSeconds": 2, **spec}}


def sh(name, script, **spec):
    return pod(name, "/bin/sh", "-c", script, **spec)
