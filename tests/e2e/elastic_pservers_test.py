"""Elastic jobs whose model is on pservers, on a cluster with real processes that are killed.

usage: elastic_pservers_test.py TRAINYARD [unittest arguments]
"""

import glob
import json
import os
import signal

import elastic_jobs
from elastic_jobs import CountingCase, read_tensor, write_digits
from graph_jobs import longer_if_over

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "mnist")


class Pservers(CountingCase):
    def counting(self, name, epochs, *flags, pservers=2):
        # 128 x 128 weights, which are cut into two pieces.
        return super().counting(name, epochs, "--pservers", pservers, "--param", "units=128", *flags)

    def test_have_the_model_in_parts_and_end_with_the_job(self):
        done = self.complete("train", *self.counting("parts", 5), "--keep", "--checkpoint-dir", self.path("parts-ckpt"))
        self.assertIn("trained %d records, version %d" % (5 * self.records, 5 * self.records // 4), done.stdout)
        self.assert_each_record_used("parts", 5)
        pods = self.cluster.kubectl("get", "pods", "-l", "TrainingJobReplicaName=pserver,trainyard.dev/elastic-job=parts",
                                    "--no-headers").stdout
        self.assertEqual([line.split()[0] for line in pods.splitlines()], ["parts-pserver-0", "parts-pserver-1"])
        for index in range(2):
            self.assertEqual(self.cluster.phase("parts-pserver-%d" % index), "Succeeded")
        sizes = [os.path.getsize(file) for file in glob.glob(self.path("parts-ckpt", "pserver-*-160-*.ckpt"))]
        self.assertEqual(len(sizes), 2)
        self.assertLess(max(sizes), 1.5 * min(sizes), "each has about half of it")

    @longer_if_over
    def test_goes_on_when_a_pserver_is_killed_and_says_so(self):
        name, epochs = "lost%d" % self.times, 300 * self.times
        job = self.start_job("train", *self.counting(name, epochs), "--checkpoint-steps", 50, "--keep")
        self.await_progress(name, lambda p: p["version"] > 200 and p["pservers"] == 2, "training to begin")
        os.kill(self.pid(name, "pserver", name + "-pserver-1"), signal.SIGKILL)
        self.await_progress(name, lambda p: p["restarts"] == 1 and p["pservers"] == 2, "a pserver to be back")
        self.assertRegex(self.replaced(name)[name + "-pserver-1"], r"was killed by signal 9 \(SIGKILL\) on node-1")
        os.kill(self.pid(name, "worker", name + "-worker-0"), signal.SIGKILL)
        self.await_progress(name, lambda p: p["restarts"] == 2 and p["workers"] == 2, "a worker to be back")
        os.kill(self.pid(name, "master", name + "-master-0"), signal.SIGKILL)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertIn("pserver-1 is restarted: %s-pserver-1 was killed by signal 9" % name, err)
        self.assert_each_record_used(name, epochs)
        logs = self.cluster.kubectl("logs", name + "-master-0").stdout
        self.assertRegex(logs, r"goes back to the newest checkpoint because=.pserver 1 \(%s-pserver-1\)" % name)

    @longer_if_over
    def test_goes_on_when_the_pod_of_a_pserver_is_deleted(self):
        name, epochs = "deleted%d" % self.times, 300 * self.times
        job = self.start_job("train", *self.counting(name, epochs), "--checkpoint-steps", 50)
        self.await_progress(name, lambda p: p["version"] > 100, "training to begin")
        self.delete_pod(name + "-pserver-0")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertRegex(err, "pserver-0 is restarted: %s-pserver-0 " % name)
        self.assert_each_record_used(name, epochs)

    def test_leaves_checkpoints_that_are_read_whole(self):
        folder = self.path("whole-ckpt")
        self.complete("train", *self.counting("whole", 5), "--checkpoint-dir", folder, "--checkpoint-steps", 40,
                      "--keep-checkpoints", 2)
        listed = json.loads(self.run_here("checkpoint", "list", folder, "-o", "json").stdout)
        before, last = (one["version"] for one in listed)
        self.assertEqual(last, 160)
        self.assertGreater(listed[0]["bytes"], 128 * 128 * 4, "its parts are counted")
        self.assertEqual(len(glob.glob(os.path.join(folder, "pserver-*"))), 4, "of those that were deleted nothing is left")
        verified = self.run_here("checkpoint", "verify", folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.run_here("checkpoint", "export", folder, "--to", self.path("exported"))
        self.assertEqual(set(read_tensor(self.path("exported", "w.tensor")).reshape(-1).tolist()), {-5 / 4})
        # Begun again with another number of pservers, and with none.
        for name, count in (("three", 3), ("none", 0)):
            self.complete("train", *self.counting(name, 1, pservers=count), "--init-from", folder)
            self.assert_each_record_used(name, 6)
        part = sorted(glob.glob(os.path.join(folder, "pserver-0-160-*")))[0]
        with open(part, "r+b") as file:
            file.seek(-100, os.SEEK_END)
            file.write(b"damaged")
        verified = self.run_here("checkpoint", "verify", folder)
        self.assertEqual(verified.returncode, 1)
        self.assertIn(os.path.basename(part), verified.stdout)
        self.complete("train", *self.counting("older", 1), "--init-from", folder)
        weights = read_tensor(self.path("older", "w.tensor"))
        self.assertAlmostEqual(float(weights.mean()), -before / self.records - 1 / 4, places=5, msg="the one before")

    def test_refuses_what_cannot_be(self):
        for count, flags, said in ((-1, (), "--pservers must be from 0 to 1000, and is -1"),
                                   (2, ("--pserver-cpu", "much"), "much")):
            done = self.run_job("train", *self.counting("bad", 1, *flags, pservers=count))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        model = self.write("clipped.py", """
import trainyard as ty

def net(job):
    net = ty.Net("clipped")
    (x,) = net.read(sources=job.training_data, format="csv", batch_size=4, fields=[ty.Field("x", [128])])
    net.minimize(net.mean(net.fc(x, 1)), ty.Sgd(rate=1.0), clip=ty.ClipByGlobalNorm(1.0))
    return net
""")
        done = self.run_job("train", "--model", model, "--training-data", self.data, "--name", "clipped", "--pservers", 2)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("needs all gradients in one place", done.stderr)


class Functions(CountingCase):
    def test_train_with_pservers_too(self):
        images, labels = write_digits(self.path("digits"), "train", 2000, 1)
        for model in ("numpy_model.py", "torch_model.py"):
            if not os.path.exists(os.path.join(EXAMPLES, model)):
                self.fail("there is no example %s" % model)
            name = model.split("_")[0]
            done = self.complete("train", "--model", os.path.join(EXAMPLES, model), "--name", name, "--training-data", images,
                                 "--training-data", labels, "--validation-data", images, "--validation-data", labels, "--epochs",
                                 3, "--pservers", 2, seconds=240)
            self.assertIn("trained 6000 records", done.stdout)
            accuracy = float(done.stdout.split("accuracy ")[1].split()[0])
            self.assertGreater(accuracy, 0.9, done.stdout)


if __name__ == "__main__":
    elastic_jobs.main()
