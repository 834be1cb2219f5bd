"""Jobs whose pods start together or not at all.

usage: gang_test.py TRAINYARD [unittest arguments]
"""

import cases
from aijobs import AiJobCase, AiOperatorCase, aijob, role
from cases import eventually

ONE = {"resources": {"requests": {"cpu": "1"}}}


class GangCase(AiJobCase):
    """On one node of 6 cpus."""

    flags = ("--nodes", "1", "--capacity", "cpu=6,memory=64Gi")

    def gang(self, name, size, script=None, **spec):
        trainer = role(script or self.behind(name), size, container=ONE, **spec.pop("role", {}))
        return aijob(name, {"trainer": trainer}, **{"gang": True, **spec})

    def tearDown(self):
        super().tearDown()
        self.kubectl("delete", "aitj,pods", "--all", "--now")
        eventually(lambda: not self.pods.objects, "the cluster to be free again")

    def bound(self, name):
        """How many pods of the job have a node."""
        return sum(1 for pod in self.pods_of(name).values() if pod["spec"].get("nodeName"))

    def ever_bound(self, name):
        """How many pods of the job ever had a node at the same time, at each change, in order."""
        uid, nodes, seen = self.job(name)["metadata"]["uid"], {}, []
        for what, pod in list(self.pods.events):
            if not any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", [])):
                continue
            nodes[pod["metadata"]["uid"]] = what != "DELETED" and bool(pod["spec"].get("nodeName"))
            seen.append(sum(nodes.values()))
        return seen

    def await_waiting(self, name, size, text):
        eventually(lambda: len(self.pods_of(name)) == size, "all pods of %s to exist" % name)
        eventually(lambda: text in (self.message(name) or ""), "%s to say: %s" % (name, text))
        self.assertEqual(self.bound(name), 0)
        self.assertEqual(self.state(name), "Pending")

    def why(self, name):
        done = self.cluster.run("why", "aitj/" + name, "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def end(self, *names):
        for name in names:
            self.open_gate(name)
        self.await_end("Succeed", *names)


class GangRules:
    """What holds whoever starts the gangs."""

    def test_a_gang_that_does_not_fit_holds_nothing_and_one_that_fits_runs(self):
        self.submit(self.gang("large", 40))
        self.await_waiting("large", 40, "gang of 40 needs 40 cpu; 6 are free")
        why = self.why("large")
        self.assertIn("gang of 40 needs 40 cpu; 6 are free", why)
        self.assertIn("trainer-0 and 39 more members wait", why)
        self.submit(self.gang("fits", 6, "exit 0"))
        self.await_end("Succeed", "fits")
        self.assertEqual(set(self.ever_bound("large")), {0})
        self.await_waiting("large", 40, "gang of 40 needs 40 cpu; 6 are free")

    def test_a_gang_starts_whole_when_room_is_freed(self):
        self.submit(self.gang("first", 4))
        self.await_phase("first", "Running")
        self.submit(self.gang("second", 5))
        self.await_waiting("second", 5, "gang of 5 needs 5 cpu; 2 are free")
        self.end("first")
        self.await_phase("second", "Running")
        self.assertEqual(self.bound("second"), 5)
        self.end("second")

    def test_two_gangs_of_which_one_fits_run_one_after_the_other(self):
        self.submit(self.gang("one", 4, "sleep 1"), self.gang("other", 4, "sleep 1"))
        self.await_end("Succeed", "one", "other")
        for name in ("one", "other"):
            self.assertEqual(self.job(name)["status"].get("gang"), None)
            self.assertEqual(max(self.made(name).values()), 1)

    def test_one_member_of_a_running_gang_is_replaced(self):
        script = self.behind("restarts")
        self.submit(self.gang("restarts", 6, script, role={"policy": "OnFailure", "restartScope": "Pod"}))
        self.await_phase("restarts", "Running")
        victim = self.pods_of("restarts")["trainer-2"]["metadata"]["name"]
        self.kubectl("delete", "pod", victim, "--now")
        eventually(lambda: self.state("restarts") == "Running" and self.bound("restarts") == 6
                   and max(self.made("restarts").values()) == 2, "the gang to be whole again")
        self.end("restarts")

    def test_an_elastic_group_starts_with_its_least(self):
        elastic = {"edlPolicy": "Manual", "minReplicas": 4, "maxReplicas": 12}
        self.submit(self.gang("elastic", 10, role=elastic, faultTolerant=True))
        eventually(lambda: self.bound("elastic") == 6, "as many as fit to have a node")
        self.assertEqual(len(self.pods_of("elastic")), 10)
        self.kubectl("delete", "aitj", "elastic")


class PodGroups(GangRules, GangCase):
    """The embedded cluster's scheduler starts them."""

    def test_tells_the_scheduler_by_a_pod_group(self):
        self.submit(self.gang("told", 7))
        self.await_waiting("told", 7, "gang of 7 needs 7 cpu; 6 are free")
        group = self.cluster.get("podgroups.scheduling.x-k8s.io", "told-aitrainingjob", "-n", self.namespace)
        self.assertEqual(group["spec"], {"minMember": 7})
        self.assertEqual(group["metadata"]["ownerReferences"][0]["uid"], self.job("told")["metadata"]["uid"])
        for pod in self.pods_of("told").values():
            self.assertEqual(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "told-aitrainingjob")
            condition = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
            self.assertEqual((condition["status"], condition["reason"]), ("False", "Unschedulable"))
            self.assertEqual(condition["message"], "gang of 7 needs 7 cpu; 6 are free")
        self.kubectl("delete", "aitj", "told")
        eventually(lambda: "told" not in self.kubectl("get", "podgroups", "-o", "name").stdout, "its group to go with it")

    def test_keeps_the_gangs_of_two_kinds_with_one_name_apart(self):
        worker = {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "tensorflow", "image": "x", "command": ["sleep", "1000"], **ONE}]}}}
        self.submit(self.gang("same", 3), {
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "same"},
            "spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}, "tfReplicaSpecs": {"Worker": worker}}})

        def running(kind):
            pods = self.cluster.get("pods", "-n", self.namespace)["items"]
            return sum(pod["metadata"]["ownerReferences"][0]["kind"] == kind and pod["status"].get("phase") == "Running"
                       for pod in pods)
        eventually(lambda: (running("AITrainingJob"), running("TFJob")) == (3, 2), "both gangs to run")
        groups = self.cluster.get("podgroups.scheduling.x-k8s.io", "-n", self.namespace)["items"]
        self.assertEqual({group["metadata"]["name"]: group["spec"]["minMember"] for group in groups},
                         {"same-aitrainingjob": 3, "same-tfjob": 2})
        self.kubectl("delete", "aitj,tfjob", "same")

    def test_groups_may_say_otherwise_than_their_job(self):
        roles = {"trainer": role(self.behind("mixed"), 7, container=ONE), "watcher": role("sleep 1000", gang=False)}
        self.submit(aijob("mixed", roles, gang=True))
        eventually(lambda: self.bound("mixed") == 1, "the pod outside of the gang to have a node")
        eventually(lambda: "gang of 7" in (self.message("mixed") or ""), "the job to say what it waits for")
        self.assertEqual(self.bound("mixed"), 1)
        self.kubectl("delete", "aitj", "mixed")


class Gates(GangRules, GangCase, AiOperatorCase):
    """An operator starts them by scheduling gates, on a scheduler that knows no gangs of its own."""

    flags = (*GangCase.flags, "--no-operator")

    def setUp(self):
        super().setUp()
        self.operator("--gang-scheduler", "gates")

    def test_pods_wait_behind_a_gate(self):
        self.submit(self.gang("gated", 7))
        self.await_waiting("gated", 7, "gang of 7 needs 7 cpu; 6 are free")
        for pod in self.pods_of("gated").values():
            self.assertEqual(pod["spec"]["schedulingGates"], [{"name": "trainyard.dev/gang"}])


class Volcano(GangCase, AiOperatorCase):
    """Volcano would start them; here the test looks at what it would see."""

    flags = (*GangCase.flags, "--no-operator")

    @classmethod
    def prepare(cls):
        super().prepare()
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        cls.cluster.apply({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "podgroups.scheduling.volcano.sh"},
            "spec": {"group": "scheduling.volcano.sh", "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups"},
                     "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}})
        cls.cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", "crd/podgroups.scheduling.volcano.sh")

    def test_tells_volcano_by_its_pod_group(self):
        self.operator("--gang-scheduler", "volcano")
        self.submit(self.gang("told", 3), self.gang("elsewhere", 2, schedulerName="another"))
        for name, size, scheduler in (("told", 3, "volcano"), ("elsewhere", 2, "another")):
            eventually(lambda: len(self.pods_of(name)) == size, "the pods of %s to exist" % name)
            group = self.cluster.get("podgroups.scheduling.volcano.sh", name + "-aitrainingjob", "-n", self.namespace)
            self.assertEqual(group["spec"], {"minMember": size})
            for pod in self.pods_of(name).values():
                self.assertEqual(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], name + "-aitrainingjob")
                self.assertEqual(pod["spec"]["schedulerName"], scheduler)


if __name__ == "__main__":
    cases.main()
