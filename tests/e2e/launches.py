"""What the tests of the launcher share: a cluster, tasks on it, and the processes of their scripts."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import cases
from cluster import environment, eventually


class LaunchCase(unittest.TestCase):
    """All tests of a class share a cluster, and use names of their own."""

    flags = ()

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
        done = self.cluster.run("launch", "status", name, "-o", "json")
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
