"""What the tests of the launcher share: a cluster, tasks on it, and the processes of their scripts."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import urllib.request

import cases
import graph_jobs
from cluster import environment, eventually


# Says who it is and which attempt, in a file of its own, and then does what WHAT says.
SCRIPT = """
import os, sys, time
name = "%s-%s" % (os.environ["TRAINYARD_MEMBER"], os.environ["TRAINYARD_ATTEMPT"])
with open(os.path.join(os.environ["RUNS"], name), "a") as file:
    file.write("run\\n")
print("hello from", name, flush=True)
what = os.environ.get("WHAT", "")
if what == "fail":
    sys.exit(3)
while what == "wait" and not os.path.exists(os.path.join(os.environ["RUNS"], "go")):
    time.sleep(0.01)
print("bye from", name, flush=True)
"""


class LaunchCase(unittest.TestCase):
    """All tests of a class share a cluster, and use names of their own."""

    flags = ()
    master = None  # the URL of a launcher beside the cluster

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="trainyard-launch.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        # Scripts are run by the first Python of the PATH: by the one that runs the tests, and without files beside them.
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        variables = unittest.mock.patch.dict(os.environ, PATH=path, PYTHONDONTWRITEBYTECODE="1")
        variables.start()
        cls.addClassCleanup(variables.stop)
        cls.cluster = cases.Cluster(cases.TRAINYARD, *cls.flags)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def command(self, *flags):
        return [cases.TRAINYARD, "launch", "--home", self.cluster.home, *map(str, flags)]

    def launch(self, *flags, seconds=300, cwd=None):
        return subprocess.run(self.command(*flags), capture_output=True, text=True, env=environment(), timeout=seconds,
                              check=False, cwd=cwd)

    def complete(self, *flags, **kwargs):
        """Runs it, and fails with all that it said unless the task succeeds."""
        done = self.launch(*flags, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def start(self, *flags):
        job = subprocess.Popen(self.command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment())
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        return job

    def finish(self, job, seconds=300):
        """What a started one said in the end; fails with it unless the task succeeds."""
        out, err = job.communicate(timeout=seconds)
        self.assertEqual(job.returncode, 0, out + err)
        return out, err

    def task(self, name):
        """What `launch status` says; None: it says that there is no such task, or no launcher yet."""
        beside = ("--master", self.master) if self.master else ()
        done = self.cluster.run("launch", "status", name, "-o", "json", *beside)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_task(self, name, condition, what):
        def looks():
            task = self.task(name)
            return task if task and condition(task) else None
        return eventually(looks, what)

    def logs(self, name, *flags):
        return self.cluster.run("launch", "logs", name, *flags).stdout

    def await_logs(self, name, text):
        eventually(lambda: text in self.logs(name), "'%s' in the logs of %s" % (text, name))

    def scripts(self, task):
        """{pid: member} of all processes that scripts of the task have."""
        return {pid: env[b"TRAINYARD_MEMBER"].decode() for pid, env in self.cluster.processes(TRAINYARD_TASK=task).items()
                if b"TRAINYARD_MEMBER" in env}

    def pids(self, task, member):
        return sorted(pid for pid, name in self.scripts(task).items() if name == member)

    def pid(self, task, member):
        """The one process of a script that has no more."""
        (pid,) = eventually(lambda: self.pids(task, member), "%s of %s to run" % (member, task))
        return pid


class ScriptCase(LaunchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = os.path.join(cls.folder, "image")
        os.makedirs(cls.image)
        with open(os.path.join(cls.image, "exec.py"), "w") as file:
            file.write(SCRIPT)

    def script(self, name, *flags, what=""):
        """What launches the script, with a folder for what it has run."""
        runs = os.path.join(self.folder, "runs-" + name)
        os.makedirs(runs, exist_ok=True)
        return ["--task", name, "--image", self.image, "--env", "RUNS=" + runs, "--env", "WHAT=" + what, *map(str, flags)]

    def runs(self, name):
        """{"worker-0-1": how often} of what has been run."""
        folder = os.path.join(self.folder, "runs-" + name)
        found = {}
        for run in os.listdir(folder):
            if run != "go":
                with open(os.path.join(folder, run)) as file:
                    found[run] = len(file.readlines())
        return found

    def go(self, name):
        with open(os.path.join(self.folder, "runs-" + name, "go"), "w"):
            pass


def launcher_beside(case):
    """Starts a launcher that no node takes along, for the cluster of a class; its URL."""
    url = "http://127.0.0.1:%d" % graph_jobs.free_port()
    launcher = subprocess.Popen([cases.TRAINYARD, "launcher", "--kubeconfig", case.cluster.kubeconfig, "--listen",
                                 url.removeprefix("http://")], env=environment(), stderr=subprocess.DEVNULL)
    case.addClassCleanup(launcher.wait)
    case.addClassCleanup(launcher.kill)

    def answers():
        try:
            return urllib.request.urlopen(url + "/healthz", timeout=300).status == 200
        except OSError:
            return False
    eventually(answers, "the launcher to answer")
    return url
