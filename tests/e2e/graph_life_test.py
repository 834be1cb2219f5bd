"""A graph job from the client's first call to its end, on a cluster with real processes.

usage: graph_life_test.py TRAINYARD [unittest arguments]
"""

import base64
import os
import signal
import subprocess

import graph_jobs
from cluster import environment, eventually
from graph_jobs import GraphJobCase, line_program, run_client, write_line

CLIENT = """
import time
import trainyard as ty
from graph_jobs import load_package
import graph_jobs
graph_jobs.ty = ty
program, loss = graph_jobs.line_program({data!r})
t_graphs, p_graphs = ty.dist_transpiler(program, trainers_num=1, trainer_pass_num=100000, pservers_num=1)
yard = ty.Yard(kubeconfig={kubeconfig!r}, store={store!r})
job = yard.init_job({name!r}, run_type={run_type!r}, lease={lease})
trainers, pservers = job.add_workers(t_graphs), job.add_workers(p_graphs)
pservers.start()
trainers.start()
next(trainers.get(loss))
print("it trains", flush=True)
{then}
"""


class LineCase(GraphJobCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.path.join(cls.folder, "line.csv")
        write_line(cls.data)
        cls.program, cls.loss = line_program(cls.data)


class Jobs(LineCase):
    def test_train_and_say_how_they_do_until_they_are_complete(self):
        job = self.start("test_1", self.program, passes=2)
        outputs = list(job.trainers.get(self.loss))
        # 2,048 records of 2 passes in batches of 32, by two trainers that step together
        self.assertEqual(len(outputs), 128)
        for graph in ("trainer-0", "trainer-1"):
            steps = [output.step for output in outputs if output.graph == graph]
            self.assertEqual(steps, list(range(64)))
        self.assertLess(float(outputs[-1]), float(outputs[0]) / 10)
        self.assertEqual(job.status().state, "Complete")
        self.assertEqual(job.status().steps, 64)
        self.assertTrue(job.wait(60))
        eventually(lambda: self.object_of("test_1")["status"]["phase"] == "Succeed", "the AITrainingJob to succeed")
        self.assertTrue(self.yard.find("test_1"))
        later = list(self.yard.attach("test_1").trainers.get(self.loss))
        self.assertEqual(sorted(map(str, later)), sorted(map(str, outputs)), "a later client sees what was put out")
        job.stop()
        self.assertFalse(self.yard.find("test_1"))
        self.assertIsNone(self.object_of("test_1"))

    def test_are_killed_by_name_with_all_that_is_theirs(self):
        job = self.start("victim", self.program, passes=100000)
        pid = self.pid("victim", "trainer-1")
        with self.assertRaisesRegex(graph_jobs.ty.Error, "there is a job victim in namespace default: kill it first"):
            self.yard.init_job("victim")
        self.yard.kill("victim")
        self.assertFalse(os.path.exists("/proc/%d" % pid))
        self.assertFalse(self.yard.find("victim"))
        self.assertNotIn("victim", self.cluster.kubectl("get", "secrets,pods,services").stdout)
        with self.assertRaisesRegex(graph_jobs.ty.Error, "there is no job victim in namespace default"):
            self.yard.kill("victim")
        with self.assertRaisesRegex(graph_jobs.ty.Error, "job victim was killed"):
            job.status()

    def test_say_what_is_wrong_before_anything_is_made(self):
        ty = graph_jobs.ty
        t_graphs, p_graphs = ty.dist_transpiler(self.program, trainers_num=2)
        with self.assertRaisesRegex(ty.Error, "the job's name 'a b'"):
            self.yard.init_job("a b")
        with self.assertRaisesRegex(ty.Error, "there is no run_type 'sideways': use foreground or background"):
            self.yard.init_job("wrong", run_type="sideways")
        job = self.yard.init_job("wrong")
        self.addCleanup(job.stop)
        with self.assertRaisesRegex(ty.Error, "mem: 'lots' is no amount: write 512Mi"):
            job.add_workers(t_graphs, mem="lots")
        with self.assertRaisesRegex(ty.Error, "cpu: '-1' is negative"):
            job.add_workers(t_graphs, cpu=-1)
        with self.assertRaisesRegex(ty.Error, "trainers and pservers are added one after the other"):
            job.add_workers(t_graphs + p_graphs)
        trainers = job.add_workers(t_graphs[:1])
        with self.assertRaisesRegex(ty.Error, "has no pservers yet: add all its workers before you start some"):
            trainers.start()
        with self.assertRaisesRegex(ty.Error, "job wrong has its trainers already"):
            job.add_workers(t_graphs)
        with self.assertRaisesRegex(ty.Error, "have not been started: there is nothing to get"):
            trainers.get("loss")
        job.add_workers(p_graphs)
        with self.assertRaisesRegex(ty.Error, "there are 1 trainers .*, and they were made for 2 and 1: add them all"):
            trainers.start()
        self.assertIsNone(self.object_of("wrong"))

    def test_are_shown_by_kv_range_as_people_read_them(self):
        job = self.start("shown", self.program, passes=100000)
        eventually(lambda: job.status().state == "Running", "the first step")
        env = {"TRAINYARD_STORE": self.store}
        if not self.store:
            service = self.cluster.get("service", "trainyard-store")
            token = self.cluster.get("secret", "trainyard-store")["data"]["token"]
            env = {"TRAINYARD_STORE": "etcd://%s:2379" % service["spec"]["clusterIP"],
                   "TRAINYARD_ETCD_TOKEN": base64.b64decode(token).decode()}
        shown = subprocess.run([self.cluster.trainyard, "kv", "range", "trainyard/jobs/default/shown/", "-o", "text"],
                               capture_output=True, text=True, check=True, env=environment(**env)).stdout
        for part in ("graph trainer-1 sync", "sends to", "pserver-1", "listen_and_serv", '"state":"running"',
                     "trainyard/jobs/default/shown/graph_pod/pserver-0"):
            self.assertTrue(part in shown, "there is no " + part)

    def test_fail_with_the_reason_when_no_restart_would_mend_them(self):
        program, loss = line_program(os.path.join(self.folder, "not-there.csv"))
        job = self.start("no-data", program)
        with self.assertRaisesRegex(graph_jobs.ty.Error, "not-there.csv"):
            list(job.trainers.get(loss))
        self.assertEqual(job.status().state, "Failed")
        self.assertIn("not-there.csv", job.status().reason)
        phase = eventually(lambda: self.object_of("no-data")["status"].get("phase") == "Failed", "the AITrainingJob to fail")
        self.assertTrue(phase)


class Clients(LineCase):
    def client(self, name, run_type, then="time.sleep(600)", lease=2):
        client = run_client(CLIENT.format(data=self.data, kubeconfig=self.cluster.kubeconfig, store=self.store, name=name,
                                          run_type=run_type, lease=lease, then=then))
        self.addCleanup(self.remove, name)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        line = client.stdout.readline()
        self.assertEqual(line, "it trains\n", line or client.stderr.read())
        return client

    def test_that_are_killed_take_their_foreground_jobs_with_them(self):
        client = self.client("front", "foreground")
        pids = [self.pid("front", graph) for graph in ("trainer-0", "pserver-0")]
        client.kill()
        eventually(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in pids), "the job's processes to end")
        job = self.yard.attach("front")
        self.assertIn("client of this foreground job is gone", job.status().reason)
        eventually(lambda: self.object_of("front")["status"]["phase"] == "Failed", "the AITrainingJob to fail")

    def test_that_exit_end_their_foreground_jobs_at_once(self):
        # A lease that would outlast the test's patience.
        client = self.client("exits", "foreground", then="", lease=3600)
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        eventually(lambda: self.object_of("exits")["status"]["phase"] == "Failed", "the AITrainingJob to fail")

    def test_that_are_killed_leave_their_background_jobs_and_others_attach(self):
        client = self.client("back", "background")
        pid = self.pid("back", "trainer-0")
        client.send_signal(signal.SIGKILL)
        client.wait()
        job = self.yard.attach("back")
        outputs = job.trainers.get(self.loss)
        first = next(outputs).step
        while next(outputs).step < first + 50:
            pass
        self.assertEqual(self.pid("back", "trainer-0"), pid)
        self.assertEqual(job.status().state, "Running")
        job.stop()

    def test_are_told_when_their_job_is_killed_by_another(self):
        job = self.start("taken", self.program, passes=100000)
        outputs = job.trainers.get(self.loss)
        next(outputs)
        self.yard.kill("taken")
        with self.assertRaisesRegex(graph_jobs.ty.Error, "job default/taken was killed"):
            for _ in outputs:
                pass


class JobsOnEtcd(Jobs):
    on_etcd = True


class ClientsOnEtcd(Clients):
    on_etcd = True


if __name__ == "__main__":
    graph_jobs.main()
