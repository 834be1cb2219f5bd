"""`trainyard graph`: a net trained as graphs from the command line, looked at, scaled, saved and deleted."""

import json
import os
import re
import signal
import sys

import cases
from cluster import environment, eventually
from elastic_jobs import ElasticCase, load_package, read_tensor
from terminals import Terminal

# A line through thirteen numbers: y is their sum.
LINE = """
import trainyard as ty

def net(job):
    net = ty.Net("line", seed=job.seed)
    x, y = net.read(sources=job.training_data, format="csv", batch_size=job.minibatch,
                    fields=[ty.Field("x", [13]), ty.Field("y", [1])])
    weight = ty.Param(name="w", init=ty.Constant(float(job.params.get("begin", 0))))
    loss = net.mean(net.square_error_cost(net.fc(x, 1, weight=weight, bias=False), y))
    net.output(loss)
    net.minimize(loss, ty.Sgd(rate=float(job.params["rate"])) if "rate" in job.params else ty.Adam(rate=0.05))
    return net
"""


class GraphCommandTest(ElasticCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = os.path.join(cls.folder, "line.py")
        with open(cls.model, "w") as file:
            file.write(LINE)
        cls.data = os.path.join(cls.folder, "line.csv")
        with open(cls.data, "w") as file:
            for i in range(512):
                x = [((i * 31 + k * 17) % 97) / 97 for k in range(13)]
                file.write(",".join("%.6f" % v for v in [*x, sum(x)]) + "\n")

    def graph(self, *words, code=0, **kwargs):
        done = self.run_job("graph", *words, **kwargs)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def net(self, *flags):
        return ["--model", self.model, "--training-data", self.data, "--minibatch", "32", *map(str, flags)]

    def begin(self, name):
        self.assertEqual(self.graph(*self.net("--passes", 100000, "--name", name, "--detach")).stdout, name + "\n")
        self.addCleanup(self.run_job, "graph", "delete", name)
        eventually(lambda: json.loads(self.graph("status", name, "-o", "json").stdout)["state"] == "Running", name + " to run")

    def test_trains_to_the_end_and_saves(self):
        out = self.path("model")
        done = self.graph(*self.net("--passes", 40, "--trainers", 2, "--pservers", 2, "--output", out, "--name", "line"))
        self.assertRegex(done.stdout, r"^trained 320 steps  mean_0 0\.0\d+\n$")
        self.assertIn("the model of step", done.stderr)
        learnt = read_tensor(os.path.join(out, "w.tensor"))
        self.assertEqual(learnt.shape, (13, 1))
        self.assertTrue((abs(learnt - 1) < 0.2).all(), learnt)
        self.assertNotIn("line", self.cluster.kubectl("get", "aitj", "-o", "name").stdout, "nothing is left of it")
        # And it can be gone on from.
        again = self.graph(*self.net("--passes", 1, "--trainers", 1, "--init-from", out, "--name", "line-2"))
        self.assertRegex(again.stdout, r"^trained 16 steps  mean_0 0\.0\d+\n$")

    def test_fails_at_the_step_and_variable_that_is_not_finite(self):
        for mode in ([], ["--async"]):
            name = "wild" + "".join(mode)
            with self.subTest(name):
                done = self.graph(*self.net("--passes", 40, "--name", name, "--param", "rate=1e30", "--output", self.path(name), *mode),
                                  code=1)
                self.assertRegex(done.stderr, r"job %s has failed: .*step \d+.*: element \d+ of \w+ is -?(inf|nan)" % name)
                self.assertFalse(os.path.exists(self.path(name)))

    def test_reads_and_writes_in_the_folder_of_the_command_and_counts_the_steps_of_the_model(self):
        with open(self.path("here.py"), "w") as file:
            file.write(LINE.replace("job.training_data", '["line.csv"]').replace("net.output(loss)", "net.output(loss, every=7)"))
        for mode in ("sync", "async"):
            with self.subTest(mode=mode):
                flags = ["--async"] if mode == "async" else []
                done = self.graph("--model", "here.py", "--minibatch", 32, "--passes", 2, "--output", "here", "--name", "here-" + mode,
                                  *flags, cwd=self.folder)
                steps = re.search(r"the model of step (\d+) is in here", done.stderr).group(1)
                self.assertIn("trained %s steps " % steps, done.stdout)
                self.assertTrue(os.path.exists(self.path("here", "w.tensor")))

    def test_refuses_a_net_that_reads_nothing(self):
        with open(self.path("fed.py"), "w") as file:
            file.write("import trainyard as ty\ndef net(job):\n    net = ty.Net('fed')\n"
                       "    net.minimize(net.mean(net.fc(net.data('x', [1]), 1)), ty.Sgd())\n    return net\n")
        self.assertIn("trainer-0 has no `read`", self.graph("--model", self.path("fed.py"), code=1).stderr)
        done = self.run_job("train", "--model", self.path("fed.py"), "--training-data", self.data)
        self.assertEqual(done.returncode, 1)
        self.assertIn("fed.py has no read(): workers are not fed", done.stderr)

    def uid(self, pod):
        done = self.cluster.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid} {.status.phase}", check=False)
        uid, _, phase = done.stdout.partition(" ")
        return uid if phase == "Running" else None

    def test_goes_on_without_a_trainer_and_ends_with_its_command(self):
        job = self.start_job("graph", *self.net("--passes", 100000, "--name", "loses"))
        first = eventually(lambda: self.uid("loses-trainer-1"), "trainer-1 to run")
        self.cluster.kubectl("delete", "pod", "loses-trainer-1", "--wait=false")
        eventually(lambda: self.uid("loses-trainer-1") not in (None, first), "another to take its place")
        self.assertEqual(json.loads(self.graph("status", "loses", "-o", "json").stdout)["state"], "Running")
        job.send_signal(signal.SIGTERM)  # nobody is asked
        _, stderr = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 1)
        self.assertIn("job loses was ended", stderr)
        self.assertIn("there is no job", self.graph("status", "loses", code=1).stderr)

    def test_one_that_runs_is_looked_at_scaled_saved_and_deleted(self):
        self.begin("night")
        self.assertRegex(self.graph("status", "night").stdout, r"^job night: Running\n2 trainers, 1 pservers\naitrainingjob/night: Running")
        self.assertEqual(self.graph("scale", "night", "--trainers", 3).stdout, "job night is to have 3 trainers\n")
        eventually(lambda: self.cluster.kubectl("get", "pods", "-o", "name").stdout.count("night-trainer-") == 3, "three trainers")
        def saved():
            done = self.run_job("graph", "save", "night", "--to", self.path("night"))
            return done.returncode == 0 and done
        self.assertRegex(eventually(saved, "the first checkpoint").stdout, r"^the model of step \d+ is in ")
        self.assertTrue(os.path.exists(self.path("night", "w.tensor")))
        follow = self.start_job("graph", "outputs", "night", "--var", "mean_0", "-o", "json")
        first = json.loads(follow.stdout.readline())
        self.assertEqual((first["graph"].partition("-")[0], first["name"], len(first["values"])), ("trainer", "mean_0", 1))
        follow.send_signal(signal.SIGINT)
        follow.communicate(timeout=300)
        self.assertEqual(follow.returncode, 0)
        self.assertEqual(self.graph("delete", "night").stdout, "job night is deleted\n")
        self.assertIn("there is no job", self.graph("delete", "night", code=1).stderr)

    def test_ctrl_c_at_a_terminal_may_leave_it_running(self):
        terminal = Terminal(self.command("graph", *self.net("--passes", 100000, "--name", "stay")), environment())
        self.addCleanup(terminal.kill)
        self.addCleanup(self.run_job, "graph", "delete", "stay")
        terminal.await_text(r"pass \d+/100000  step \d+  mean_0 ")
        terminal.press("\x03")
        terminal.await_text(r"job stay still runs\..*\? ")
        terminal.press("l")
        code, shown = terminal.end()
        self.assertEqual(code, 0, shown)
        self.assertIn("trainyard graph outputs stay", shown)
        self.assertEqual(json.loads(self.graph("status", "stay", "-o", "json").stdout)["state"], "Running")

    def test_shows_what_a_net_is_cut_into(self):
        text = self.run_here("graph", "show", *self.net("--trainers", 1, "--pservers", 2)).stdout
        for part in ("graph trainer-0 sync\n", "graph pserver-0 sync\n", "graph pserver-1 sync\n", "sends to\n"):
            self.assertIn(part, text)

    def test_what_cannot_be_is_told_in_a_line(self):
        functions = self.write("functions.py", "def model():\n    pass\n\ndef loss(o, l):\n    pass\n\ndef optimizer():\n    pass\n\n"
                               "def dataset_fn(records, mode):\n    pass\n")
        for words, part, code in ((["graph"], "--model is missing", 2),
                                  (["graph", *self.net("--trainers", 0)], "--trainers must be between 1 and", 2),
                                  (["graph", *self.net("--passes", 0)], "--passes must be at least 1", 2),
                                  (["graph", *self.net("--trainer-cpu", "many")], "--trainer-cpu", 2),
                                  (["graph", *self.net("--min-trainers", 3)], "must be around the 2", 2),
                                  (["graph", *self.net("--output", "x", "--detach")], "trainyard graph save", 2),
                                  (["graph", *self.net("--output", "x", "--storage", "claim:yard")],
                                   "--output is written on this machine, which does not see the storage claim:yard", 2),
                                  (["graph", *self.net("--name", "a b")], "--name", 2),
                                  (["graph", "--model", "/nowhere.py"], "/nowhere.py", 1),
                                  (["graph", "--model", functions], "has no function net(job)", 1),
                                  (["graph", "status", "x", "--model", "y"], "unexpected argument '--model'", 2),
                                  (["graph", "scale", "x"], "give --trainers N or --pservers N", 2),
                                  (["graph", "save", "x"], "--to is missing", 2),
                                  (["graph", "status", "nobody"], "nobody", 1)):
            with self.subTest(words=words):
                done = self.run_job(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    load_package(sys.argv[1])
    cases.main()
