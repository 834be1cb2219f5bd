"""What the tests of graph jobs share: a cluster, the Python package of this build, programs to train, and the processes
that train them."""

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import cases
from cluster import environment, eventually

ty = None  # the package; None: this build has none
np = None


def load_package(trainyard):
    """The Python package beside the binary that is tested."""
    global ty, np
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(trainyard))), "python")
    sys.path.insert(0, folder)
    try:
        import numpy
        import trainyard as package
    except ImportError as error:
        print("SKIPPED: this build has no Python package (%s)" % error)
        return
    ty, np = package, numpy


class Etcd:
    """A real etcd, that can be stopped and go on with what it has."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-etcd.")
        self.client, self.peer = free_port(), free_port()
        self.process = None

    def start(self):
        client, peer = ("http://127.0.0.1:%d" % port for port in (self.client, self.peer))
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", os.path.join(self.folder, "data"), "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", "default=" + peer, "--unsafe-no-fsync"], stdout=log, stderr=log)
        eventually(self.answers, "etcd to listen")
        return self

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.client)) == 0

    @property
    def url(self):
        return "etcd://127.0.0.1:%d" % self.client

    def stop(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class JobOver(AssertionError):
    """The job was complete before the test had done to it what it wanted."""


def longer_if_over(test):
    """On a busy machine a job may be over too soon: tries the test again with longer jobs, of self.times as many passes."""
    @functools.wraps(test)
    def run(self):
        for self.times in (1, 4, 16):
            try:
                return test(self)
            except JobOver:
                self.doCleanups()
                self.setUp()
        raise AssertionError("the job is over too soon, however long it is")
    return run


class GraphJobCase(unittest.TestCase):
    """All tests of a class share a cluster and a store, and use names of their own."""

    flags = ()
    on_etcd = False

    @classmethod
    def setUpClass(cls):
        if ty is None:
            raise unittest.SkipTest("SKIPPED: this build has no Python package")
        cls.folder = tempfile.mkdtemp(prefix="trainyard-graph.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = cases.Cluster(cases.TRAINYARD, *cls.flags)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        store = ""
        if cls.on_etcd:
            cls.etcd = Etcd()
            cls.addClassCleanup(cls.etcd.remove)
            store = cls.etcd.start().url
        cls.store = store
        cls.yard = ty.Yard(kubeconfig=cls.cluster.kubeconfig, store=store)

    def start(self, name, program, *, trainers=2, pservers=2, passes=1, mode="sync", checkpoint_every=100, **options):
        """A job that runs; options are init_job's."""
        t_graphs, p_graphs = ty.dist_transpiler(program, trainers_num=trainers, trainer_pass_num=passes,
                                                pservers_num=pservers, mode=mode, min_block_elements=16)
        job = self.yard.init_job(name, checkpoint_every=checkpoint_every, **options)
        self.addCleanup(self.remove, name)
        job.add_workers(t_graphs)
        job.add_workers(p_graphs)
        job.pservers.start()
        job.trainers.start()
        return job

    def remove(self, name):
        if self.yard.find(name):
            self.yard.kill(name)

    def object_of(self, name):
        """The AITrainingJob of the job."""
        found = self.cluster.get("aitj", "-l", "trainyard.dev/graph-job=" + name)["items"]
        return found[0] if found else None

    def pid(self, name, graph):
        """The process that runs the graph, once there is one."""
        pod = "%s-%s" % (self.object_of(name)["metadata"]["name"], graph)

        def find():
            found = list(self.cluster.processes(pod, "graph-worker", HOSTNAME=pod))
            if not found and self.object_of(name)["status"].get("phase") == "Succeed":
                raise JobOver(name)
            return found and found[0]
        return eventually(find, "a process that runs " + graph)

    def kill(self, name, graph):
        """As a machine does that has no memory left."""
        pid = self.pid(name, graph)
        os.kill(pid, signal.SIGKILL)
        return pid

    def saved(self, job):
        """The variables of the job's newest checkpoint."""
        folder = tempfile.mkdtemp(dir=self.folder)
        job.save(folder)
        return folder

    def variables(self, program, folder):
        """What an executor reads in a folder, by name."""
        executor = ty.Executor()
        executor.start(program)
        executor.load(folder)
        return {name: executor.get(name) for name in executor.names()}


def write_line(path, records=2048, width=13):
    """Records of a linear function."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(records, width)).astype("float32")
    y = x @ rng.normal(size=width).astype("float32")
    np.savetxt(path, np.hstack([x, y[:, None]]), fmt="%.5f", delimiter=",")


def line_program(path, *, batch=32, width=13, hidden=64, optimizer=None, seed=7):
    """A net that learns it, and its loss."""
    net = ty.Net("line", seed=seed)
    x, y = net.read(sources=[path], format="csv", batch_size=batch, shuffle_seed=3,
                    fields=[ty.Field("x", [width]), ty.Field("y", [1])])
    loss = net.mean(net.square_error_cost(net.fc(net.fc(x, hidden, act="tanh"), 1), y))
    net.output(loss)
    net.minimize(loss, optimizer or ty.Adam(rate=0.01))
    return net.finish(), loss.name


class CountedRows:
    """Records of a linear function, and a program that counts how often each is used, beside learning it.

    Each record has a row of a table, and the gradient of a row is 1 whenever its record is used, or 1/2 when the step
    had two contributions. Adagrad sums up the squares, so the sum of a row shows how often it was used: once in each of
    two passes gives 1/4 + 1/4, 1/4 + 1 or 1 + 1, or 1 where both trainers use it in one step, the one for the first pass and
    the other for the second. A row that is lost in one pass gives 1/4 in most steps, and one used three times 3/4, 3/2 or more.
    """

    passes = 2
    once = (0.5, 1.0, 1.25, 2.0)

    def __init__(self, path, records):
        self.path, self.records = path, records
        rng = np.random.default_rng(2)
        x = rng.normal(size=(records, 4))
        y = x @ np.array([1.0, -2.0, 0.5, 3.0])
        with open(path, "w") as file:
            for i in range(records):
                file.write("%d,%s,%.6f\n" % (i, ",".join("%.6f" % value for value in x[i]), y[i]))

    def program(self):
        net = ty.Net("counted", seed=3)
        row, x, y = net.read(sources=[self.path], format="csv", batch_size=1, shuffle_seed=9,
                             fields=[ty.Field("row", [1], dtype="i64"), ty.Field("x", [4]), ty.Field("y", [1])])
        used = net.embedding(row, self.records, 1, weight=ty.Param(name="used", init=ty.Constant(0.0)))
        error = net.mean(net.square_error_cost(net.fc(x, 1, bias=False, weight=ty.Param(name="weight")), y))
        net.output(error, every=20)
        net.minimize(error + net.mean(used), ty.Adagrad(rate=0.5))
        return net.finish(), error.name

    def wrong(self, values):
        """The rows that were not used once in each pass, and their sums."""
        sums = next(value for name, value in values.items() if name.startswith("used") and "moment" in name)
        return {row: float(value) for row, value in enumerate(sums[:, 0])
                if not any(abs(value - sum_) < 1e-3 for sum_ in self.once)}


def run_client(code, **env):
    """Another client, in a process of its own; it prints what the test waits for."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(ty.__file__)))
    here = os.path.dirname(os.path.abspath(__file__))
    return subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(PYTHONPATH=package + os.pathsep + here, **env))


def main():
    load_package(sys.argv[1])
    cases.main()
