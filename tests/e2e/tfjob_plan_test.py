"""`trainyard plan`: what the operator would do for a job, shown and not done.

usage: tfjob_plan_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import subprocess
import tempfile
import unittest

import cases
from cases import eventually
from cluster import environment
from tfjob_operators import OperatorCase
from tfjobs import FOREVER, ROOT, JobCase, role, tfjob

EXAMPLES = os.path.join(ROOT, "examples", "tfjob")


def run(*args, stdin=None):
    """trainyard, with no cluster that it could find by itself."""
    with tempfile.TemporaryDirectory(prefix="trainyard-e2e.") as home:
        return subprocess.run([cases.TRAINYARD, *args], input=stdin, capture_output=True, text=True, timeout=300, check=False,
                              env=environment(HOME=home))


class PlanCase:
    def fails(self, done, code, *parts):
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Files(PlanCase, unittest.TestCase):
    """No cluster is needed for these."""

    def test_are_shown_as_if_they_were_submitted_now(self):
        done = run("plan", "-f", os.path.join(EXAMPLES, "exit-code.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "TFJob default/exit-code: New\n"
                                      "  TFJobCreating: 0 of 1 pods and 0 of 1 services exist\n"
                                      "  create pod worker-0: it is missing\n"
                                      "  create service worker-0: it is missing\n")

    def test_with_other_objects_in_them_are_fine(self):
        done = run("plan", "-f", os.path.join(EXAMPLES, "dist-mnist.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        made = [line.split(":")[0].split()[1:] for line in done.stdout.splitlines() if line.startswith("  create ")]
        self.assertEqual(sorted(made), sorted([kind, which] for kind in ("pod", "service")
                                              for which in ("chief-0", "ps-0", "worker-0", "worker-1")))

    def test_with_fields_that_the_kind_does_not_have_are_told_as_a_server_would(self):
        job = tfjob("typo", {"Worker": role("exit 0")}, backofLimit=3)
        self.fails(run("plan", "-f", "-", stdin=json.dumps(job)), 1, "TFJob typo: spec.backofLimit: there is no such field")
        job = tfjob("typo", {"Worker": {**role("exit 0"), "replica": 3}})
        self.fails(run("plan", "-f", "-", stdin=json.dumps(job)), 1, "spec.tfReplicaSpecs.Worker.replica: there is no such field")

    def test_with_a_name_that_is_still_to_be_made_are_fine(self):
        job = tfjob("", {"Worker": role("exit 0")})
        job["metadata"] = {"generateName": "try-"}
        done = run("plan", "-f", "-", stdin=json.dumps(job))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("TFJob default/try-xxxxx: New", done.stdout)

    def test_are_read_from_standard_input_and_told_as_json(self):
        jobs = [tfjob("one", {"Worker": role("exit 0", 2)}), tfjob("two", {"Chief": role("exit 0")}, suspend=True)]
        jobs[1]["metadata"]["namespace"] = "team"
        done = run("plan", "-f", "-", "-o", "json", stdin="---\n".join(json.dumps(job) + "\n" for job in jobs))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        one, two = map(json.loads, done.stdout.splitlines())
        self.assertEqual(one, {"kind": "TFJob", "namespace": "default", "name": "one", "state": "New", "nextState": "New",
                               "message": "TFJobCreating: 0 of 2 pods and 0 of 2 services exist",
                               "actions": ["create %s worker-%d: it is missing" % (kind, i)
                                           for i in (0, 1) for kind in ("pod", "service")]})
        self.assertEqual((two["namespace"], two["name"], two["nextState"], two["actions"]), ("team", "two", "Suspended", []))

    def test_with_jobs_that_are_not_valid_fail_and_name_the_field(self):
        bad = tfjob("bad", {"Worker": role("exit 0", -1)})
        self.fails(run("plan", "-f", "-", stdin=json.dumps(bad)), 1, "TFJob bad", "spec.tfReplicaSpecs.Worker.replicas", "-1")

    def test_with_several_jobs_that_are_not_valid_name_every_one(self):
        jobs = [tfjob(name, {"Worker": role("exit 0", -1)}) for name in ("bad-1", "bad-2")]
        done = run("plan", "-f", "-", stdin="---\n".join(json.dumps(job) + "\n" for job in jobs))
        self.assertEqual(done.returncode, 1)
        for name in ("bad-1", "bad-2"):
            self.assertIn(name, done.stderr)

    def test_that_hold_no_jobs_fail(self):
        self.fails(run("plan", "-f", "-", stdin="kind: Pod\n"), 1, "there is no TFJob, PyTorchJob or AITrainingJob in it")
        self.fails(run("plan", "-f", "-", stdin=""), 1, "there is no TFJob, PyTorchJob or AITrainingJob in it")
        self.fails(run("plan", "-f", "-", stdin="a: ["), 1, "not valid YAML")
        self.fails(run("plan", "-f", "-", stdin=json.dumps({**tfjob("x", {}), "apiVersion": "kubeflow.org/v2"})), 1,
                   "kubeflow.org/v2,", "kubeflow.org/v1")
        self.fails(run("plan", "-f", os.path.join(EXAMPLES, "nothing.yaml")), 1, "nothing.yaml", "No such file")

    def test_misused_exit_with_2(self):
        for args in ((), ("-f", "x", "tfjob/y"), ("pod/x",), ("x",), ("tfjob/",), ("-f", "-", "-o", "table"), ("--nonsense",)):
            with self.subTest(args):
                self.fails(run("plan", *args, stdin=""), 2)

    def test_need_a_cluster_only_for_a_job_of_one(self):
        self.fails(run("plan", "tfjob/x"), 1, "no cluster is configured", "trainyard up")


class Live(PlanCase, JobCase):
    def plan(self, name, *flags):
        return run("plan", "tfjob/" + name, "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig, *flags)

    def test_jobs_that_run_have_nothing_to_be_done(self):
        self.submit(tfjob("runs", {"Worker": role(FOREVER, 2)}, activeDeadlineSeconds=600))
        self.await_state("runs", "Running")
        done = self.plan("runs")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^TFJob %s/runs: Running\n  TFJobRunning: all 2 pods run\n  nothing to do\n"
                                      r"  look again in \d+m[\d.]+s\n$" % self.namespace)
        told = json.loads(self.plan("runs", "-o", "json").stdout)
        self.assertEqual((told["state"], told["nextState"], told["actions"]), ("Running", "Running", []))
        self.assertTrue(0 < told["wakeAfterSeconds"] <= 600, told)

    def test_jobs_that_are_not_there_are_answered_with_those_that_are(self):
        self.submit(tfjob("there", {"Worker": role("exit 0", policy="Never")}))
        self.await_state("there", "Succeeded")
        self.fails(self.plan("nowhere"), 1, "nowhere", "there are: ", "there")
        done = run("plan", "tfjob/nowhere", "-n", "default", "--kubeconfig", self.cluster.kubeconfig)
        self.fails(done, 1, "the namespace has none")

    def test_jobs_of_the_embedded_cluster_are_found_by_its_home(self):
        self.submit(tfjob("found", {"Worker": role("exit 0", policy="Never")}))
        self.await_state("found", "Succeeded")
        done = run("plan", "tfj/found", "-n", self.namespace, "--home", self.cluster.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], "TFJob %s/found: Succeeded" % self.namespace)


class WithoutOperator(PlanCase, OperatorCase):
    """What is shown is not done, and is what the operator then does."""

    def test_nothing_is_changed_by_looking(self):
        self.submit(tfjob("new", {"Worker": role(self.behind("new"), 2, "Never")}))
        eventually(lambda: self.job("new"), "the job")
        done = run("plan", "tfjob/new", "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig, "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        self.assertEqual((told["state"], len(told["actions"])), ("New", 4))
        after = self.cluster.get("tfj", "new", "-n", self.namespace)
        self.assertEqual(after["metadata"]["resourceVersion"], self.job("new")["metadata"]["resourceVersion"])
        self.assertEqual((self.pods.events, self.services.events), ([], []))

        operator = self.operator()
        self.await_running("new", "worker-0", "worker-1")
        self.await_state("new", "Running")
        operator.kill()
        self.kubectl("delete", "pod", self.pods_of("new")["worker-1"]["metadata"]["name"])
        self.patch("new", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
        done = run("plan", "tfjob/new", "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        first, *rest = done.stdout.splitlines()
        self.assertEqual(first, "TFJob %s/new: Running -> Restarting" % self.namespace)
        self.assertEqual(sorted(line for line in rest if line.startswith("  create ")),
                         ["  create pod worker-1: it is missing", "  create pod worker-2: it is missing",
                          "  create service worker-2: it is missing"])
        self.patch("new", {"tfReplicaSpecs": {"Worker": {"replicas": 1}}})
        done = run("plan", "tfjob/new", "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        self.assertIn("  delete service new-worker-1-", done.stdout)
        self.assertNotIn("create", done.stdout)


if __name__ == "__main__":
    cases.main()
