"""Elastic jobs from the command line to their end, on a cluster with real processes that are killed.

usage: elastic_life_test.py TRAINYARD [unittest arguments]
"""

import importlib.util
import json
import os
import re
import signal
import unittest

import cases
import elastic_jobs
import graph_jobs
from cluster import eventually
from elastic_jobs import COUNTING_MODEL, CountingCase, ElasticCase, read_tensor, write_digits, write_unit_vectors
from graph_jobs import longer_if_over

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "mnist")
RECORDS = 128
FAILING_MODEL = """import numpy as np
import trainyard as ty
class M:
    parameters = {'w': np.zeros(3, np.float32)}
    def outputs(self, x): return x
    def gradients(self, x, y):
        raise ValueError('no such gradient')
def model(): return M()
def optimizer(): return ty.Sgd(rate=0.1)
def dataset_fn(records, mode): return 1, 2
"""


class Training(CountingCase):
    def test_uses_each_record_once_in_each_epoch(self):
        done = self.complete("train", *self.counting("plain", 5))
        self.assertIn("trained %d records, version %d" % (5 * RECORDS, 5 * RECORDS // 4), done.stdout)
        self.assert_each_record_used("plain", 5)
        self.assertNotIn("plain", self.cluster.kubectl("get", "pods,secrets,configmaps").stdout)

    @longer_if_over
    def test_goes_on_when_workers_and_the_master_are_killed(self):
        name, epochs = "losses%d" % self.times, 600 * self.times
        job = self.start_job("train", *self.counting(name, epochs), "--checkpoint-steps", 50, "--keep")
        self.await_progress(name, lambda p: p["totalRecords"] > 1000 and p["workers"] == 2, "training to begin")
        first = self.pid(name, "worker", name + "-worker-0")
        os.kill(first, signal.SIGKILL)
        self.await_progress(name, lambda p: p["restarts"] == 1 and p["workers"] == 2, "a worker to be back")
        replaced = self.replaced(name)
        self.assertEqual(list(replaced), [name + "-worker-0"])
        self.assertRegex(replaced[name + "-worker-0"], r"was killed by signal 9 \(SIGKILL\) on node-1")
        os.kill(self.pid(name, "master", name + "-master-0"), signal.SIGKILL)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertIn("trained %d records, version %d" % (epochs * RECORDS, epochs * RECORDS // 4), out)
        self.assertIn("1 restarts", out, "the master that came back knows of it")
        self.assertIn("worker-0 is restarted: %s-worker-0 was killed by signal 9" % name, err)
        self.assertIn("the master is restarted in its pod: it was killed by signal 9 (SIGKILL)", err)
        self.assert_each_record_used(name, epochs)
        in_place = self.progress(name)["masterRestarts"]
        self.assertEqual((in_place["count"], [one["cause"] for one in in_place["last"]]), (1, ["was killed by signal 9 (SIGKILL)"]))
        logs = self.cluster.kubectl("logs", name + "-master-0").stdout
        self.assertIn("was killed by signal 9 (SIGKILL): starting it again", logs)
        self.assertIn("goes on from a checkpoint", logs)
        listed = self.cluster.kubectl("get", "aitj", name).stdout
        self.assertRegex(listed, r"Succeed .* complete, loss")

    @longer_if_over
    def test_goes_on_when_the_pod_of_a_worker_is_deleted(self):
        name, epochs = "deleted%d" % self.times, 300 * self.times
        job = self.start_job("train", *self.counting(name, epochs), "--keep")
        self.await_progress(name, lambda p: p["workers"] == 2, "training to begin")
        self.delete_pod(name + "-worker-1")
        eventually(lambda: name + "-worker-1" in self.replaced(name), "a worker to be replaced")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assert_each_record_used(name, epochs)

    def test_ends_with_ctrl_c_and_can_be_begun_with_what_it_had(self):
        job = self.start_job("train", *self.counting("ended", 100000), "--checkpoint-dir", self.path("ended-ckpt"))
        self.await_progress("ended", lambda p: p["version"] > 50, "training to begin")
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 1, out + err)
        self.assertIn("job ended was ended; its checkpoints stay", err)
        eventually(lambda: "ended" not in self.cluster.kubectl("get", "pods").stdout, "its pods to go")
        listed = self.run_here("checkpoint", "list", self.path("ended-ckpt"), "-o", "json")
        version = json.loads(listed.stdout)[-1]["version"]
        self.assertGreater(version, 50, "a checkpoint was written when it was told to end")
        again = self.run_job("train", *self.counting("ended", 1), "--checkpoint-dir", self.path("ended-ckpt"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("has checkpoints of another job, up to version %d: choose another --checkpoint-dir" % version, again.stderr)
        self.complete("train", *self.counting("goes-on", 4), "--init-from", self.path("ended-ckpt"))
        before = version / 4 / (RECORDS / 4) * -1
        weights = read_tensor(self.path("goes-on", "w.tensor")).reshape(-1)
        self.assertAlmostEqual(float(weights.mean()), before - 1, places=4)

    def test_shows_what_each_worker_does(self):
        job = self.start_job("train", *self.counting("measured", 100000))
        self.await_progress("measured", lambda p: p["workers"] == 2 and len(p["members"]) == 2 and
                            all(one.get("rate", 0) > 0 for one in p["members"].values()), "both to have done something")
        top = self.run_job("top", "elastic/measured").stdout.splitlines()
        self.assertEqual(top[2].split(), ["MEMBER", "STATE", "CPU", "MEMORY", "RECORDS/S", "VERSION", "RESTARTS", "NODE", "AGE"])
        rows = {line.split()[0]: line.split() for line in top[3:]}
        self.assertEqual(rows["master-0"][4:6], ["-", "-"])
        for member in ("worker-0", "worker-1"):
            self.assertGreater(int(rows[member][4]), 0, top)
            self.assertGreater(int(rows[member][5]), 0, top)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=300)

    def test_waits_for_several_gradients_and_for_none(self):
        self.complete("train", *self.counting("groups", 6), "--grads-to-wait", 5, "--workers", 3)
        self.complete("train", *self.counting("async", 6), "--async", "--workers", 3)
        self.assert_each_record_used("async", 6)

    def test_says_which_records_cannot_be_used(self):
        bad = self.write("bad.csv", "1," * 127 + "1\n" + "1," * 126 + "nothing,1\n")
        done = self.run_job("train", "--model", self.model, "--param", "records=128", "--training-data", bad, "--name", "bad")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"job bad has failed: records \[0, 2\) of epoch 1 failed 3 times, the last time on worker \d: "
                                      r".*bad\.csv: line 2: column 12[67] is")

    def test_fails_at_the_step_and_variable_that_is_not_finite(self):
        functions = self.write("nan.py", "import numpy as np\nimport trainyard as ty\n"
                               "class M:\n    parameters = {'w': np.zeros(3, np.float32)}\n"
                               "    def outputs(self, x): return x\n"
                               "    def gradients(self, x, y): return float('nan'), {'w': np.zeros(3, np.float32)}\n"
                               "def model(): return M()\ndef optimizer(): return ty.Sgd(rate=0.1)\n"
                               "def dataset_fn(records, mode): return 1, 2\n")
        for name, flags, why in (("wild", [*self.counting("wild", 100), "--param", "rate=1e38"], r"step \d+: element \d+ of w is -inf"),
                                 ("wild-ps", [*self.counting("wild-ps", 100), "--param", "rate=1e38", "--async", "--pservers", 2],
                                  r"pserver \d: step \d+: element \d+ of w\S* is -inf"),
                                 ("nan", ["--model", functions, "--training-data", self.data, "--name", "nan"],
                                  r"step 1: the loss of worker \d is nan")):
            with self.subTest(name):
                done = self.run_job("train", *flags)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stderr, "job %s has failed: the model could not be updated: %s" % (name, why))
                self.assertFalse(os.path.exists(self.path(name)), "no model of it is written")
        warned = self.run_job("train", "--model", functions, "--training-data", self.data, "--name", "warned",
                              "--on-nonfinite", "warn", "--keep")
        self.assertEqual(warned.returncode, 0, "its variables are finite: " + warned.stdout + warned.stderr)
        self.assertRegex(warned.stdout, r"\d+ times not finite \(step \d+: the loss of worker \d is nan\)")
        self.assertEqual(self.progress("warned")["loss"], "nan")
        self.assertNotIn("loss 0.0000", warned.stderr)
        self.assertIn("loss=nan", self.cluster.kubectl("logs", "warned-master-0").stdout)

    def test_always_says_why_its_master_could_not_begin(self):
        flags = self.counting("begins", 1)
        flags[flags.index("--training-data") + 1] = self.path("nowhere.csv")
        for _ in range(8):  # the reason and the end of the pod come by two watches
            done = self.run_job("train", *flags)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"job begins has failed: training data: .*nowhere\.csv")

    def test_writes_below_the_storage_or_not_at_all(self):
        storage = self.path("storage")
        flags = self.counting("stored", 1)
        flags[flags.index("--output") + 1] = "out"
        self.complete("train", *flags, "--storage", storage, "--checkpoint-dir", "ckpt", cwd="/")
        self.assertTrue(os.path.exists(os.path.join(storage, "out", "w.tensor")))
        self.assertTrue(os.listdir(os.path.join(storage, "ckpt")))
        for flag in ("--output", "--checkpoint-dir"):
            with self.subTest(flag=flag):
                flags = self.counting("outside", 1, "--checkpoint-dir", "ckpt")
                flags[flags.index("--output") + 1] = "out"
                flags[flags.index(flag) + 1] = self.path("outside")
                done = self.run_job("train", *flags, "--storage", storage)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("%s %s is outside the storage %s, " % (flag, self.path("outside"), storage), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertNotIn("outside", self.cluster.kubectl("get", "pods").stdout)

    def test_tries_what_fails_on_one_worker_on_the_others(self):
        model = self.write("picky.py", FAILING_MODEL.replace("        raise", """        import os, time
        if os.environ["TRAINYARD_WORKER_INDEX"] == "1":
            open(%r, "w").close()
            return 0.0, self.parameters
        while not os.path.exists(%r):  # until the other is there
            time.sleep(0.01)
        raise""" % ((self.path("worker-1"),) * 2)))
        done = self.complete("train", "--model", model, "--training-data", self.data, "--name", "picky", "--epochs", 3,
                             "--minibatch", 4, "--minibatches-per-task", 1)
        self.assertIn("trained %d records" % (3 * RECORDS), done.stdout)

    def test_ends_the_workers_that_had_not_come_when_it_failed(self):
        python = self.write("slow-python", "#!/bin/sh\n[ \"${TRAINYARD_WORKER_INDEX:-0}\" = 0 ] || exec sleep 1000\n"
                                           "exec /usr/bin/python3 \"$@\"\n")
        os.chmod(python, 0o755)
        done = self.run_job("train", "--model", self.write("fails.py", FAILING_MODEL), "--training-data", self.data, "--name",
                            "late", "--workers", 4, "--python", python)
        self.assertEqual(done.returncode, 1)
        self.assertIn("job late has failed: records", done.stderr)
        def all_ended():
            pods = self.cluster.get("pods", "-l", "trainyard.dev/elastic-job=late")["items"]
            return all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods)
        eventually(all_ended, "the workers that wait to end")
        self.assertEqual(self.pids("late", "1000"), {})

    def test_says_why_a_worker_cannot_run(self):
        done = self.run_job("train", *self.counting("crashes", 1), "--worker-restarts", 2, "--env", "GRPC_POLL_STRATEGY=none")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, r"worker \d failed 2 times in a row, the last time crashes-worker-\d ")


class Room(CountingCase):
    flags = ("--capacity", "cpu=4,memory=8Gi")

    def test_is_taken_as_far_as_there_is_some(self):
        job = self.start_job("train", *self.counting("grows", 100000), "--workers", 1, "--max-workers", 5, "--worker-cpu", 1)
        self.await_progress("grows", lambda p: p["workers"] == 3, "three workers")
        pods = eventually(lambda: self.cluster.get("pods", "-l", "trainyard.dev/elastic-job=grows")["items"], "pods")
        self.assertLessEqual(len([pod for pod in pods if pod["status"]["phase"] == "Running"]), 4)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=300)

    def test_is_waited_for_with_its_reason(self):
        job = self.start_job("train", *self.counting("large", 1), "--workers", 1, "--worker-cpu", 7)
        progress = self.await_progress("large", lambda p: "room" in p["waiting"], "the reason")
        self.assertRegex(progress["waiting"], r"room for worker 0: 0/1 nodes are available: .*cpu")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=300)


class Digits(ElasticCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train = write_digits(cls.folder, "train", 3000, 1)
        cls.test = write_digits(cls.folder, "test", 500, 2)

    def twice(self, flag, paths):
        return [word for path in paths for word in (flag, path)]

    def train_and_look(self, model, name):
        done = self.complete("train", "--model", os.path.join(EXAMPLES, model), *self.twice("--training-data", self.train),
                             *self.twice("--validation-data", self.test), "--epochs", 2, "--minibatch", 50, "--workers", 2,
                             "--evaluation-steps", 40, "--name", name, "--checkpoint-dir", self.path(name + "-ckpt"),
                             "--output", self.path(name))
        accuracy = float(re.search(r"accuracy\w* ([0-9.]+)", done.stdout).group(1))
        self.assertGreater(accuracy, 0.95, done.stdout)
        with open(self.path(name, "evaluations.jsonl")) as file:
            versions = [json.loads(line)["version"] for line in file]
        self.assertEqual(versions[-1], 120)
        self.assertGreater(len(versions), 1)
        evaluated = self.complete("evaluate", "--model", os.path.join(EXAMPLES, model), "--init-from", self.path(name + "-ckpt"),
                                  *self.twice("--validation-data", self.test), "--name", name + "-look")
        self.assertAlmostEqual(float(re.search(r"accuracy\w* ([0-9.]+)", evaluated.stdout).group(1)), accuracy, places=4)
        return accuracy

    def predict(self, model, name, *flags):
        self.complete("predict", "--model", os.path.join(EXAMPLES, model), "--init-from", self.path(name + "-ckpt"),
                      *self.twice("--prediction-data", self.test), "--output", self.path(name + "-predicted"),
                      "--minibatch", 50, "--minibatches-per-task", 2, "--name", name + "-predict", *flags)
        files = sorted(os.listdir(self.path(name + "-predicted")))
        self.assertEqual(files, ["part-%012d-%012d.recordio" % (i, i + 100) for i in range(0, 500, 100)])
        inspected = self.run_here("data", "inspect", "-o", "json", self.path(name + "-predicted"))
        self.assertIn('"records":500', inspected.stdout.replace(" ", ""), inspected.stdout + inspected.stderr)

    def test_are_learnt_by_a_net(self):
        self.train_and_look("model.py", "net")

    def test_are_learnt_with_numpy(self):
        self.train_and_look("numpy_model.py", "numpy")
        self.predict("numpy_model.py", "numpy")
        writes = self.write("writes.py", "exec(open(%r).read())\ndef write(path, outputs):\n    np.savetxt(path, outputs)\n"
                            % os.path.join(EXAMPLES, "numpy_model.py"))
        self.complete("predict", "--model", writes, "--init-from", self.path("numpy-ckpt"), *self.twice("--prediction-data", self.test),
                      "--output", self.path("written", "in", "here"), "--writer", "write", "--name", "numpy-write")
        self.assertTrue(os.listdir(self.path("written", "in", "here")))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "SKIPPED: there is no PyTorch (python3-torch)")
    def test_are_learnt_with_pytorch(self):
        self.train_and_look("torch_model.py", "torch")
        self.predict("torch_model.py", "torch")

    def test_are_learnt_from_records_that_were_converted(self):
        for name, files in (("train", self.train), ("test", self.test)):
            done = self.run_here("data", "convert", *files, "--zip", "--as", "f32/255,i64", "--to", self.path(name + "-records"))
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.complete("train", "--model", os.path.join(EXAMPLES, "model.py"), "--training-data", self.path("train-records"),
                             "--validation-data", self.path("test-records"), "--epochs", 2, "--name", "converted")
        self.assertGreater(float(re.search(r"accuracy\w* ([0-9.]+)", done.stdout).group(1)), 0.95)

    def test_fail_with_what_python_says(self):
        model = self.write("broken.py", FAILING_MODEL)
        done = self.run_job("train", "--model", model, *self.twice("--training-data", self.train), "--name", "broken")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"job broken has failed: records \[\d+, \d+\) of epoch 1 failed 3 times, "
                                      r"the last time on worker \d: .*ValueError: no such gradient \(broken\.py, line 7\)")


class WrongWords(ElasticCase):
    def test_are_answered_with_what_to_do(self):
        data = self.write("data.csv", "1\n")
        model = self.write("empty.py", "")
        for flags, code, words in (
                (["--training-data", data], 2, "--model is missing"),
                (["--model", self.path("nowhere.py"), "--training-data", data], 1, "cannot read"),
                (["--model", model, "--training-data", data], 1, "has no function model and no optimizer and no dataset_fn"),
                (["--model", self.write("wrong.py", "import os\nos.nothing()\n"), "--training-data", data], 1,
                 "has no attribute 'nothing' (wrong.py, line 2)"),
                (["--model", self.write("net.py", "import trainyard as ty\ndef net(job):\n    ty.Net('n').fc(ty.Net('m').data('x', [1]), 1)\n"),
                  "--training-data", data], 1, "(net.py, line 3)"),
                (["--model", self.write("cut.py", "def net(job:\n"), "--training-data", data], 1, "(cut.py, line 1)"),
                (["--model", data, "--training-data", data], 1, "these bytes are no program"),
                (["--model", model, "--training-data", data, "--workers", "x"], 2, "--workers: 'x' is no whole number"),
                (["--model", model, "--training-data", data, "--env", "x"], 2, "--env must be NAME=VALUE"),
                (["--model", model, "--training-data", data, "--param", "=x"], 2, "--param must be NAME=VALUE")):
            with self.subTest(flags=flags):
                done = self.run_job("train", *flags)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_are_refused_before_anything_is_made(self):
        model = self.write("counting.py", COUNTING_MODEL)
        data = self.path("vectors.csv")
        write_unit_vectors(data, 4)
        good = ["--model", model, "--param", "records=4", "--training-data", data]
        for flags, words in ((["--workers", "0"], "--workers must be at least 1, and is 0"),
                             (["--workers", "3", "--max-workers", "2"], "--workers must be between"),
                             (["--minibatch", "0"], "--minibatch must be at least 1, and is 0"),
                             (["--grads-to-wait", "0"], "--grads-to-wait must be at least 1"),
                             (["--async", "--grads-to-wait", "2"], "--async uses each gradient"),
                             (["--async", "--staleness", "3"], "leave --staleness out"),
                             (["--pserver-cpu", "1"], "are for --pservers"),
                             (["--modulate-rate"], "--modulate-rate is for --async"),
                             (["--evaluation-steps", "3"], "give --validation-data"),
                             (["--name", "No Such"], "cannot be a job's"),
                             (["--worker-cpu", "lots"], "is no amount"),
                             (["--epochs", "0"], "--epochs must be at least 1")):
            with self.subTest(flags=flags):
                done = self.run_job("train", *good, *flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
        self.assertEqual(self.cluster.get("pods")["items"], [])


if __name__ == "__main__":
    elastic_jobs.main()
