"""What is known to go wrong in the original operator of this kind, one test for each: here it goes right.

The numbers are those of the list in docs/aitrainingjob.md.

usage: aijob_defects_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import re
import signal
import subprocess
import uuid

import cases
import processes
from aijobs import FOREVER, ROOT, AiOperatorCase, aijob, at_first, current, role
from cases import eventually
from cluster import environment
from proxy import Proxy

MARK = "TRAINYARD_TEST_MARK"


class Defects(AiOperatorCase):
    """Each test has an operator of its own, behind something that refuses and looks at what the operator asks for."""

    flags = ("--no-operator", "--nodes", "6", "--node-grace", "1s")

    def start(self, *flags):
        self.proxy = Proxy(self.wire)
        self.addCleanup(self.proxy.close)
        return self.operator("--master", self.proxy.address, "--node-grace", "0s", *flags)

    def asked(self, method, part):
        return [path for m, path in list(self.proxy.seen) if m == method and part in path.partition("?")[0]]

    def node(self, verb, node):
        done = self.cluster.run("node", verb, node)
        self.assertEqual(done.returncode, 0, done.stderr)

    def on(self, node):
        """Of a pod's spec: it goes to that node alone."""
        return {"nodeSelector": {"kubernetes.io/hostname": node}}

    def first_on(self, node):
        """Of a pod's spec: it goes to that node if it can."""
        return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}}]}}}

    def uids(self, name):
        return {which: pod["metadata"]["uid"] for which, pod in self.pods_of(name).items()}

    def await_completed(self, name, kind, indexes):
        eventually(lambda: self.counts(name, kind).get("completedIndexes") == indexes, "%s of %s to complete" % (indexes, name))

    def test_01_a_failed_list_of_nodes_is_not_the_death_of_all_nodes(self):
        self.start()
        self.submit(aijob("d01", {"trainer": role(self.behind("d01"), 2, "Always")}))
        self.await_phase("d01", "Running")
        before = self.uids("d01")
        self.proxy.rule = lambda method, path, body: 403 if path.startswith("/api/v1/nodes") else None
        self.proxy.cut()
        eventually(lambda: [p for _, p in self.proxy.refused if p.startswith("/api/v1/nodes")], "nodes to be asked for, and refused")
        self.kubectl("label", "aitj", "d01", "looked=at")
        # One that never could see the nodes holds back as well.
        blind = self.operator("--master", self.proxy.address, "--node-grace", "0s")
        self.kubectl("annotate", "pod", "d01-trainer-0", "looked=at")
        eventually(lambda: len([p for _, p in self.proxy.refused if p.startswith("/api/v1/nodes")]) > 3, "it to be refused again")
        blind.kill()
        self.assertEqual(self.uids("d01"), before)
        self.proxy.rule = lambda method, path, body: None
        self.open_gate("d01")
        self.await_phase("d01", "Succeed")
        self.assertEqual(self.restarts("d01"), {"trainer": 0})

    def test_02_an_operator_of_one_namespace_leaves_the_others_alone(self):
        self.cluster.kubectl("create", "namespace", "d02-other")
        both = self.operator()
        self.cluster.apply(aijob("d02-there", {"trainer": role(FOREVER)}), "-n", "d02-other")
        where = ("-n", "d02-other", "-o", "jsonpath={.metadata.uid} {.status.phase}")
        eventually(lambda: " Running" in self.cluster.kubectl("get", "pod", "d02-there-trainer-0", *where, check=False).stdout, "it to run")
        before = self.cluster.kubectl("get", "pod", "d02-there-trainer-0", *where).stdout
        both.kill()
        self.start("--namespace", self.namespace, "--resync-period", "1s").await_ready()
        self.submit(aijob("d02", {"trainer": role(self.behind("d02"))}))
        self.await_phase("d02", "Running")
        seen = self.job("d02")["status"]["lastReconcileTime"]
        eventually(lambda: self.job("d02")["status"]["lastReconcileTime"] > seen, "it to be looked at again")
        self.open_gate("d02")
        self.await_phase("d02", "Succeed")
        self.assertEqual(self.cluster.kubectl("get", "pod", "d02-there-trainer-0", *where).stdout, before)
        # It does not even ask for what is elsewhere, but for what the autoscaler counts and the server's version.
        elsewhere = {path.partition("?")[0] for _, path in list(self.proxy.seen) if "/namespaces/%s" % self.namespace not in path}
        self.assertEqual(elsewhere - {"/api/v1/nodes", "/api/v1/pods", "/version"}, set())
        self.cluster.kubectl("delete", "aitj", "d02-there", "-n", "d02-other")

    def test_03_a_malformed_job_does_not_end_the_operator(self):
        self.submit(aijob("d03-null", {"trainer": None}), aijob("d03-code", {"pserver": role("exit 0")}, restartingExitCode="256"),
                    aijob("d03-gone", {"trainer": role(self.behind("d03")), "pserver": role(FOREVER)}))
        self.assertRaisesRegex(AssertionError, "should have at least 1 properties", self.submit, aijob("d03-none", {}))
        first = self.start().await_ready()
        for name in ("d03-null", "d03-code"):
            self.assertEqual(current(self.await_phase(name, "Failed"))["reason"], "InvalidSpec")
        self.await_phase("d03-gone", "Running")
        self.patch("d03-gone", {"replicaSpecs": {"pserver": None}})
        self.kubectl("patch", "aitj", "d03-gone", "--subresource=status", "--type=merge", "-p",
                     '{"status": {"RestartReplicaName": "pserver"}}')
        self.await_running("d03-gone", "trainer-0")
        eventually(lambda: self.job("d03-gone")["status"]["RestartReplicaName"] == "", "the type that is gone to be forgotten")
        self.assertIsNone(first.process.poll())
        self.assertEqual(first.terminate()[0], 0)
        second = self.operator()
        self.open_gate("d03")
        self.await_phase("d03-gone", "Succeed")
        self.assertIsNone(second.process.poll())

    def test_04_a_delete_that_fails_is_tried_again_at_a_pace(self):
        self.start()
        fails = "case $TRAININGJOB_REPLICA_INDEX in 0) %s;; esac; " % at_first(self.behind("d04-fail", "exit 3"))
        self.submit(aijob("d04", {"trainer": role(fails + self.behind("d04"), 3, "Always")}))
        self.await_phase("d04", "Running")
        for gate, wait in (("d04-fail", lambda: self.await_restarted("d04", trainer=1)), ("d04", lambda: self.await_phase("d04", "Succeed"))):
            refused = []

            def refuse(method, path, body):
                # Five times for each pod; and one answer comes late: the pod is gone by then.
                if method != "DELETE" or "/pods/" not in path or refused.count(path) >= 5:
                    return None
                refused.append(path)
                return 500
            self.proxy.rule = refuse
            self.proxy.after = lambda method, path, body: 404 if method == "DELETE" and "/pods/d04-trainer-1" in path else None
            begun = len(self.asked("DELETE", "/pods/"))
            self.open_gate(gate)
            wait()
            eventually(lambda: gate != "d04" or not self.pods_of("d04"), "its pods to go")
            self.assertEqual(len(refused), 15)
            self.assertLess(len(self.asked("DELETE", "/pods/")) - begun, 15 + 20)

    def test_05_a_pod_that_has_succeeded_stays_so_when_its_node_leaves(self):
        self.start()
        self.submit(aijob("d05", {"done": role(self.traced("d05", "exit 0"), pod=self.on("node-2")),
                                  "trainer": role(self.behind("d05"), pod=self.on("node-1"))}))
        self.await_completed("d05", "done", "0")
        self.await_phase("d05", "Running")
        self.node("kill", "node-2")
        self.cluster.kubectl("delete", "node", "node-2", "--wait=false")
        eventually(lambda: self.cluster.kubectl("get", "node", "node-2", check=False).returncode == 1, "the node to be gone")
        self.kubectl("label", "aitj", "d05", "looked=at")
        self.open_gate("d05")
        self.await_phase("d05", "Succeed")
        self.assertEqual(self.starts("d05"), {"d05-done-0": 1})

    def test_06_an_annotation_is_not_lost_when_two_write_at_once(self):
        self.start()
        raced = []

        def annotate(method, path, body):
            """Right before the operator's write arrives, the user's does."""
            if method == "PUT" and path.partition("?")[0].endswith("/d06/status") and not raced:
                raced.append(json.loads(body)["status"]["phase"])
                self.kubectl("annotate", "aitj", "d06", "Preempted=by another", "mine=too")
        self.proxy.rule = annotate
        self.submit(aijob("d06", {"trainer": role(FOREVER, 2)}))
        self.await_phase("d06", "Preempted")
        self.assertEqual(raced, ["Pending"])
        annotations = self.job("d06")["metadata"]["annotations"]
        self.assertEqual((annotations["Preempted"], annotations["mine"]), ("by another", "too"))

    def test_07_healthy_members_have_their_grace_when_a_node_fails(self):
        self.start()
        victims = {"Replica": "node-4", "All": "node-3"}
        for scope, victim in victims.items():
            name = "d07-" + scope.lower()
            saves = "trap 'sleep 0.5; echo saved >> %s; exit 0' TERM; %s" % (os.path.join(self.folder, name), self.behind("d07"))
            place = self.first_on(victim)
            place["affinity"]["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"TrainingJobName": name}}}]}
            self.submit(aijob(name, {"trainer": role(saves, 2, "OnNodeFail", restartScope=scope,
                                                     pod={**place, "terminationGracePeriodSeconds": 8})}))
        for scope, victim in victims.items():
            name = "d07-" + scope.lower()
            self.await_phase(name, "Running")
            self.assertIn(victim, {pod["spec"]["nodeName"] for pod in self.pods_of(name).values()})
            self.node("kill", victim)
        for name in ("d07-replica", "d07-all"):
            self.await_restarted(name, trainer=1)
            self.assertEqual(self.lines(name), ["saved"])
        self.open_gate("d07")
        self.await_end("Succeed", "d07-replica", "d07-all")
        for node in victims.values():
            self.node("start", node)

    def test_08_two_failures_at_once_are_two_restarts(self):
        self.start()
        mark = str(uuid.uuid4())
        self.submit(aijob("d08", {"trainer": role(self.traced("d08", self.behind("d08")), 4, "Always", restartScope="Pod",
                                                  container={"env": [{"name": MARK, "value": mark}]})}))
        self.await_phase("d08", "Running")
        eventually(lambda: sum(self.starts("d08").values()) == 4, "all to begin")
        before = self.uids("d08")
        for pid, env in processes.with_mark(MARK, mark).items():
            if env[b"TRAININGJOB_REPLICA_INDEX"] in (b"1", b"2") and b"/bin/sh" in processes.read("/proc/%d/cmdline" % pid):
                os.kill(pid, signal.SIGKILL)
        self.await_restarted("d08", trainer=2)
        after = self.uids("d08")
        self.assertEqual([before["trainer-%d" % i] == after["trainer-%d" % i] for i in range(4)], [True, False, False, True])
        self.open_gate("d08")
        self.await_phase("d08", "Succeed")
        self.assertEqual(self.restarts("d08"), {"trainer": 2})
        self.assertEqual(self.made("d08"), {"trainer-0": 1, "trainer-1": 2, "trainer-2": 2, "trainer-3": 1})

    def test_09_a_failed_pod_on_a_dead_node_is_replaced(self):
        self.start()
        script = "[ $TRAININGJOB_REPLICA_RESTARTCOUNT = 2 ] || exit 137; " + self.behind("d09")
        self.submit(aijob("d09", {"trainer": role(script, policy="OnFailure", pod=self.first_on("node-5"))}))
        eventually(lambda: self.restarts("d09").get("trainer") == 2, "two failures")
        before = self.pods_of("d09")["trainer-0"]
        self.assertEqual((before["spec"]["nodeName"], before["status"]["phase"]), ("node-5", "Failed"))
        self.node("kill", "node-5")
        self.assertNotEqual(self.await_another("d09", "trainer-0", before)["spec"]["nodeName"], "node-5")
        self.open_gate("d09")
        self.await_phase("d09", "Succeed")
        self.node("start", "node-5")

    def test_10_every_end_is_reached_and_leaves_nothing_behind(self):
        self.start("--creating-duration-period", "1s", "--enable-creating-failed")
        with self.subTest("an annotation that the documents promise"):
            self.submit(aijob("d10-node", {"trainer": role(FOREVER)}, annotations={"NodeFail": "switch 3"}),
                        aijob("d10-kept", {"trainer": role(FOREVER)}, cleanPodPolicy="None"))
            self.await_phase("d10-node", "NodeFail")
            self.assertEqual(self.made("d10-node"), {})
            self.await_phase("d10-kept", "Running")
            self.kubectl("annotate", "aitj", "d10-kept", "Failed=enough")
            self.await_phase("d10-kept", "Failed")
            self.assertEqual(self.running("d10-kept"), [])
        with self.subTest("fewer replicas"):
            self.submit(aijob("d10-fewer", {"trainer": role(self.behind("d10"), 3)}, faultTolerant=True))
            self.await_phase("d10-fewer", "Running")
            self.patch("d10-fewer", {"replicaSpecs": {"trainer": {"replicas": 1}}})
            eventually(lambda: sorted(self.pods_of("d10-fewer")) == ["trainer-0"] and self.state("d10-fewer") == "Running"
                       and self.job("d10-fewer")["status"]["ready"] == "1/1", "two of them to go")
        with self.subTest("containers that cannot be made, for the second time"):
            image = os.path.join(self.folder, "d10-image")
            self.submit(aijob("d10-image", {"trainer": role("exit 0", container={"image": image}, restartScope="Pod", restartLimit=2)}))
            self.await_phase("d10-image", "Failed")
            self.assertEqual(self.restarts("d10-image"), {"trainer": 2})
        with self.subTest("Rank0 of the job"):
            zero = "case $TRAININGJOB_REPLICA_INDEX in 0) exit %d;; esac; " + FOREVER
            self.submit(aijob("d10-rank0", {"trainer": role(zero % 0, 2)}, completePolicy="Rank0"),
                        aijob("d10-rank0-fails", {"trainer": role(zero % 3, 2)}, failPolicy="Rank0"))
            self.await_phase("d10-rank0", "Succeed")
            self.await_phase("d10-rank0-fails", "Failed")
        with self.subTest("failPolicy All, and all nodes die"):
            self.submit(aijob("d10-all", {"trainer": role(FOREVER, 2, failPolicy="All", pod=self.on("node-6"))}))
            self.await_phase("d10-all", "Running")
            self.node("kill", "node-6")
            self.await_phase("d10-all", "NodeFail")
            self.node("start", "node-6")
        self.open_gate("d10")
        self.await_phase("d10-fewer", "Succeed")
        for name in ("d10-node", "d10-fewer", "d10-image", "d10-rank0", "d10-rank0-fails", "d10-all"):
            eventually(lambda: not self.pods_of(name) and not self.services_of(name), "all of %s to go" % name)
            self.assertIn("endTime", self.job(name)["status"])

    def test_11_a_restart_is_over_though_others_have_succeeded(self):
        self.start()
        script = ("case $TRAININGJOB_REPLICA_INDEX in 0) exit 0;; 1) %s;; esac; " % at_first(self.behind("d11-fail", "exit 3")))
        self.submit(aijob("d11", {"trainer": role(script + self.behind("d11"), 2, "Always", restartScope="Pod")}),
                    aijob("d11-limited", {"trainer": role(script + FOREVER, 2, "Always", restartScope="Pod")}, timeLimit=3))
        for name in ("d11", "d11-limited"):
            self.await_completed(name, "trainer", "0")
        self.open_gate("d11-fail")
        self.await_restarted("d11", trainer=1)
        self.open_gate("d11")
        self.await_phase("d11", "Succeed")
        self.await_phase("d11-limited", "Timeout")

    def test_12_what_is_not_valid_is_told_at_once(self):
        self.start()
        self.submit(aijob("d" * 60, {"trainer": role("exit 0")}),
                    aijob("d12-code", {"trainer": role("exit 0")}, restartingExitCode="never"))
        for name, field in (("d" * 60, "metadata.name"), ("d12-code", "spec.restartingExitCode")):
            self.assertEqual(current(self.await_phase(name, "Failed"))["message"].split(":")[0], field)
            self.assertEqual(self.made(name), {})
        for field, value in (("restartPolicy", "Sometimes"), ("restartScope", "Galaxy")):
            job = aijob("d12-refused", {"trainer": {**role("exit 0"), field: value}})
            done = self.kubectl("create", "-f", "-", stdin=json.dumps(job), check=False)
            self.assertIn("spec.replicaSpecs.trainer.%s: Unsupported value" % field, done.stderr)

    def test_13_names_in_variables_resolve_conditions_are_bounded_and_services_go(self):
        self.start()
        ports = {"ports": [{"name": "aitj-1", "containerPort": 4444}, {"name": "other", "containerPort": 5555}]}
        told = os.path.join(self.folder, "d13.told")
        script = 'echo "$MY_TRAINER_INSTANCES $MY_TRAINER_HOSTS" > %s; getent hosts ${MY_TRAINER_INSTANCES%%%%,*} || exit 9; ' % told
        self.submit(aijob("d13", {"my-Trainer": role(script + "[ $TRAININGJOB_REPLICA_RESTARTCOUNT -ge 3 ] || kill -9 $$$$; exit 0",
                                                     policy="Always", container=ports)}))
        self.await_restarts_hastily("d13", "my-Trainer", 3)
        self.await_phase("d13", "Succeed")
        with open(told, encoding="ascii") as file:
            instance = "d13-my-trainer-0." + self.namespace
            self.assertEqual(file.read().split(), [instance, instance + ":4444"])
        types = [c["type"] for c in self.job("d13")["status"]["conditions"]]
        self.assertEqual(len(types), len(set(types)))
        eventually(lambda: self.services_of("d13") == {}, "the services to go")
        # Also when no pod was left to wait for.
        self.submit(aijob("d13-none", {"trainer": role(FOREVER)}))
        self.await_phase("d13-none", "Running")
        self.proxy.rule = lambda method, path, body: 500 if method == "POST" and path.partition("?")[0].endswith("/pods") else None
        self.kubectl("delete", "pod", "d13-none-trainer-0", "--wait=false")
        eventually(lambda: self.pods_of("d13-none") == {}, "the pod to go")
        self.kubectl("annotate", "aitj", "d13-none", "Failed=now")
        self.await_phase("d13-none", "Failed")
        eventually(lambda: self.services_of("d13-none") == {}, "its service to go")

    def await_restarts_hastily(self, name, kind, count):
        """Each later failure is waited after; a pod that is deleted meanwhile is made at once."""
        for restarts in range(2, count + 1):
            eventually(lambda: self.restarts(name).get(kind) == restarts, "restart %d" % restarts)
            self.kubectl("delete", "pod", "%s-%s-0" % (name, kind.lower()), "--wait=false")

    def test_14_it_needs_nothing_that_clusters_no_longer_have(self):
        """The definition is of the version that clusters have; the operator neither writes it nor needs selfLink for events."""
        with open(os.path.join(ROOT, "deploy", "crds", "aitrainingjobs.yaml"), encoding="utf-8") as file:
            self.assertEqual(re.findall(r"^apiVersion: (.*)$", file.read(), re.M), ["apiextensions.k8s.io/v1"])
        self.start()
        self.submit(aijob("d14", {"trainer": role(at_first("exit 3") + "exit 0", policy="Always")}))
        self.await_phase("d14", "Succeed")
        self.await_told("d14", "Warning", "TrainingJobRestarting", "trainer-0 exited 3")
        self.await_told("d14", "Normal", "TrainingJobSucceed", "trainer-0 ended with 0")
        paths = {path.partition("?")[0] for _, path in list(self.proxy.seen)}
        self.assertEqual([path for path in paths if "beta" in path or "customresourcedefinitions" in path], [])

    def test_15_only_the_status_is_written_and_an_edit_meanwhile_stays(self):
        self.start()
        edited = []

        def edit(method, path, body):
            if method == "PUT" and path.partition("?")[0].endswith("/d15/status") and not edited:
                edited.append(True)
                self.patch("d15", {"replicaSpecs": {"trainer": {"replicas": 2}}})
        self.proxy.rule = edit
        self.submit(aijob("d15", {"trainer": role(self.behind("d15"))}, faultTolerant=True))
        self.await_running("d15", "trainer-0", "trainer-1")
        self.await_phase("d15", "Running")
        job = self.job("d15")
        self.assertEqual((job["spec"]["replicaSpecs"]["trainer"]["replicas"], job["status"]["observedGeneration"]), (2, 2))
        self.open_gate("d15")
        self.await_phase("d15", "Succeed")
        for method in ("PUT", "PATCH", "POST"):
            self.assertEqual([p for p in self.asked(method, "/aitrainingjobs/") if not p.partition("?")[0].endswith("/status")], [])

    def test_16_what_the_documents_say_to_type_is_there(self):
        texts = {}
        for folder, _, names in os.walk(ROOT):
            if folder.startswith((os.path.join(ROOT, "build"), os.path.join(ROOT, ".git"))):
                continue
            for name in names:
                if name.endswith(".md"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        texts[os.path.join(folder, name)] = file.read()
        missing = []
        for path, text in texts.items():
            for target in re.findall(r"\]\(([^)#:]+)\)", text):
                if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                    missing.append("%s: %s" % (path, target))
            # In the sense of a command line: the first words of what stands in a block or between ticks.
            for command in set(re.findall(r"(?:^\$? ?|`)((?:scripts|bench|examples|deploy)/[\w./-]+)", text, re.M)):
                if not os.path.exists(os.path.join(ROOT, command)):
                    missing.append("%s: %s" % (path, command))
        self.assertEqual(missing, [])
        commands = {found for text in texts.values() for found in re.findall(r"(?:^\$? ?|`)trainyard ([a-z]+)\b", text, re.M)}
        self.assertIn("operator", commands)
        for command in sorted(commands):
            done = subprocess.run([self.cluster.trainyard, command, "--help"], capture_output=True, text=True, env=environment(),
                                  timeout=300, check=False)
            self.assertEqual((command, done.returncode), (command, 0), done.stderr)

    def test_17_what_is_logged_at_the_start_names_the_namespace(self):
        operator = self.start("--namespace", self.namespace).await_ready()
        self.assertIn(" in namespace %s\n" % self.namespace, operator.output())
        self.assertNotIn("%", operator.output())


if __name__ == "__main__":
    cases.main()
