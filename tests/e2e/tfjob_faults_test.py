"""TFJobs whose pods, services and nodes go away under them.

usage: tfjob_faults_test.py TRAINYARD [unittest arguments]
"""

import json
import uuid

import cases
import processes
from cases import eventually
from tfjobs import FOREVER, JobCase, owner, role, tfjob, version

MARK = "TRAINYARD_TEST_MARK"


class Deleted(JobCase):
    """What somebody deletes with kubectl, without waiting: it may take what comes back under the name for what has to go."""

    def delete(self, kind, thing):
        self.kubectl("delete", kind, thing["metadata"]["name"], "--wait=false")

    def test_pods_are_made_again_with_the_same_name_and_do_not_count(self):
        """Whatever their policy, and however they take the order to end."""
        ends = {"always": ("Always", FOREVER), "never": ("Never", FOREVER), "exitcode": ("ExitCode", FOREVER),
                "with-0": ("OnFailure", "trap 'exit 0' TERM; while :; do sleep 0.05; done"),
                "with-1": ("ExitCode", "trap 'exit 1' TERM; while :; do sleep 0.05; done")}
        at_gate = "case $HOSTNAME in *-worker-0-*) [ -e %s ] && exit 0;; esac; "
        self.submit(*(tfjob(name, {"Worker": role(self.traced(name, at_gate % self.gate(name) + script), 2, policy)}, backoffLimit=0)
                      for name, (policy, script) in ends.items()))
        pods = {name: self.await_running(name, "worker-0", "worker-1") for name in ends}
        for name in ends:
            eventually(lambda n=name: len(self.starts(n)) == 2, "the processes of %s" % name)
        names = [pods[name]["worker-1"]["metadata"]["name"] for name in ends]
        self.kubectl("delete", "pod", *names, "--wait=false")
        for name in ends:
            with self.subTest(name):
                pod = self.await_another(name, "worker-1", pods[name]["worker-1"])
                self.assertEqual(pod["metadata"]["name"], pods[name]["worker-1"]["metadata"]["name"])
                self.await_state(name, "Running")
                self.assertEqual(self.pods_of(name)["worker-0"]["metadata"]["uid"], pods[name]["worker-0"]["metadata"]["uid"])
                status = self.job(name)["status"]
                self.assertEqual((status["restartCount"], status.get("restarts", {})), (0, {}))
                self.assertEqual(status["tfReplicaStatuses"]["Worker"]["failed"], 0)
                self.open_gate(name)
        # Worker 0 decides: one that is told to go has not succeeded, even if it then ends with 0.
        self.kubectl("delete", "pod", *(pods[name]["worker-0"]["metadata"]["name"] for name in ends), "--wait=false")
        for name in ends:
            with self.subTest(name):
                self.await_state(name, "Succeeded")
                made = [pod for what, pod in self.pods.events if what == "ADDED" and owner(pod) == self.job(name)["metadata"]["uid"]]
                self.assertEqual(len(made), 4)
                self.assertEqual(self.job(name)["status"]["restartCount"], 0)
                self.assertEqual(self.starts(name)[pods[name]["worker-1"]["metadata"]["name"]], 2)

    def test_pods_by_force_come_back_too(self):
        self.submit(tfjob("forced", {"Worker": role(self.traced("forced", self.behind("forced")), policy="Never")}))
        before = self.await_running("forced", "worker-0")["worker-0"]
        self.kubectl("delete", "pod", before["metadata"]["name"], "--force", "--grace-period=0", "--wait=false")
        self.await_another("forced", "worker-0", before)
        self.open_gate("forced")
        self.await_state("forced", "Succeeded")

    def test_services_are_made_again(self):
        self.submit(tfjob("serves", {"Worker": role(self.behind("serves"), 2, "Never")}))
        self.await_running("serves", "worker-0", "worker-1")
        before = self.services_of("serves")
        self.kubectl("delete", "service", *(s["metadata"]["name"] for s in before.values()), "--wait=false")
        uids = {s["metadata"]["uid"] for s in before.values()}

        def others():
            return sorted(s["metadata"]["name"] for s in self.services_of("serves").values() if s["metadata"]["uid"] not in uids)
        eventually(lambda: others() == sorted(s["metadata"]["name"] for s in before.values()), "others of the same names")
        eventually(lambda: self.state("serves") == "Running", "the job to run again")
        self.open_gate("serves")
        self.await_state("serves", "Succeeded")

    def test_pods_that_had_succeeded_are_not_made_again(self):
        script = 'case $HOSTNAME in *-worker-1-*) exit 0;; esac; ' + self.behind("done")
        self.submit(tfjob("done", {"Worker": role(self.traced("done", script), 2, "OnFailure"), "PS": role(FOREVER)},
                          cleanPodPolicy="None"))
        eventually(lambda: self.running("done") == ["ps-0", "worker-0"] and self.state("done") == "Running"
                   and self.counts("done", "Worker").get("completedIndexes") == "1", "worker 1 to succeed")
        pods = self.pods_of("done")
        self.kubectl("delete", "pod", pods["worker-1"]["metadata"]["name"])
        # A pass that makes the other one again would make this one too.
        self.delete("pod", pods["ps-0"])
        self.await_another("done", "ps-0", pods["ps-0"])
        self.assertEqual(sorted(self.pods_of("done")), ["ps-0", "worker-0"])
        self.await_state("done", "Running")
        self.assertEqual(self.counts("done", "Worker"), {"active": 1, "succeeded": 1, "failed": 0, "completedIndexes": "1"})
        self.open_gate("done")
        self.await_state("done", "Succeeded")
        # Nor is any of a job that has ended, whatever is asked of it; tearDown() looks at all pods that were made.
        self.kubectl("delete", "pods", "-l", "tf_job_name=done")
        for edit in ({"Worker": {"replicas": 5}}, {"Worker": {"replicas": 0}}):  # the second one is not valid: no one is left to decide
            self.patch("done", {"tfReplicaSpecs": edit, "suspend": True})
            eventually(lambda: self.job("done")["status"]["observedGeneration"] == self.job("done")["metadata"]["generation"],
                       "the change to be seen")
            self.assertEqual(self.state("done"), "Succeeded")
        plan = self.cluster.run("plan", "tfjob/done", "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        self.assertEqual(plan.stdout.splitlines()[-1], "  nothing to do")
        self.assertEqual(self.starts("done")[pods["worker-1"]["metadata"]["name"]], 1)
        self.assertEqual(self.counts("done", "Worker")["succeeded"], 2)


class Altered(JobCase):
    """What somebody changes with kubectl is put right, and the pods run on."""

    def test_services_and_the_labels_of_pods_are_repaired(self):
        self.submit(tfjob("altered", {"Worker": role(self.traced("altered", self.behind("altered")), 4, "Never")}))
        pods = self.await_running("altered", *("worker-%d" % i for i in range(4)))
        eventually(lambda: len(self.services_of("altered")) == 4, "its services")
        services = self.services_of("altered")
        changes = [{"spec": {"selector": {"tf-replica-index": "3", "more": "yes"}}},
                   {"spec": {"ports": [{"name": "other", "port": 80, "targetPort": 81}]}},
                   {"metadata": {"labels": {"tf-replica-type": None, "trainyard.dev/job-uid": "x"}}},
                   {"metadata": {"labels": {"group_name": None}}}]
        for i, change in enumerate(changes):
            self.kubectl("patch", "service", services["worker-%d" % i]["metadata"]["name"], "--type=merge", "-p", json.dumps(change))
        for i, change in enumerate(("tf-replica-index=7", "tf-replica-type-", "group_name-", "trainyard.dev/job-uid=x")):
            self.kubectl("label", "pod", pods["worker-%d" % i]["metadata"]["name"], change, "--overwrite")

        def differs(kind, thing, *parts):
            now = self.get("/api/v1/namespaces/%s/%s/%s" % (self.namespace, kind, thing["metadata"]["name"]))
            self.assertEqual(now["metadata"]["uid"], thing["metadata"]["uid"], "it is the same one")
            return [part for part in parts if now["spec"].get(part) != thing["spec"].get(part)] or (
                now["metadata"]["labels"] != thing["metadata"]["labels"])
        for seat in sorted(services):
            eventually(lambda s=seat: not differs("services", services[s], "selector", "ports"), "the service of %s as it was" % seat)
            eventually(lambda s=seat: not differs("pods", pods[s]), "the labels of %s as they were" % seat)
        self.assertEqual(set(self.starts("altered").values()), {1})
        self.await_state("altered", "Running")
        self.open_gate("altered")
        self.assertEqual(self.await_state("altered", "Succeeded")["status"]["restartCount"], 0)


class Large(JobCase):
    """Jobs whose pods cannot be told of each other by a variable. Most of their pods find no node: they are there, and cost nothing."""

    nowhere = {"nodeSelector": {"there-is": "none"}}

    def test_have_the_addresses_of_all_in_a_file(self):
        script = ("import json, os; config = json.load(open(os.environ['TF_CONFIG_FILE']));"
                  "config['task'] = json.loads(os.environ['TF_CONFIG_TASK']); assert 'TF_CONFIG' not in os.environ;"
                  "print(len(config['cluster']['ps']), config['cluster']['ps'][-1].split('.')[0], config['task'])")
        count = 4000
        self.submit(tfjob("large", {"Worker": role("/usr/bin/python3 -c \"%s\"; %s" % (script, self.behind("large")), 1, "Never"),
                                    "PS": role(FOREVER, count, **self.nowhere)}))
        pod = self.await_running("large", "worker-0")["worker-0"]
        suffix = self.job("large")["metadata"]["uid"][:5]
        eventually(lambda: self.logs(pod).strip(), "what it has read")
        self.assertEqual(self.logs(pod), "%d large-ps-%d-%s {'type': 'worker', 'index': 0}\n" % (count, count - 1, suffix))
        self.assertLess(len(json.dumps(pod)), 10000)
        config = "/api/v1/namespaces/%s/configmaps/large-config-%s" % (self.namespace, suffix)
        self.assertEqual(self.wire.ask("GET", config)[0], 200)
        self.open_gate("large")
        self.await_state("large", "Succeeded")
        eventually(lambda: self.wire.ask("GET", config)[0] == 404, "the file to go with the services")


class Nodes(JobCase):
    flags = ("--nodes", "3", "--node-grace", "2s")

    def submit_on(self, node, job, *seats):
        """With the job's pods on that node."""
        others = [n for n in ("node-1", "node-2", "node-3") if n != node]
        for other in others:
            self.assertEqual(self.cluster.run("node", "cordon", other).returncode, 0)
        self.submit(job)
        pods = self.await_running(job["metadata"]["name"], *seats)
        for other in others:
            self.assertEqual(self.cluster.run("node", "uncordon", other).returncode, 0)
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods.values()}, {node})
        return pods

    def node(self, verb, node):
        done = self.cluster.run("node", verb, node)
        self.assertEqual(done.returncode, 0, done.stderr)

    def moves(self, name, verb, node):
        """That a job whose pods are all on a node which fails goes on elsewhere, at nobody's cost, and ends well."""
        mark = str(uuid.uuid4())
        worker = role(self.behind(name), 2, "ExitCode", container={"env": [{"name": MARK, "value": mark}]})
        pods = self.submit_on(node, tfjob(name, {"Worker": worker, "PS": role(FOREVER)}, backoffLimit=0),
                              "ps-0", "worker-0", "worker-1")
        self.node(verb, node)
        for which, pod in pods.items():
            another = self.await_another(name, which, pod)
            self.assertEqual(another["metadata"]["name"], pod["metadata"]["name"])
            self.assertNotEqual(another["spec"]["nodeName"], node)
        self.await_state(name, "Running")
        status = self.job(name)["status"]
        self.assertEqual(status["restartCount"], 0)
        self.assertEqual({kind: (r["count"], r["disruptions"]) for kind, r in status["restarts"].items()},
                         {"Worker": (0, 2), "PS": (0, 1)})
        self.assertRegex(status["restarts"]["Worker"]["lastCause"], r"^worker-\d was lost with %s$" % node)
        why = json.loads(self.cluster.run("why", "tfj/" + name, "-n", self.namespace, "-o", "json").stdout)
        self.assertEqual({gone["member"]: gone["cause"] for gone in why["history"]},
                         {seat: "was lost with " + node for seat in pods})
        self.await_told(name, "Warning", "TFJobRestarting", "does not count")
        self.node("start", node)
        # Back, the node ends what was there before.
        eventually(lambda: len({env[b"HOSTNAME"] for env in processes.with_mark(MARK, mark).values()}) == 2
                   and len([e for e in processes.with_mark(MARK, mark).values() if e.get(b"TRAINYARD_ATTEMPT") == b"0"]) == 0,
                   "only the new processes to be left")
        self.open_gate(name)
        self.await_state(name, "Succeeded")
        self.assertEqual(self.job(name)["status"]["restartCount"], 0)
        eventually(lambda: not processes.with_mark(MARK, mark), "no process to be left")

    def test_that_are_drained_lose_their_pods_to_others_and_that_does_not_count(self):
        pods = self.submit_on("node-1", tfjob("drained", {"Worker": role(self.behind("drained"), 2, "ExitCode")}, backoffLimit=0),
                              "worker-0", "worker-1")
        self.cluster.kubectl("drain", "node-1", "--timeout=300s")
        self.addCleanup(self.node, "uncordon", "node-1")
        for which, pod in pods.items():
            self.assertNotEqual(self.await_another("drained", which, pod)["spec"]["nodeName"], "node-1")
        self.await_state("drained", "Running")
        self.open_gate("drained")
        self.assertEqual(self.await_state("drained", "Succeeded")["status"]["restartCount"], 0)

    def test_that_are_killed_lose_their_pods_to_others(self):
        self.moves("killed", "kill", "node-2")

    def test_that_are_cut_off_lose_their_pods_to_others(self):
        self.moves("cut-off", "stop", "node-3")


class Scaled(JobCase):
    def scale(self, name, replicas):
        self.patch(name, {"tfReplicaSpecs": {"Worker": {"replicas": replicas}}})

    def test_workers_come_and_go_and_no_index_is_there_twice(self):
        self.submit(tfjob("scales", {"Worker": role(self.traced("scales", self.behind("scales")), 2, "Never")}))
        first = self.await_running("scales", "worker-0", "worker-1")
        for replicas, begun in ((2, 2), (4, 4), (1, 4), (3, 6)):
            self.scale("scales", replicas)
            seats = ["worker-%d" % i for i in range(replicas)]
            self.await_running("scales", *seats)
            eventually(lambda: sum(self.starts("scales").values()) == begun, "all scripts to have begun")
            eventually(lambda: self.job("scales")["status"].get("ready") == "%d/%d" % (replicas, replicas)
                       and self.state("scales") == "Running", "%d to be ready" % replicas)
            eventually(lambda: (sorted(self.pods_of("scales")), sorted(self.services_of("scales"))) == (seats, seats),
                       "the rest to go")
            self.assertEqual(self.job("scales")["status"]["observedGeneration"], self.job("scales")["metadata"]["generation"])
        self.assertEqual(self.pods_of("scales")["worker-0"]["metadata"]["uid"], first["worker-0"]["metadata"]["uid"])
        self.assertEqual(self.job("scales")["status"]["restartCount"], 0)
        self.open_gate("scales")
        self.await_state("scales", "Succeeded")
        suffix = self.job("scales")["metadata"]["uid"][:5]
        self.assertEqual(self.starts("scales"),
                         {"scales-worker-%d-%s" % (i, suffix): starts for i, starts in enumerate((1, 2, 2, 1))})

    def test_workers_up_and_down_at_once_settle_at_the_last_word(self):
        self.submit(tfjob("wobbles", {"Worker": role(self.traced("wobbles", self.behind("wobbles")), 1, "Never")}))
        for replicas in (6, 1, 5, 2, 4, 3):
            self.scale("wobbles", replicas)
        self.await_running("wobbles", "worker-0", "worker-1", "worker-2")
        self.await_state("wobbles", "Running")
        self.open_gate("wobbles")
        self.await_state("wobbles", "Succeeded")
        self.starts("wobbles")

    def test_away_types_take_their_pods_with_them(self):
        self.submit(tfjob("drops", {"Worker": role(self.behind("drops"), policy="Never"), "PS": role(FOREVER, 2)}))
        self.await_running("drops", "ps-0", "ps-1", "worker-0")
        self.kubectl("patch", "tfj", "drops", "--type", "json", "-p", '[{"op": "remove", "path": "/spec/tfReplicaSpecs/PS"}]')
        eventually(lambda: (sorted(self.pods_of("drops")), sorted(self.services_of("drops"))) == (["worker-0"], ["worker-0"]),
                   "the servers to go")
        eventually(lambda: self.job("drops")["status"]["ready"] == "1/1", "the worker to be all there is")
        self.open_gate("drops")
        self.await_state("drops", "Succeeded")


class SameName(JobCase):
    def test_of_a_job_that_is_deleted_and_made_again_at_once_stands_for_the_new_one(self):
        def job(generation):
            return tfjob("again", {"Worker": role(self.behind("again-%d" % generation), 2, "Never")})
        self.submit(job(1))
        old = self.await_running("again", "worker-0", "worker-1")
        self.kubectl("delete", "tfj", "again", "--wait=false")
        self.submit(job(2))
        uid = old["worker-0"]["metadata"]["ownerReferences"][0]["uid"]
        eventually(lambda: self.job("again") and self.job("again")["metadata"]["uid"] != uid, "the new job")
        new = self.await_running("again", "worker-0", "worker-1")
        self.assertEqual({p["metadata"]["name"] for p in old.values()} & {p["metadata"]["name"] for p in new.values()}, set())
        eventually(lambda: not [thing for watch in (self.pods, self.services) for thing in list(watch.objects.values())
                                if owner(thing) == uid], "what was the old one's to go")
        self.open_gate("again-2")
        self.await_state("again", "Succeeded")
        self.assertEqual(self.job("again")["status"]["restartCount"], 0)

    def test_of_a_job_that_goes_in_the_foreground_brings_no_pods_back(self):
        self.submit(tfjob("leaves", {"Worker": role(FOREVER, 2)}))
        pods = self.await_running("leaves", "worker-0", "worker-1")
        self.kubectl("delete", "tfj", "leaves", "--cascade=foreground")
        eventually(lambda: self.jobs.of("leaves")[-1][0] == "DELETED", "the job to go")
        gone = version(self.jobs.of("leaves")[-1][1])
        for pod in pods.values():
            events = self.pods.of(pod["metadata"]["name"])
            self.assertEqual([what for what, _ in events].count("ADDED"), 1)
            self.assertEqual(events[-1][0], "DELETED")
            self.assertLess(version(events[-1][1]), gone)

    def test_of_an_orphans_former_job_does_not_make_it_the_new_ones(self):
        job = tfjob("orphans", {"Worker": role(self.behind("orphans"), policy="Never")})
        self.submit(job)
        old = self.await_running("orphans", "worker-0")["worker-0"]["metadata"]["name"]
        self.kubectl("delete", "tfj", "orphans", "--cascade=orphan")
        eventually(lambda: owner(self.pods.objects[old]) is None and self.job("orphans") is None, "the pod to be nobody's")
        self.submit(job)
        new = self.await_running("orphans", "worker-0")["worker-0"]["metadata"]["name"]
        self.await_state("orphans", "Running")
        self.assertNotEqual(new, old)
        self.open_gate("orphans")
        self.await_state("orphans", "Succeeded")
        eventually(lambda: self.pods.objects[old]["status"]["phase"] == "Succeeded", "the old one to end undisturbed")
        self.assertIsNone(owner(self.pods.objects[old]))
        self.assertIn(old, self.services.objects)

    def test_in_the_labels_of_a_pod_of_nobody_makes_it_the_jobs(self):
        labels = {"group_name": "kubeflow.org", "tf_job_name": "adopts", "tf-replica-type": "worker", "tf-replica-index": "0"}
        spec = role(self.behind("adopts"))["template"]["spec"]
        for name, job in (("stray", "adopts"), ("stranger", "another")):
            self.submit({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {**labels, "tf_job_name": job}},
                         "spec": {**spec, "restartPolicy": "Never"}})
        self.submit(tfjob("adopts", {"Worker": role(self.behind("adopts"), 2, "Never")}))
        pods = self.await_running("adopts", "worker-0", "worker-1")
        self.assertEqual(pods["worker-0"]["metadata"]["name"], "stray")
        self.assertEqual(pods["worker-0"]["metadata"]["labels"]["trainyard.dev/job-uid"], self.job("adopts")["metadata"]["uid"])
        self.assertIsNone(owner(self.pods.objects["stranger"]))
        self.open_gate("adopts")
        self.await_state("adopts", "Succeeded")


if __name__ == "__main__":
    cases.main()
