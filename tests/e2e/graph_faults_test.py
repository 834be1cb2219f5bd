"""Graph jobs while their processes are killed, their operator too, and their store is away.

usage: graph_faults_test.py TRAINYARD [unittest arguments]
"""

import collections
import contextlib
import os
import random
import signal
import time

import cases
import graph_jobs
from cluster import eventually
from graph_jobs import CountedRows, GraphJobCase, JobOver, line_program, longer_if_over, write_line
from tfjob_operators import OperatorProcess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHAOS = 600 if cases.LONG else 15  # seconds
LEAST_KILLS = 5
GRAPHS = ("trainer-0", "trainer-1", "pserver-0", "pserver-1")
SHORT = 1.5  # seconds: less than a lease of 2, which is renewed in time


class StoreFaults(GraphJobCase):
    """What differs by the store."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.path.join(cls.folder, "line.csv")
        write_line(cls.data)
        cls.program, cls.loss = line_program(cls.data)

    def undisturbed(self, passes):
        """What the same job learns when nothing happens to it."""
        job = self.start("undisturbed", self.program, passes=passes)
        self.assertTrue(job.wait(600))
        values = self.variables(self.program, self.saved(job))
        job.stop()
        return values

    def assert_same(self, job, values):
        for name, value in self.variables(self.program, self.saved(job)).items():
            graph_jobs.np.testing.assert_allclose(value, values[name], rtol=0, atol=1e-6, err_msg=name)

    def advance(self, outputs, steps):
        """Reads until the job is so many steps further."""
        goal = next(outputs).step + steps
        for output in outputs:
            if output.step >= goal:
                return output
        raise JobOver("the job ended first")

    def restarts(self, name):
        return self.object_of(name)["status"].get("restartTotal", 0)

    @longer_if_over
    def test_of_pservers_are_rolled_back_and_leave_no_trace_in_what_is_learnt(self):
        passes = 100 * self.times
        job = self.start("pservers", self.program, passes=passes, checkpoint_every=25)
        outputs = job.trainers.get(self.loss)
        for graph in ("pserver-1", "pserver-0"):
            self.advance(outputs, 60)
            self.kill("pservers", graph)
        steps = [output.step for output in outputs if output.graph == "trainer-0"]
        self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)), "each step comes once")
        self.assertEqual(job.status().state, "Complete")
        self.assertEqual(self.restarts("pservers"), 2)
        self.assert_same(job, self.undisturbed(passes))

    @longer_if_over
    def test_of_the_store_for_less_than_a_lease_are_not_noticed(self):
        passes = 80 * self.times
        job = self.start("short", self.program, passes=passes)
        outputs = job.trainers.get(self.loss)
        for _ in range(10):
            self.advance(outputs, 20)
            pids = {graph: self.pid("short", graph) for graph in GRAPHS}
            restarts = self.restarts("short")
            begun = time.monotonic()
            self.without_store(0.5)
            away = time.monotonic() - begun
            self.advance(outputs, 50)
            if away < SHORT:
                break
        self.assertLess(away, SHORT, "the store was away for too long each time")
        self.assertEqual({graph: self.pid("short", graph) for graph in GRAPHS}, pids)
        self.assertEqual(self.restarts("short"), restarts)
        list(outputs)
        self.assert_same(job, self.undisturbed(passes))

    @longer_if_over
    def test_of_the_store_for_longer_than_a_lease_stop_the_graphs_and_they_go_on_from_their_checkpoint(self):
        job = self.start("long", self.program, passes=120 * self.times, checkpoint_every=25)
        outputs = job.trainers.get(self.loss)
        self.advance(outputs, 60)
        self.without_store(6)
        rest = list(outputs)
        self.assertEqual(job.status().state, "Complete")
        # Who comes back first goes on without the others, so the steps may be made of other trainers than without it.
        self.assertLess(float(rest[-1]), 0.1)
        steps = [output.step for output in rest if output.graph == "trainer-0"]
        self.assertEqual(steps, sorted(set(steps)))

    def without_store(self, seconds):
        """The store neither answers nor forgets for this time."""
        pid = next(iter(self.cluster.processes(command="store", HOSTNAME="trainyard-store-store-0")))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)


class Faults(StoreFaults):
    @longer_if_over
    def test_of_trainers_let_the_others_go_on(self):
        job = self.start("trainers", self.program, passes=120 * self.times)
        outputs = job.trainers.get(self.loss)
        self.advance(outputs, 50)
        self.kill("trainers", "trainer-1")
        self.advance(outputs, 50)
        rest = list(outputs)
        self.assertIn("trainer-1", {output.graph for output in rest}, "it came back")
        self.assertEqual(job.status().state, "Complete")
        self.assertLess(float(rest[-1]), 0.1)

    def check_outputs(self, mode):
        """Each step puts out its labels: those of the committed steps are those of every record, once in each pass."""
        ty, np = graph_jobs.ty, graph_jobs.np
        net = ty.Net("labels", seed=7)
        x, y = net.read(sources=[self.data], format="csv", batch_size=4, fields=[ty.Field("x", [13]), ty.Field("y", [1])])
        net.output(y)
        net.minimize(net.mean(net.square_error_cost(net.fc(x, 1), y)), ty.Adam(rate=0.01))
        labels = collections.Counter(np.loadtxt(self.data, delimiter=",", dtype=np.float32)[:, 13].tolist())
        passes = 6 * self.times
        job = self.start("outputs-" + mode, net.finish(), passes=passes, mode=mode)
        outputs = job.trainers.get(y)
        seen = []
        for _ in range(3):
            for output in outputs:
                seen.append(output)
                if len(seen) % 300 == 0:
                    break
            self.kill("outputs-" + mode, "trainer-%d" % (len(seen) // 300 % 2))
        seen += outputs
        self.assertEqual(job.status().state, "Complete")
        self.assertTrue(all(output.committed for output in seen))
        shown = collections.Counter(float(label) for output in seen for label in np.ravel(output.value))
        self.assertEqual({label: shown[label] - count * passes for label, count in labels.items()
                          if shown[label] != count * passes}, {})
        self.assertEqual(sum(shown.values()), passes * sum(labels.values()))

    @longer_if_over
    def test_of_trainers_leave_the_outputs_of_each_step_that_counts(self):
        self.check_outputs("sync")

    @longer_if_over
    def test_of_trainers_leave_the_outputs_of_each_step_that_counts_in_async_mode(self):
        self.check_outputs("async")

    @longer_if_over
    def test_of_one_trainer_do_not_stop_the_others_in_async_mode(self):
        job = self.start("async", self.program, passes=120 * self.times, mode="async")
        outputs = job.trainers.get(self.loss)
        self.advance(outputs, 50)
        pid = self.pid("async", "trainer-1")
        os.kill(pid, signal.SIGSTOP)  # alive for the operator, and silent
        self.addCleanup(self.resume, pid)
        alone = 0  # outputs of trainer-0 in a row; what both had told before may still be on its way
        for output in outputs:
            alone = alone + 1 if output.graph == "trainer-0" else 0
            if alone == 100:
                break
        self.assertEqual(alone, 100)
        self.resume(pid)
        self.assertTrue(list(outputs))
        self.assertEqual(job.status().state, "Complete")

    @staticmethod
    def resume(pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


class FaultsOnEtcd(Faults if cases.LONG else StoreFaults):
    on_etcd = True

    def without_store(self, seconds):
        self.etcd.stop()
        time.sleep(seconds)
        self.etcd.start()


class Chaos(GraphJobCase):
    """Whatever is killed, every record is used once in each pass, and what was to be learnt is learnt."""

    flags = ("--no-operator",)
    records = 40000 if cases.LONG else 4000

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds"))
        cls.cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s",
                            "crd/aitrainingjobs.elasticdeeplearning.ai")
        cls.rows = CountedRows(os.path.join(cls.folder, "counted.csv"), cls.records)

    def test_changes_nothing_but_the_time_it_takes(self):
        operator = OperatorProcess(self.cluster)
        self.addCleanup(lambda: operator.kill())
        operator.await_ready()
        program, error = self.rows.program()
        job = self.start("chaos", program, passes=self.rows.passes, checkpoint_every=40)
        outputs = job.trainers.get(error)
        next(outputs)
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        killed = {}
        end = time.monotonic() + CHAOS
        while (time.monotonic() < end or sum(killed.values()) < LEAST_KILLS) and job.status().state not in ("Complete", "Failed"):
            victim = rng.choice(GRAPHS + ("operator",))
            killed[victim] = killed.get(victim, 0) + 1
            if victim == "operator":
                operator.kill()
                operator = OperatorProcess(self.cluster)
            else:
                self.kill_if_there(victim)
            time.sleep(rng.uniform(0.2, 2.5 if cases.LONG else 1))
        print("seed %d, killed %s" % (seed, killed), flush=True)
        self.assertGreater(sum(killed.values()), 0, "the job was over too soon")
        last = list(outputs)[-1]
        status = job.status()
        self.assertEqual(status.state, "Complete", status.reason)
        values = self.variables(program, self.saved(job))
        self.assertEqual(self.rows.wrong(values), {}, "rows that were not used once in each pass (seed %d)" % seed)
        graph_jobs.np.testing.assert_allclose(values["weight"][:, 0], [1.0, -2.0, 0.5, 3.0], atol=0.05)
        self.assertLess(float(last), 0.05)

    def kill_if_there(self, graph):
        pod = "%s-%s" % (self.object_of("chaos")["metadata"]["name"], graph)
        for pid in self.cluster.processes(pod, "graph-worker"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class ChaosOnEtcd(Chaos):
    on_etcd = True


del StoreFaults  # runs as Faults and FaultsOnEtcd


if __name__ == "__main__":
    graph_jobs.main()
