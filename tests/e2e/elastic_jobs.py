"""What the tests of elastic jobs share: a cluster, records and models to train, and what the files that they leave say."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import cases
import graph_jobs
import processes
from cluster import environment, eventually
from graph_jobs import JobOver, load_package

# Each record is another unit vector, and the gradient of a minibatch is the mean of its records: with a rate of 1 the
# weight of a record falls by 1 / minibatch whenever it is used. What was learnt is a count of every record's uses. With
# more units each of them counts, so that the weights are large enough to be cut.
COUNTING_MODEL = """
import trainyard as ty

def net(job):
    count, units = int(job.params["records"]), int(job.params.get("units", 1))
    net = ty.Net("counting")
    (x,) = net.read(sources=job.training_data, format="csv", batch_size=job.minibatch, fields=[ty.Field("x", [count])])
    loss = net.mean(net.fc(x, units, weight=ty.Param(name="w", init=ty.Constant(0.0)), bias=False))
    net.output(loss)
    net.minimize(loss, ty.Sgd(rate=float(job.params.get("rate", units))))
    return net
"""


def write_unit_vectors(path, count):
    with open(path, "w") as file:
        for i in range(count):
            file.write(",".join("1" if k == i else "0" for k in range(count)) + "\n")


def write_digits(folder, name, count, seed):
    """Images of ten kinds that are easy to tell apart, and their labels, as MNIST has them."""
    np = graph_jobs.np
    os.makedirs(folder, exist_ok=True)
    labels = np.random.default_rng(seed).integers(0, 10, count).astype(np.uint8)
    patterns = np.random.default_rng(0).integers(0, 256, (10, 784))
    noise = np.random.default_rng(seed + 1).integers(-60, 60, (count, 784))
    images = np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8)
    paths = [os.path.join(folder, name + "-images"), os.path.join(folder, name + "-labels")]
    with open(paths[0], "wb") as file:
        file.write(struct.pack(">IIII", 0x803, count, 28, 28) + images.tobytes())
    with open(paths[1], "wb") as file:
        file.write(struct.pack(">II", 0x801, count) + labels.tobytes())
    return paths


def read_tensor(path):
    np = graph_jobs.np
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"TYTENSOR", data[:8]
    _, kind, rank = struct.unpack_from("<III", data, 8)
    dims = struct.unpack_from("<%dQ" % rank, data, 20)
    return np.frombuffer(data, {1: np.float32, 2: np.int64}[kind], int(np.prod(dims)), 20 + 8 * rank).reshape(dims)


class ElasticCase(unittest.TestCase):
    """All tests of a class share a cluster, and use names of their own."""

    flags = ("--capacity", "cpu=8,memory=16Gi")
    job = None  # the one started last
    times = 1  # see longer_if_over

    @classmethod
    def setUpClass(cls):
        if graph_jobs.ty is None:
            raise unittest.SkipTest("SKIPPED: this build has no Python package")
        cls.folder = tempfile.mkdtemp(prefix="trainyard-elastic.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = cases.Cluster(cases.TRAINYARD, *cls.flags)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def command(self, verb, *flags):
        return [cases.TRAINYARD, verb, "--kubeconfig", self.cluster.kubeconfig, *map(str, flags)]

    def run_job(self, verb, *flags, seconds=300, cwd=None):
        return subprocess.run(self.command(verb, *flags), capture_output=True, text=True, env=environment(),
                              timeout=seconds, check=False, cwd=cwd)

    def run_here(self, *arguments):
        """A command that needs no cluster."""
        return subprocess.run([cases.TRAINYARD, *map(str, arguments)], capture_output=True, text=True, env=environment(),
                              timeout=300, check=False)

    def complete(self, verb, *flags, **kwargs):
        """Runs it, and fails with all that it said unless it is complete."""
        done = self.run_job(verb, *flags, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def start_job(self, verb, *flags):
        job = subprocess.Popen(self.command(verb, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment())
        self.addCleanup(job.kill)
        self.job = job
        return job

    def check_job_runs(self):
        """Raises JobOver when the job started last is complete, and fails when it has failed."""
        if self.job is not None and self.job.poll() is not None:
            out, err = self.job.communicate()
            raise (AssertionError if self.job.returncode else JobOver)(out + err)

    def delete_pod(self, pod):
        done = self.cluster.kubectl("delete", "pod", pod, "--wait=false", check=False)
        if done.returncode != 0:
            eventually(lambda: self.job.poll() is not None, "the job to be over, as %s is gone: %s" % (pod, done.stderr))
            self.check_job_runs()

    def progress(self, name):
        """What the master reports, and the number of restarts, which the operator counts."""
        done = self.cluster.kubectl("get", "aitj", name, "-o", "jsonpath={.status}", check=False)
        status = json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}
        return {**status["progress"], "restarts": status["restartTotal"]} if "progress" in status else None

    def replaced(self, name):
        """{pod: cause} of those that are gone, as the job's history has them."""
        done = self.cluster.kubectl("get", "configmap", name + ".aitrainingjob.history", "-o", "json", check=False)
        history = json.loads(done.stdout)["data"] if done.returncode == 0 else {}
        return {pod["pod"]: pod["cause"] for pod in map(json.loads, history.values())}

    def await_progress(self, name, condition, what):
        def looks():
            over = self.job is not None and self.job.poll() is not None
            progress = self.progress(name)
            if progress and condition(progress):
                return progress
            if over:
                self.check_job_runs()
            return None
        return eventually(looks, what)

    def pids(self, job, word):
        """{pod: pid} of the pods of a job that run `trainyard WORD`; of the master and the agent that keeps it, the master."""
        found = {}
        for pid, env in sorted(self.cluster.processes().items()):
            pod = env.get(b"TRAINYARD_POD_NAME", b"").decode()
            if word in processes.arguments(pid) and pod.startswith(job + "-"):
                found[pod] = pid
        return found

    def pid(self, job, word, pod):
        """That of one pod, once it runs."""
        def looks():
            self.check_job_runs()
            return self.pids(job, word).get(pod)
        return eventually(looks, "a process in pod " + pod)


class CountingCase(ElasticCase):
    """Jobs that count the uses of each record."""

    records = 128

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.path.join(cls.folder, "vectors.csv")
        write_unit_vectors(cls.data, cls.records)
        cls.model = os.path.join(cls.folder, "counting.py")
        with open(cls.model, "w") as file:
            file.write(COUNTING_MODEL)

    def counting(self, name, epochs, *flags):
        return ["--model", self.model, "--param", "records=%d" % self.records, "--training-data", self.data, "--name", name,
                "--minibatch", 4, "--minibatches-per-task", 4, "--epochs", epochs, "--output", self.path(name), *flags]

    def assert_each_record_used(self, name, epochs):
        weights = read_tensor(self.path(name, "w.tensor")).reshape(-1)
        self.assertEqual(set(weights.tolist()), {-epochs / 4})
        self.assertEqual(len(weights) % self.records, 0)


def main():
    graph_jobs.main()
