"""Graph jobs whose trainers and pservers become more and fewer while they run.

usage: graph_scaling_test.py TRAINYARD [unittest arguments]
"""

import os

import cases
import graph_jobs
from cluster import eventually
from graph_jobs import GraphJobCase, JobOver, line_program, longer_if_over, write_line


class PserverScaling(GraphJobCase):
    """What differs by the store."""

    flags = ("--capacity", "cpu=8,memory=8Gi")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.path.join(cls.folder, "line.csv")
        write_line(cls.data)
        cls.program, cls.loss = line_program(cls.data)

    def read_until(self, outputs, condition, most=100000):
        """The outputs up to the first one that meets the condition."""
        read = []
        for output in outputs:
            read.append(output)
            if condition(output):
                return read
            self.assertLess(len(read), most, "it never came")
        raise JobOver("the job ended first, after %d outputs" % len(read))

    def scale(self, group, size):
        try:
            group.scale(size)
        except graph_jobs.ty.Error as error:
            if "is complete" in str(error):
                raise JobOver(str(error)) from error
            raise

    @longer_if_over
    def test_of_pservers_cuts_the_parameters_anew_and_goes_on(self):
        np = graph_jobs.np
        passes = 200 * self.times
        job = self.start("pservers", self.program, trainers=2, pservers=2, passes=passes, checkpoint_every=50)
        outputs = job.trainers.get(self.loss)
        self.read_until(outputs, lambda output: output.step >= 100)
        self.scale(job.pservers, 3)
        self.assertEqual(job.status().pservers, 3)
        self.read_until(outputs, lambda output: output.step >= 300)
        self.scale(job.pservers, 1)
        self.read_until(outputs, lambda output: output.step >= 500)
        self.scale(job.pservers, 2)
        rest = list(outputs)
        self.assertEqual((job.status().state, job.status().pservers), ("Complete", 2))
        self.assertEqual(rest[-1].step, job.status().steps - 1)
        scaled = self.variables(self.program, self.saved(job))
        undisturbed = self.start("still", self.program, trainers=2, pservers=2, passes=passes)
        self.assertTrue(undisturbed.wait(600))
        # On a machine that stalls for longer than a lease a trainer is taken for lost, and steps are made without it.
        if any(self.trainers_that_left(name) > 2 for name in ("pservers", "still")):
            raise JobOver("a trainer was lost")
        for name, value in self.variables(self.program, self.saved(undisturbed)).items():
            np.testing.assert_allclose(scaled[name], value, rtol=0, atol=1e-6, err_msg=name)

    def trainers_that_left(self, name):
        return self.cluster.kubectl("logs", name + "-pserver-0", check=False).stdout.count("a trainer is gone")


class Scaling(PserverScaling):
    @longer_if_over
    def test_of_trainers_lets_them_join_and_leave_without_a_loss(self):
        passes = 150 * self.times
        job = self.start("trainers", self.program, trainers=1, passes=passes)
        outputs = job.trainers.get(self.loss)
        before = self.read_until(outputs, lambda output: output.step >= 100)
        self.scale(job.trainers, 3)
        self.assertEqual(len(job.trainers), 3)
        joined = self.read_until(outputs, lambda output: output.graph == "trainer-2")
        later = self.read_until(outputs, lambda output: output.step >= joined[-1].step + 100)
        self.assertEqual({output.graph for output in later}, {"trainer-0", "trainer-1", "trainer-2"})
        self.assertLess(float(joined[-1]), float(before[0]) / 2, "what was learnt is still there")
        self.scale(job.trainers, 2)
        rest = list(outputs)
        last = max(output.step for output in rest)
        self.assertEqual({output.graph for output in rest if output.step > last - 20}, {"trainer-0", "trainer-1"})
        status = job.status()
        self.assertEqual((status.state, status.trainers), ("Complete", 2))
        # Each step of a trainer is at most a batch of 32 records, and each record is used once in each pass.
        used = len(before) + len(joined) + len(later) + len(rest)
        self.assertGreaterEqual(used, passes * 2048 // 32)

    @longer_if_over
    def test_is_left_to_the_load_of_the_cluster_where_that_is_asked_for(self):
        ty = graph_jobs.ty
        t_graphs, p_graphs = ty.dist_transpiler(self.program, trainers_num=1, trainer_pass_num=80 * self.times, pservers_num=1)
        job = self.yard.init_job("elastic")
        self.addCleanup(self.remove, "elastic")
        trainers = job.add_workers(t_graphs, cpu=1, mem="64Mi", least=1, most=3)
        pservers = job.add_workers(p_graphs, cpu=1, mem="64Mi")
        pservers.start()
        trainers.start()
        outputs = trainers.get(self.loss)
        self.read_until(outputs, lambda output: output.graph == "trainer-2")
        # Others want the room.
        other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "guest"},
                 "spec": {"containers": [{"name": "main", "image": "none", "command": ["sleep", "600"],
                                          "resources": {"requests": {"cpu": "5"}}}], "terminationGracePeriodSeconds": 0}}
        self.cluster.apply(other)
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "guest", "--now", check=False)
        eventually(lambda: self.cluster.phase("guest") == "Running", "the guest to have room")
        self.read_until(outputs, lambda output: output.graph == "trainer-0")
        with self.assertRaisesRegex(ty.Error, "the cluster's load decides"):
            trainers.scale(2)
        rest = list(outputs)
        self.assertTrue(rest)
        self.assertEqual(job.status().state, "Complete")

    def test_says_what_cannot_be(self):
        ty = graph_jobs.ty
        job = self.start("bounds", self.program, passes=100000)
        with self.assertRaisesRegex(ty.Error, "a job has between 1 and 10000 trainers, and cannot have 0"):
            job.trainers.scale(0)
        with self.assertRaisesRegex(ty.Error, "pservers, and cannot have -1"):
            job.pservers.scale(-1)


class ScalingOnEtcd(Scaling if cases.LONG else PserverScaling):
    on_etcd = True


del PserverScaling  # runs as Scaling and ScalingOnEtcd


if __name__ == "__main__":
    graph_jobs.main()
