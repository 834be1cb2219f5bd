"""Manifests as users of the training operator's v1 have them, TFJob and PyTorchJob, run unchanged: what their pods are
told, what their statuses say, and how they end.

usage: kubeflow_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import subprocess
import unittest

import cases
from cases import eventually
from jobs import FOREVER, ROOT, JobCase, current, seconds

V1 = "/apis/kubeflow.org/v1/namespaces/%s/"
LABEL = "training.kubeflow.org/"
ENV = "env | sort; echo printed=yes; "


def replica(container, script, replicas=1, policy=None, **more):
    """A replica spec whose container runs a script of the shell."""
    main = {"name": container, "image": "none", "command": ["/bin/sh", "-c", script], **more}
    made = {"replicas": replicas, "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [main]}}}
    return {**made, "restartPolicy": policy} if policy else made


class V1Case(JobCase):
    """What holds of all kinds of v1."""

    container = port = roles = None
    seat_labels = (LABEL + "replica-type", LABEL + "replica-index")
    finished = ("Succeeded", "Failed")
    counters, restarts_field, end_field, looked_at = "replicaStatuses", "restartCount", "completionTime", "lastUpdateTime"

    @staticmethod
    def broken_by_kind(job, before):
        created = [c["status"] for c in job["status"].get("conditions", []) if c["type"] == "Created"]
        if job["spec"].get("dialect") == "v1alpha2":
            return []
        return ["was accepted and then was not"] if created not in ([], ["True"]) else []

    @classmethod
    def role(cls, script, replicas=1, policy=None, **more):
        return replica(cls.container, script, replicas, policy, **more)

    @classmethod
    def of_kind(cls, name, roles, **spec):
        return {"apiVersion": "kubeflow.org/v1", "kind": cls.kind, "metadata": {"name": name}, "spec": {cls.roles: roles, **spec}}

    def env(self, pod):
        """What the process printed of its environment."""
        def printed():
            lines = dict(line.split("=", 1) for line in self.logs(pod, self.container).splitlines() if "=" in line)
            return lines if "printed" in lines else None
        return eventually(printed, "the environment of %s" % pod["metadata"]["name"])

    def check_pods(self, name, seats, leader):
        """Their names, labels, owners and services."""
        job, pods = self.job(name), self.pods_of(name)
        operator = self.kind.lower() + "-controller"
        for seat in seats:
            with self.subTest(seat):
                meta, (kind, index) = pods[seat]["metadata"], seat.rsplit("-", 1)
                self.assertEqual(meta["name"], "%s-%s" % (name, seat))
                labels = {key[len(LABEL):]: value for key, value in meta["labels"].items() if key.startswith(LABEL)}
                self.assertEqual(labels, {"job-name": name, "operator-name": operator, "replica-type": kind,
                                          "replica-index": index, **({"job-role": "master"} if seat == leader else {})})
                self.assertEqual(meta["ownerReferences"], [{"apiVersion": "kubeflow.org/v1", "kind": self.kind, "name": name,
                                                            "uid": job["metadata"]["uid"], "controller": True,
                                                            "blockOwnerDeletion": True}])
        services = self.get("/api/v1/namespaces/%s/services" % self.namespace)["items"]
        named = {s["metadata"]["name"]: s for s in services}
        for seat in seats:
            spec = named["%s-%s" % (name, seat)]["spec"]
            self.assertEqual((spec["clusterIP"], [(p["name"], p["port"]) for p in spec["ports"]]), ("None", [self.port]))
            self.assertEqual({key: pods[seat]["metadata"]["labels"].get(key) for key in spec["selector"]}, spec["selector"])

    def services_of(self, name):
        job = self.job(name)
        return [s for s in list(self.services.objects.values())
                if job and s["metadata"]["labels"].get("trainyard.dev/job-uid") == job["metadata"]["uid"]]

    # ---- what every kind does the same way; `decider` is the role whose success is the job's

    def check_end(self, decider, other):
        """A status field by field, and None as the policy for pods."""
        self.submit(self.of_kind("ends", {decider: self.role(self.behind("ends"), policy="Never"), other: self.role(FOREVER, 2)}))
        self.await_state("ends", "Running")
        eventually(lambda: self.counts("ends", other).get("active") == 2, "all to be counted")
        status = self.job("ends")["status"]
        selector = "%sjob-name=ends,%soperator-name=%s-controller,%sreplica-type=%s" % (LABEL, LABEL, self.kind.lower(), LABEL, "%s")
        self.assertEqual({role: {key: counts[key] for key in ("active", "succeeded", "failed", "selector")}
                          for role, counts in status["replicaStatuses"].items()},
                         {decider: {"active": 1, "succeeded": 0, "failed": 0, "selector": selector % decider.lower()},
                          other: {"active": 2, "succeeded": 0, "failed": 0, "selector": selector % other.lower()}})
        self.assertEqual([(c["type"], c["status"], c["reason"]) for c in status["conditions"]],
                         [("Created", "True", self.kind + "Created"), ("Running", "True", self.kind + "Running")])
        selected = self.cluster.get("pods", "-n", self.namespace, "-l", selector % other.lower())["items"]
        self.assertEqual(len(selected), 2)
        self.open_gate("ends")
        status = self.await_state("ends", "Succeeded")["status"]
        self.assertEqual([(c["type"], c["status"], c["reason"]) for c in status["conditions"]],
                         [("Created", "True", self.kind + "Created"), ("Running", "False", self.kind + "Running"),
                          ("Succeeded", "True", self.kind + "Succeeded")])
        self.assertLessEqual(seconds(status["startTime"]), seconds(status["completionTime"]))
        self.await_told("ends", "Normal", self.kind + "Succeeded", "")
        table = self.kubectl("get", self.short_name, "ends", "--no-headers").stdout.split()
        self.assertEqual(table[:2], ["ends", "Succeeded"])
        self.assertEqual(len(self.pods_of("ends")), 3, "cleanPodPolicy is None unless it says otherwise")
        self.kubectl("delete", self.short_name, "ends")
        eventually(lambda: not [p for p in list(self.pods.objects.values()) if p["metadata"]["labels"].get(LABEL + "job-name") == "ends"],
                   "what was its own to go with it")

    def check_clean(self, decider, other):
        roles = {decider: self.role(self.behind("clean"), policy="Never"), other: self.role(FOREVER)}
        for policy, left in (("All", []), ("Running", [decider.lower() + "-0"])):
            self.submit(self.of_kind("clean-" + policy.lower(), roles, runPolicy={"cleanPodPolicy": policy}))
        for policy in ("all", "running"):
            self.await_running("clean-" + policy, decider.lower() + "-0", other.lower() + "-0")
        self.open_gate("clean")
        for policy, left in (("all", []), ("running", [decider.lower() + "-0"])):
            self.await_state("clean-" + policy, "Succeeded")
            eventually(lambda: sorted(self.pods_of("clean-" + policy)) == left, "pods of clean-%s to be %s" % (policy, left))

    def check_clock(self, decider):
        self.submit(self.of_kind("ttl", {decider: self.role("exit 0", policy="Never")}, runPolicy={"ttlSecondsAfterFinished": 1}),
                    self.of_kind("deadline", {decider: self.role(FOREVER)}, runPolicy={"activeDeadlineSeconds": 1}))
        eventually(lambda: self.jobs.of("ttl") and self.job("ttl") is None, "the job to be deleted after its time")
        failed = self.await_state("deadline", "Failed")
        self.assertEqual(current(failed)["reason"], "DeadlineExceeded")

    def check_suspend(self, decider, other):
        self.submit(self.of_kind("pauses", {decider: self.role(self.behind("pauses"), policy="Never"), other: self.role(FOREVER)},
                                 runPolicy={"suspend": True}))
        self.await_state("pauses", "Suspended")
        self.assertEqual(self.pods_of("pauses"), {})
        seats = [decider.lower() + "-0", other.lower() + "-0"]
        self.patch("pauses", {"runPolicy": {"suspend": False}})
        self.await_running("pauses", *seats)
        self.await_state("pauses", "Running")
        self.patch("pauses", {"runPolicy": {"suspend": True}})
        self.await_state("pauses", "Suspended")
        eventually(lambda: not self.pods_of("pauses") and not self.services_of("pauses"), "its pods and services to go")
        eventually(lambda: {role["active"] for role in self.job("pauses")["status"]["replicaStatuses"].values()} == {0},
                   "the counters to follow")
        self.assertEqual((self.condition("pauses", "Running")["status"], self.condition("pauses", "Suspended")["reason"]),
                         ("False", self.kind + "Suspended"))
        self.patch("pauses", {"runPolicy": {"suspend": False}})
        self.await_running("pauses", *seats)
        self.open_gate("pauses")
        self.await_state("pauses", "Succeeded")
        self.assertEqual(self.condition("pauses", "Suspended")["status"], "False")
        self.await_told("pauses", "Normal", self.kind + "Resumed", "")

    def check_restarts(self, decider):
        """By exit code, within the limit; one that is permanent ends the job."""
        once = "[ $TRAINYARD_ATTEMPT -gt 0 ] && exit 0; exit %d"
        self.submit(self.of_kind("again", {decider: self.role(once % 137, policy="ExitCode")}),
                    self.of_kind("permanent", {decider: self.role("exit 3", policy="ExitCode")}),
                    self.of_kind("never", {decider: self.role("exit 137", policy="Never")}),
                    self.of_kind("limit", {decider: self.role("exit 137", policy="ExitCode")}, runPolicy={"backoffLimit": 1}))
        done = self.await_state("again", "Succeeded")
        self.assertEqual((done["status"]["restartCount"], done["status"]["replicaStatuses"][decider]["failed"]), (1, 1))
        self.await_told("again", "Warning", self.kind + "Restarting", "exited 137")
        for name in ("permanent", "never"):
            self.assertEqual(current(self.await_state(name, "Failed"))["reason"], self.kind + "Failed", name)
        self.assertEqual(current(self.await_state("limit", "Failed"))["reason"], "BackoffLimitExceeded")
        self.assertEqual(self.job("limit")["status"]["restartCount"], 1)


class TFCase(V1Case):
    kind, short_name, path = "TFJob", "tfj", V1 + "tfjobs"
    container, port, roles = "tensorflow", ("tfjob-port", 2222), "tfReplicaSpecs"


class TFJobs(TFCase):
    def test_pods_are_named_labelled_and_told_as_by_the_original(self):
        self.submit(self.of_kind("shape", {"PS": self.role(ENV + FOREVER), "Worker": self.role(ENV + FOREVER, 2),
                                           "Evaluator": self.role(ENV + FOREVER)}))
        seats = ["evaluator-0", "ps-0", "worker-0", "worker-1"]
        pods = self.await_running("shape", *seats)
        self.check_pods("shape", seats, "worker-0")
        cluster = {kind: ["shape-%s.%s.svc:2222" % (seat, self.namespace) for seat in seats if seat.startswith(kind)]
                   for kind in ("evaluator", "ps", "worker")}
        for seat in seats:
            kind, index = seat.rsplit("-", 1)
            self.assertEqual(json.loads(self.env(pods[seat])["TF_CONFIG"]),
                             {"cluster": cluster, "task": {"type": kind, "index": int(index)}, "environment": "cloud"})

    def test_one_pod_alone_has_no_cluster(self):
        self.submit(self.of_kind("alone", {"Worker": self.role(ENV, policy="Never")}))
        self.await_state("alone", "Succeeded")
        self.assertNotIn("TF_CONFIG", self.env(self.pods_of("alone")["worker-0"]))

    def test_dynamic_workers_fail_alone(self):
        fails = "[ ${HOSTNAME##*-} = 1 ] && exit 1; "
        self.submit(self.of_kind("dynamic", {"Worker": self.role(ENV + fails + self.behind("dynamic"), 2, "Never"),
                                             "PS": self.role(FOREVER)}, enableDynamicWorker=True))
        pods = self.await_running("dynamic", "ps-0", "worker-0")
        self.assertEqual(json.loads(self.env(pods["worker-0"])["TF_CONFIG"])["cluster"],
                         {"worker": {"0": "dynamic-worker-0.%s.svc:2222" % self.namespace},
                          "ps": ["dynamic-ps-0.%s.svc:2222" % self.namespace]})
        eventually(lambda: self.counts("dynamic", "Worker").get("failedIndexes") == "1", "the failure to be noted")
        self.await_state("dynamic", "Running")
        self.open_gate("dynamic")
        self.await_state("dynamic", "Succeeded")

    def test_statuses_are_those_of_the_original(self):
        self.check_end("Chief", "Worker")

    def test_master_is_a_chief_by_its_own_name(self):
        self.submit(self.of_kind("old", {"Master": self.role("exit 0", policy="Never"), "Worker": self.role(FOREVER)}))
        self.await_state("old", "Succeeded")
        self.assertIn("master-0", self.pods_of("old"))

    def test_all_workers_may_be_waited_for(self):
        slow = "[ ${HOSTNAME##*-} = 0 ] && exit 0; " + self.behind("all-workers")
        self.submit(self.of_kind("all-workers", {"Worker": self.role(slow, 2, "Never")}, successPolicy="AllWorkers"))
        eventually(lambda: self.counts("all-workers", "Worker").get("succeeded") == 1, "worker 0 to complete")
        self.await_state("all-workers", "Running")
        self.open_gate("all-workers")
        self.await_state("all-workers", "Succeeded")

    def test_pods_are_cleaned_up(self):
        self.check_clean("Chief", "Worker")

    def test_the_clock_ends_jobs(self):
        self.check_clock("Worker")

    def test_jobs_are_suspended_and_resumed(self):
        self.check_suspend("Chief", "Worker")

    def test_exit_codes_decide_about_restarts(self):
        self.check_restarts("Worker")


class BothVersions(TFCase):
    """A job is the same in both, whichever it was created through."""

    def object(self, version, name):
        return self.get("/apis/kubeflow.org/%s/namespaces/%s/tfjobs/%s" % (version, self.namespace, name))

    def test_have_all_that_the_other_wrote(self):
        roles = {"Worker": self.role(FOREVER, 1, "OnFailure")}
        new = self.of_kind("new", roles, runPolicy={"cleanPodPolicy": "All", "backoffLimit": 3, "schedulingPolicy": {"minAvailable": 1}})
        old = {**self.of_kind("old", roles, cleanPodPolicy="All", backoffLimit=3), "apiVersion": "kubeflow.org/v1alpha2"}
        self.submit(new, old)
        for name, own, other in (("new", "v1", "v1alpha2"), ("old", "v1alpha2", "v1")):
            with self.subTest(name):
                self.await_state(name, "Running")
                eventually(lambda: self.counts(name, "Worker").get("active") == 1, "its pod to be counted")
                here, there = self.object(own, name), self.object(other, name)
                self.assertEqual((here["apiVersion"], there["apiVersion"]), ("kubeflow.org/" + own, "kubeflow.org/" + other))
                self.assertEqual(here["spec"]["dialect"], own)
                self.assertEqual(here["spec"], there["spec"])
                self.assertEqual(here["status"]["replicaStatuses"], here["status"]["tfReplicaStatuses"])
                pods, generation = self.pods_of(name), here["metadata"]["generation"]
                # What was read in the other version is written back in it, and nothing has changed.
                code, body = self.wire.ask("PUT", "/apis/kubeflow.org/%s/namespaces/%s/tfjobs/%s" % (other, self.namespace, name),
                                           json.dumps(self.object(other, name)), {"Content-Type": "application/json"})
                self.assertEqual(code, 200, body)
                again = self.object(own, name)
                self.assertEqual((again["spec"], again["metadata"]["generation"]), (here["spec"], generation))
                self.assertEqual({p["metadata"]["uid"] for p in self.pods_of(name).values()},
                                 {p["metadata"]["uid"] for p in pods.values()})
        self.assertEqual(self.pods_of("new")["worker-0"]["metadata"]["name"], "new-worker-0")
        uid = self.job("old")["metadata"]["uid"]
        name = next(p["metadata"]["name"] for p in list(self.pods.objects.values())
                    if p["metadata"]["labels"].get("trainyard.dev/job-uid") == uid)
        self.assertEqual(name, "old-worker-0-" + uid[:5])

    def test_refuse_fields_of_the_other_in_a_job_that_has_begun(self):
        self.submit(self.of_kind("mixed", {"Worker": self.role(FOREVER)}))
        self.await_state("mixed", "Running")
        self.patch("mixed", {"cleanPodPolicy": "All"})
        eventually(lambda: self.condition("mixed", "SpecInvalid"), "the edit to be refused")
        self.assertIn("spec.cleanPodPolicy: the job follows v1", self.condition("mixed", "SpecInvalid")["message"])
        self.assertEqual(self.state("mixed"), "Running")

    def test_commands_know_both(self):
        for version in ("v1", "v1alpha2"):
            job = {**self.of_kind("planned", {"Worker": self.role(FOREVER)}), "apiVersion": "kubeflow.org/" + version}
            shown = self.cluster.run("plan", "-f", "-", input=json.dumps(job)).stdout
            self.assertIn("create pod worker-0", shown)


class PyTorchCase(V1Case):
    kind, short_name, path = "PyTorchJob", "pytorchjob", V1 + "pytorchjobs"
    container, port, roles = "pytorch", ("pytorchjob-port", 23456), "pytorchReplicaSpecs"


class PyTorchJobs(PyTorchCase):
    flags = ("--nodes", "2", "--capacity", "cpu=10,memory=64Gi")

    def test_pods_are_named_labelled_and_told_as_by_the_original(self):
        self.submit(self.of_kind("simple", {"Master": self.role(ENV + FOREVER), "Worker": self.role(ENV + FOREVER, 2)},
                                 nprocPerNode="2"))
        seats = ["master-0", "worker-0", "worker-1"]
        pods = self.await_running("simple", *seats)
        self.check_pods("simple", seats, "master-0")
        for rank, seat in enumerate(seats):
            env = self.env(pods[seat])
            self.assertEqual({key: value for key, value in env.items() if key.startswith("PET_") or key in (
                "PYTHONUNBUFFERED", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")}, {
                    "PYTHONUNBUFFERED": "1", "MASTER_ADDR": "simple-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "6",
                    "RANK": str(rank), "PET_MASTER_ADDR": "simple-master-0", "PET_MASTER_PORT": "23456",
                    "PET_NODE_RANK": str(rank), "PET_NPROC_PER_NODE": "2", "PET_NNODES": "3"})

    def test_statuses_are_those_of_the_original(self):
        self.check_end("Master", "Worker")

    def test_pods_are_cleaned_up(self):
        self.check_clean("Master", "Worker")

    def test_the_clock_ends_jobs(self):
        self.check_clock("Master")

    def test_jobs_are_suspended_and_resumed(self):
        self.check_suspend("Master", "Worker")

    def test_exit_codes_decide_about_restarts(self):
        self.check_restarts("Worker")

    def test_failures_restart_in_place_unless_it_says_otherwise(self):
        flag = self.gate("in-place")
        self.submit(self.of_kind("in-place", {"Master": self.role("[ -e %s ] && exit 0; touch %s; exit 1" % (flag, flag))}))
        done = self.await_state("in-place", "Succeeded")
        self.assertEqual(done["status"]["restartCount"], 1)
        pod = self.pods_of("in-place")["master-0"]
        self.assertEqual((pod["spec"]["restartPolicy"], pod["status"]["containerStatuses"][0]["restartCount"]), ("OnFailure", 1))

    def elastic(self, name, script, replicas, cpu="100m", **policy):
        worker = self.role(script, replicas, resources={"requests": {"cpu": cpu}})
        return self.of_kind(name, {"Worker": worker}, elasticPolicy=policy)

    def await_size(self, name, size):
        eventually(lambda: self.counts(name, "Worker").get("size") == size and len(self.running(name)) == size
                   and self.state(name) == "Running", "%s to have %d workers" % (name, size))

    def test_elastic_workers_take_the_room_between_their_bounds(self):
        # Each of the 2 nodes of 10 cpus holds one worker of 6.
        self.submit(self.elastic("grows", ENV + self.behind("grows"), 1, minReplicas=1, maxReplicas=3, maxRestarts=5,
                                 rdzvBackend="c10d"),
                    self.elastic("fits", FOREVER, 1, cpu="6", minReplicas=1, maxReplicas=9))
        self.await_size("grows", 3)
        self.await_size("fits", 2)
        first = self.pods_of("grows")["worker-0"]
        env = self.env(first)
        self.assertEqual({key: value for key, value in env.items() if key.startswith("PET_")}, {
            "PET_NPROC_PER_NODE": "auto", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "grows-worker-0:23456",
            "PET_NNODES": "1:3", "PET_MAX_RESTARTS": "5"})
        self.assertNotIn("RANK", env)
        # The others go on when one is added.
        self.assertEqual((first["metadata"]["uid"], self.job("grows")["status"]["restartCount"]),
                         (self.pods_of("grows")["worker-0"]["metadata"]["uid"], 0))
        self.patch("grows", {"elasticPolicy": {"maxReplicas": 2}})
        self.await_size("grows", 2)
        self.assertIn("grows (PyTorchJob)", self.cluster.run("plan", "--autoscale", "--kubeconfig", self.cluster.kubeconfig).stdout)
        self.open_gate("grows")
        self.await_state("grows", "Succeeded")  # by the first worker that is done
        self.kubectl("delete", "pytorchjob", "fits")

    def test_elastic_jobs_with_metrics_have_the_size_that_scale_says(self):
        job = self.elastic("scaled", FOREVER, 1, minReplicas=1, maxReplicas=3, metrics=[{
            "type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}])
        self.submit(job)
        self.await_size("scaled", 1)
        self.kubectl("scale", "pytorchjob", "scaled", "--replicas=2")
        self.await_size("scaled", 2)
        path = V1 % self.namespace + "pytorchjobs/scaled/scale"
        eventually(lambda: self.get(path)["status"].get("replicas") == 2, "the scale to count its pods")
        scale = self.get(path)
        self.assertEqual(scale["spec"]["replicas"], 2)
        self.assertIn("replica-type=worker", scale["status"]["selector"])
        self.kubectl("scale", "pytorchjob", "scaled", "--replicas=9")
        self.await_size("scaled", 3)

    def test_elastic_jobs_run_with_those_that_there_is_room_for(self):
        job = self.elastic("waits", FOREVER, 2, cpu="9", minReplicas=1, maxReplicas=3, metrics=[{"type": "Resource"}])
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 3
        self.submit(job)
        eventually(lambda: self.state("waits") == "Running" and (self.message("waits") or "").startswith("2 of 3 pods run; waiting for"),
                   "it to run without the third")
        self.kubectl("delete", "pytorchjob", "waits")

    def test_commands_know_the_kind(self):
        self.submit(self.of_kind("known", {"Master": self.role("echo hello; " + FOREVER)}, runPolicy={"cleanPodPolicy": "All"}))
        self.await_state("known", "Running")
        flags = ("-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        self.assertIn("pytorchjob/known", self.cluster.run("get", *flags).stdout)
        self.assertIn("nothing to do", self.cluster.run("plan", "pytorchjob/known", *flags).stdout)
        self.assertIn("hello", self.cluster.run("logs", "pytorchjob/known", *flags).stdout)
        self.cluster.run("why", "ptj/known", *flags)
        self.cluster.run("delete", "pytorchjob/known", *flags)
        eventually(lambda: self.job("known") is None, "the job to go")


def torch_problem():
    done = subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return done.stderr.strip().splitlines()[-1:] if done.returncode else None


class Torch(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        problem = torch_problem()
        if problem is not None:
            raise unittest.SkipTest("SKIPPED: /usr/bin/python3 has no torch with gloo: %s" % problem)
        super().setUpClass()

    def test_processes_meet_and_reduce(self):
        with open(os.path.join(ROOT, "examples/pytorchjob/all-reduce.yaml"), encoding="utf-8") as file:
            example = file.read()
        self.assertIn("- python3\n", example)  # the first of the PATH may be one without torch
        self.kubectl("apply", "-f", "-", stdin=example.replace("- python3\n", "- /usr/bin/python3\n"))
        self.await_state("all-reduce", "Succeeded", within=300)
        for rank, seat in enumerate(("master-0", "worker-0", "worker-1")):
            pod = eventually(lambda: self.pods_of("all-reduce").get(seat), "the pod of %s" % seat)
            eventually(lambda: "rank %d of 3 sum 6" % rank in self.logs(pod), "the sum of all ranks by %s" % seat)


if __name__ == "__main__":
    cases.main()
