"""AITrainingJobs whose nodes, accelerators and containers fail them.

usage: aijob_faults_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import uuid

import cases
import processes
from aijobs import AiJobCase, AiOperatorCase, aijob, role
from cases import eventually

MARK = "TRAINYARD_TEST_MARK"
POLICIES = ("Always", "OnFailure", "OnNodeFail", "Never", "ExitCode", "OnNodeFailWithExitCode")
OF_NODES = ("Always", "OnNodeFail", "OnNodeFailWithExitCode")


class NodeCase(AiJobCase):
    """Every test has a node for itself, which it may ruin."""

    count = 0
    flags = ("--node-grace", "2s", "--capacity", "cpu=32,memory=64Gi,nvidia.com/gpu=8")

    @classmethod
    def setUpClass(cls):
        cls.flags = ("--nodes", str(cls.count), *cls.flags)
        super().setUpClass()

    def node(self, verb, node):
        done = self.cluster.run("node", verb, node)
        self.assertEqual(done.returncode, 0, done.stderr)

    def others(self, node):
        return [other for other in ("node-%d" % (i + 1) for i in range(self.count)) if other != node]

    def submit_on(self, node, *jobs):
        """With the jobs' pods on that node."""
        for other in self.others(node):
            self.node("cordon", other)
        self.submit(*jobs)
        for job in jobs:
            name = job["metadata"]["name"]
            eventually(lambda: self.pods_of(name) and all(p["spec"].get("nodeName") for p in self.pods_of(name).values()),
                       "the pods of %s to have a node" % name)
            self.assertEqual({pod["spec"]["nodeName"] for pod in self.pods_of(name).values()}, {node})
        for other in self.others(node):
            self.node("uncordon", other)


class Nodes(NodeCase):
    count = 5  # node-1 stays

    def test_that_die_take_a_job_with_them_or_not_by_its_policy(self):
        marks = {policy: str(uuid.uuid4()) for policy in POLICIES}
        jobs = [aijob("dies-" + policy.lower(), {"trainer": role(self.behind("dies"), 2, policy, restartScope="Pod", restartLimit=2,
                                                                 container={"env": [{"name": MARK, "value": marks[policy]}]})})
                for policy in POLICIES]
        limit = aijob("dies-limit", {"trainer": role(self.behind("dies"), 1, "Always", restartLimit=0)})
        self.submit_on("node-2", *jobs, limit)
        before = {}
        for policy in POLICIES:
            before[policy] = self.await_running("dies-" + policy.lower(), "trainer-0", "trainer-1")
            self.await_phase("dies-" + policy.lower(), "Running")
        self.await_phase("dies-limit", "Running")
        self.node("kill", "node-2")
        for policy in POLICIES:
            with self.subTest(policy):
                name = "dies-" + policy.lower()
                if policy not in OF_NODES:
                    self.await_phase(name, "NodeFail")
                    self.assertRegex(self.message(name), r"^trainer-\d was lost with node-2; not restarted: restartPolicy is %s; "
                                                         r"failPolicy of trainer is Any$" % policy)
                    self.assertEqual(self.restarts(name), {"trainer": 0})
                    eventually(lambda: self.pods_of(name) == {}, "its pods to go")
                    self.await_told(name, "Warning", "TrainingJobNodeFail", "was lost with node-2")
                    continue
                for which, pod in before[policy].items():
                    another = self.await_another(name, which, pod)
                    self.assertNotEqual(another["spec"]["nodeName"], "node-2")
                self.await_restarted(name, trainer=2)
                self.assertRegex(self.job(name)["status"]["restarts"]["trainer"]["lastCause"], r"^trainer-\d was lost with node-2$")
                alive = {(env[b"TRAININGJOB_REPLICA_INDEX"], env[b"TRAININGJOB_REPLICA_RESTARTCOUNT"] != b"0")
                         for env in processes.with_mark(MARK, marks[policy]).values()}
                self.assertEqual(alive, {(b"0", True), (b"1", True)})
        self.await_phase("dies-limit", "NodeFail")
        self.assertEqual(self.message("dies-limit"), "trainer-0 was lost with node-2; no restart is left: restartLimit of trainer is 0; "
                                                     "failPolicy of trainer is Any")
        self.open_gate("dies")
        self.await_end("Succeed", *("dies-" + policy.lower() for policy in OF_NODES))

    def test_that_die_let_the_healthy_members_save_their_work(self):
        path = os.path.join(self.folder, "healthy.saved")
        saves = "trap 'sleep 0.5; echo $TRAININGJOB_REPLICA_NAME >> %s; exit 0' TERM; %s" % (path, self.behind("healthy"))

        self.cluster.kubectl("label", "node", "node-3", "first=yes")
        there = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [{"key": "first", "operator": "Exists"}]}}]}}}
        here = {"terminationGracePeriodSeconds": 20, "nodeSelector": {"kubernetes.io/hostname": "node-1"}}
        self.submit(aijob("healthy", {"trainer": role(self.behind("healthy"), policy="OnNodeFail", pod=there),
                                      "pserver": role(saves, completePolicy="None", pod=here)}))
        before = self.await_running("healthy", "pserver-0", "trainer-0")
        self.assertEqual(before["trainer-0"]["spec"]["nodeName"], "node-3")
        self.await_phase("healthy", "Running")
        self.node("kill", "node-3")
        after = self.await_restarted("healthy", trainer=1, pserver=1)
        self.assertEqual(self.lines("healthy.saved"), ["pserver"])
        self.assertNotEqual(after["trainer-0"]["spec"]["nodeName"], "node-3")
        self.assertEqual(after["pserver-0"]["spec"]["nodeName"], "node-1")
        self.open_gate("healthy")
        self.await_phase("healthy", "Succeed")

    def test_that_leave_take_no_success_with_them(self):
        """Whether their pods are still there to be seen or not."""
        script = "case $TRAININGJOB_REPLICA_INDEX in 0) exit 0;; esac; "
        self.submit_on("node-4", aijob("keeps", {"trainer": role(self.traced("keeps", script + self.behind("keeps")), 2,
                                                                 "OnNodeFail", restartScope="Pod")}))
        eventually(lambda: self.state("keeps") == "Running" and self.counts("keeps", "trainer").get("completedIndexes") == "0",
                   "trainer 0 to complete")
        self.node("kill", "node-4")
        self.cluster.kubectl("delete", "node", "node-4", "--wait=false")
        self.await_restarted("keeps", trainer=1)
        self.assertEqual(self.counts("keeps", "trainer")["completedIndexes"], "0")
        self.open_gate("keeps")
        self.await_phase("keeps", "Succeed")
        self.assertEqual(self.starts("keeps"), {"keeps-trainer-0": 1, "keeps-trainer-1": 2})

    def test_that_die_with_a_failed_pod_on_them_do_not_keep_it_from_being_replaced(self):
        """The second failure is waited after, and meanwhile the node dies: nobody there can say that the pod has gone."""
        script = "[ $TRAININGJOB_REPLICA_RESTARTCOUNT = 2 ] || exit 137; " + self.behind("failed")
        for other in self.others("node-5"):
            self.node("cordon", other)
        self.submit(aijob("failed", {"trainer": role(script, policy="OnFailure")}))
        eventually(lambda: self.restarts("failed").get("trainer") == 2, "two failures")
        before = self.pods_of("failed")["trainer-0"]
        self.assertEqual((before["spec"]["nodeName"], before["status"]["phase"]), ("node-5", "Failed"))
        self.node("kill", "node-5")
        for other in self.others("node-5"):
            self.node("uncordon", other)
        after = self.await_another("failed", "trainer-0", before)
        self.assertNotEqual(after["spec"]["nodeName"], "node-5")
        self.await_restarted("failed", trainer=2)
        self.open_gate("failed")
        self.await_phase("failed", "Succeed")


class Down(AiJobCase):
    def test_and_up_of_the_cluster_costs_no_restart(self):
        policies = ("Always", "OnFailure", "OnNodeFail", "ExitCode")
        script = "[ $TRAINYARD_ATTEMPT = 0 ] || exit 0; sleep 1000"
        self.submit(*(aijob(policy.lower(), {"trainer": role(script, 2, policy, restartScope="Pod", restartLimit=0)})
                      for policy in policies))
        for policy in policies:
            self.await_state(policy.lower(), "Running")
        self.assertEqual(self.cluster.down().returncode, 0)
        self.cluster.process.wait()
        self.cluster.start()
        for policy in policies:
            with self.subTest(policy):
                status = self.await_state(policy.lower(), "Succeed")["status"]
                self.assertEqual((status["restartTotal"], status["restarts"]["trainer"]["disruptions"]), (0, 2))


class Accelerators(NodeCase):
    count = 4

    def gpu(self, name, gpus=1, **more):
        return aijob(name, {"trainer": role(self.behind("gpu"), restartScope="Pod",
                                            container={"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}, **more)})

    def status_of(self, node, status):
        self.cluster.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", "-p", json.dumps({"status": status}))

    def fails(self, name, node, fail, sign):
        """That such a failure of the accelerators of a node moves those who use them, and nobody else."""
        jobs = [self.gpu(name + "-moves", policy="OnNodeFail", restartLimit=1), self.gpu(name + "-ends", policy="OnFailure"),
                aijob(name + "-without", {"trainer": role(self.behind("gpu"), policy="OnNodeFail")})]
        self.submit_on(node, *jobs)
        for job in jobs:
            self.await_phase(job["metadata"]["name"], "Running")
        before = {job["metadata"]["name"]: self.pods_of(job["metadata"]["name"])["trainer-0"] for job in jobs}
        fail()
        after = self.await_another(name + "-moves", "trainer-0", before[name + "-moves"])
        self.assertNotEqual(after["spec"]["nodeName"], node)
        self.await_restarted(name + "-moves", trainer=1)
        cause = "trainer-0 lost its accelerator on %s: %s" % (node, sign)
        self.assertEqual(self.job(name + "-moves")["status"]["restarts"]["trainer"]["lastCause"], cause)
        self.assertIn(cause + "; restart 1 of 1", self.messages(name + "-moves", "Terminating"))
        self.await_phase(name + "-ends", "NodeFail")
        self.assertEqual(self.message(name + "-ends"),
                         cause + "; not restarted: restartPolicy is OnFailure; failPolicy of trainer is Any")
        self.assertEqual(self.pods_of(name + "-without")["trainer-0"]["metadata"]["uid"],
                         before[name + "-without"]["metadata"]["uid"])

    def test_are_lost_by_the_taint(self):
        self.fails("taint", "node-1",
                   lambda: self.cluster.kubectl("taint", "node", "node-1", "trainyard.dev/gpu-failed=:NoSchedule"),
                   "taint trainyard.dev/gpu-failed")

    def test_are_lost_by_a_condition_of_the_node_which_is_avoided_from_then_on(self):
        """Nothing but the pod itself keeps it from where it was: the node takes others."""
        condition = {"type": "GPUFailed", "status": "True", "reason": "Xid79", "message": "fallen off the bus"}
        self.fails("condition", "node-2", lambda: self.status_of("node-2", {"conditions": [condition]}), "condition GPUFailed")
        # With no other place it waits, and does not go back.
        for other in self.others("node-2"):
            self.node("cordon", other)
        self.submit(self.gpu("condition-waits"), aijob("condition-fine", {"trainer": role("exit 0")}))
        self.await_phase("condition-fine", "Succeed")
        eventually(lambda: "0 of 1 pods are scheduled" in (self.message("condition-waits") or ""), "it to wait")
        self.status_of("node-2", {"conditions": [{**condition, "status": "False"}]})
        for other in self.others("node-2"):
            self.node("uncordon", other)
        self.await_phase("condition-waits", "Running")

    def test_are_lost_when_the_node_has_fewer_than_it_has_given(self):
        def lose():
            self.status_of("node-3", {"allocatable": {"nvidia.com/gpu": "1"}})
        self.fails("fewer", "node-3", lose, "1 of nvidia.com/gpu are left for 2")

    def tearDown(self):
        super().tearDown()
        self.kubectl("delete", "aitj", "--all")
        eventually(lambda: not self.pods.objects, "the accelerators to be free")


class Creation(AiOperatorCase):
    """Containers that cannot be made: an image that is not there, or a ConfigMap."""

    def without_image(self, name, **more):
        """A job whose image is a folder that is not there yet."""
        return aijob(name, {"trainer": role("exit 0", container={"image": os.path.join(self.folder, name)}, restartScope="Pod", **more)})

    def configured(self, name, script, **more):
        """A job that needs a ConfigMap of its name."""
        return aijob(name, {"trainer": role(script, container={"envFrom": [{"configMapRef": {"name": name}}]}, restartScope="Pod", **more)})

    def configure(self, name):
        self.kubectl("create", "configmap", name, "--from-literal=A=1")

    def test_errors_wait_with_their_reason_when_no_restart_is_left(self):
        self.operator("--creating-duration-period", "1s")
        self.submit(self.without_image("waits-0", restartLimit=0), self.without_image("waits-1", restartLimit=1),
                    self.configured("waits-config", "exit 0", restartLimit=1))
        said = {"waits-0": "ErrImagePull: image folder %s does not exist" % os.path.join(self.folder, "waits-0"),
                "waits-1": "ErrImagePull: image folder %s does not exist" % os.path.join(self.folder, "waits-1"),
                "waits-config": "CreateContainerConfigError: "}
        for name, what in said.items():
            with self.subTest(name):
                limit = 0 if name == "waits-0" else 1
                eventually(lambda: self.restarts(name).get("trainer") == limit and what in (self.message(name) or "")
                           and self.state(name) == ("Restarting" if limit else "Creating"), "%s to wait and say why" % name)
                if limit:
                    cause = self.job(name)["status"]["restarts"]["trainer"]["lastCause"]
                    self.assertIn("trainer-0 could not be started on node-1: " + what, cause)
                self.assertEqual(self.row(name)[1:], ["0/1", str(limit)])
        # What is long in coming is welcome all the same.
        self.configure("waits-config")
        for name in ("waits-0", "waits-1"):
            os.mkdir(os.path.join(self.folder, name))
        self.await_end("Succeed", *said)
        self.assertEqual([self.restarts(name)["trainer"] for name in said], [0, 1, 1])

    def test_errors_end_the_job_where_that_is_wanted(self):
        self.operator("--creating-duration-period", "1s", "--enable-creating-failed")
        self.submit(self.without_image("fails", restartLimit=1), self.configured("fails-config", "exit 0", restartLimit=0))
        for name, limit, what in (("fails", 1, "ErrImagePull: "), ("fails-config", 0, "CreateContainerConfigError: ")):
            self.await_phase(name, "Failed")
            self.assertIn("trainer-0 could not be started on node-1: " + what, self.message(name))
            self.assertIn("; no restart is left: restartLimit of trainer is %d; failPolicy of trainer is Any" % limit, self.message(name))
            self.assertEqual(self.restarts(name), {"trainer": limit})

    def test_errors_are_looked_after_every_time(self):
        """Also when its pods have run before, and were made again."""
        self.operator("--creating-duration-period", "1s", "--enable-creating-failed")
        self.submit(self.configured("always", self.behind("always", "exit 7"), policy="OnFailure", restartLimit=4))
        eventually(lambda: self.restarts("always").get("trainer") == 1, "the first restart for the error")
        self.configure("always")
        self.await_phase("always", "Running")
        self.kubectl("delete", "configmap", "always")
        self.open_gate("always")
        self.await_phase("always", "Failed")
        self.assertEqual(self.restarts("always"), {"trainer": 4})
        self.assertIn("could not be started", self.message("always"))

    def test_errors_are_borne_before_the_time_is_over(self):
        self.operator("--enable-creating-failed")
        self.submit(self.configured("borne", "exit 0", restartLimit=0))
        eventually(lambda: self.state("borne") == "Creating" and "CreateContainerConfigError" in self.message("borne"),
                   "it to say what is missing")
        self.configure("borne")
        self.await_phase("borne", "Succeed")
        self.assertEqual(self.made("borne"), {"trainer-0": 1})


if __name__ == "__main__":
    cases.main()
