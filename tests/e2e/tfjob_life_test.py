"""A TFJob from kubectl apply to its end: what is made for it, what its processes are told, and who decides its end.

usage: tfjob_life_test.py TRAINYARD [unittest arguments]
"""

import json
import re

import cases
from cases import eventually
from tfjobs import FOREVER, JobCase, current, role, tfjob

PRINT = 'echo "$TF_CONFIG"; '

# What a process of a job does first: a parameter server listens where TF_CONFIG says that it is found, and a worker
# speaks with all of them.
PEER = r"""
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
if task["type"] == "ps":
    port = int(cluster["ps"][task["index"]].rpartition(":")[2])
    with socket.create_server(("", port)) as server:
        while True:
            with server.accept()[0] as peer:
                peer.sendall(b"ps-%d" % task["index"])
for address in cluster["ps"]:
    host, _, port = address.rpartition(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5) as peer:
                print(peer.makefile().read(), flush=True)
            break
        except OSError:
            time.sleep(0.05)
"""


class Pods(JobCase):
    def config(self, pod):
        return json.loads(eventually(lambda: self.logs(pod).splitlines()[:1], "what the process prints")[0])

    def test_and_services_are_made_for_every_index_with_the_names_and_labels_of_the_original(self):
        self.submit(tfjob("shape", {"Chief": role(FOREVER), "Worker": role(FOREVER, 2), "PS": role(FOREVER), "Eval": role(FOREVER)}))
        seats = ["chief-0", "eval-0", "ps-0", "worker-0", "worker-1"]
        pods = self.await_running("shape", *seats)
        self.assertEqual(sorted(self.services_of("shape")), seats)
        job = self.job("shape")
        uid = job["metadata"]["uid"]
        self.assertRegex(uid[:5], "^[0-9a-f]{5}$")
        for kind, things in (("pods", pods), ("services", self.services_of("shape"))):
            for which, thing in things.items():
                with self.subTest(kind, seat=which):
                    meta, (slug, index) = thing["metadata"], which.split("-")
                    self.assertEqual(meta["name"], "shape-%s-%s" % (which, uid[:5]))
                    labels = {"group_name": "kubeflow.org", "tf_job_name": "shape", "tf-replica-type": slug,
                              "tf-replica-index": index}
                    self.assertEqual({key: meta["labels"].get(key) for key in labels}, labels)
                    self.assertEqual(meta["ownerReferences"],
                                     [{"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "name": "shape", "uid": uid,
                                       "controller": True, "blockOwnerDeletion": True}])
        for which, service in self.services_of("shape").items():
            spec = service["spec"]
            self.assertEqual((spec["clusterIP"], spec["publishNotReadyAddresses"]), ("None", True))
            self.assertEqual([(p["name"], p["port"]) for p in spec["ports"]], [("tfjob-port", 2222)])
            labels = pods[which]["metadata"]["labels"]
            self.assertEqual({key: labels.get(key) for key in spec["selector"]}, spec["selector"])
        self.assertEqual([p["metadata"]["labels"]["tf-replica-index"] for p in self.cluster.get(
            "pods", "-n", self.namespace, "-l", "tf_job_name=shape,tf-replica-type=worker", "--sort-by=metadata.name")["items"]],
            ["0", "1"])

    def test_are_told_their_cluster_and_their_task_by_tf_config(self):
        port = {"ports": [{"name": "other", "containerPort": 1}, {"name": "tfjob-port", "containerPort": 4000}]}
        self.submit(tfjob("told", {"Chief": role(PRINT + FOREVER), "Worker": role(PRINT + FOREVER, 11),
                                   "PS": role(PRINT + FOREVER, 2, container=port), "Evaluator": role(PRINT + FOREVER)}))
        seats = ["chief-0", "eval-0", "ps-0", "ps-1", *("worker-%d" % i for i in range(11))]
        pods = self.await_running("told", *seats)
        suffix = self.job("told")["metadata"]["uid"][:5]

        def address(which, port=2222):
            return "told-%s-%s.%s.svc:%d" % (which, suffix, self.namespace, port)
        cluster = {"chief": [address("chief-0")], "ps": [address("ps-0", 4000), address("ps-1", 4000)],
                   "worker": [address("worker-%d" % i) for i in range(11)]}
        for which, task in (("chief-0", ("chief", 0)), ("ps-1", ("ps", 1)), ("worker-0", ("worker", 0)),
                            ("worker-10", ("worker", 10)), ("eval-0", ("evaluator", 0))):
            with self.subTest(which):
                self.assertEqual(self.config(pods[which]), {"cluster": cluster, "task": {"type": task[0], "index": task[1]}})
        services = self.services_of("told")
        self.assertEqual({which: services[which]["spec"]["ports"][0]["port"] for which in ("ps-0", "worker-0")},
                         {"ps-0": 4000, "worker-0": 2222})
        self.assertEqual(pods["ps-0"]["spec"]["containers"][0]["ports"],
                         [{**p, "protocol": "TCP"} for p in port["ports"]])

    def test_that_are_alone_get_a_tf_config_too(self):
        self.submit(tfjob("alone", {"Worker": role('echo "$TF_CONFIG"; exit 0', policy="Never")}))
        self.await_state("alone", "Succeeded")
        config = json.loads(self.logs(self.pods_of("alone")["worker-0"]))
        self.assertEqual((len(config["cluster"]["worker"]), config["task"]), (1, {"type": "worker", "index": 0}))

    def test_keep_what_the_user_has_written(self):
        """Arguments, variables, labels, annotations and other containers; only the restart policy is the job's."""
        worker = role("", container={"command": ["/bin/sh", "-c", 'printf "%s|" "$MINE" "$SECOND" "$0" "$@"; exit 0'],
                                     "args": ["a b", "--flag=$(MINE)", "*"],
                                     "env": [{"name": "MINE", "value": "my own"}, {"name": "SECOND", "value": "$(MINE)!"}],
                                     "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}},
                      policy="Never", restartPolicy="Always", nodeSelector={"kubernetes.io/os": "linux"})
        worker["template"]["metadata"] = {"labels": {"team": "a", "tf_job_name": "another"}, "annotations": {"note": "n"}}
        self.submit(tfjob("kept", {"Worker": worker}, cleanPodPolicy="None"))
        self.await_state("kept", "Succeeded")
        pod = self.pods_of("kept")["worker-0"]
        self.assertEqual(self.logs(pod), "my own|my own!|a b|--flag=my own|*|")
        self.assertEqual((pod["metadata"]["labels"]["team"], pod["metadata"]["annotations"]["note"]), ("a", "n"))
        self.assertEqual(pod["metadata"]["labels"]["tf_job_name"], "kept")
        container = pod["spec"]["containers"][0]
        self.assertEqual([(e["name"], e["value"]) for e in container["env"]][:2], [("MINE", "my own"), ("SECOND", "$(MINE)!")])
        self.assertEqual(container["resources"]["limits"], {"cpu": "1", "memory": "64Mi"})
        self.assertEqual((pod["spec"]["restartPolicy"], pod["spec"]["nodeSelector"]), ("Never", {"kubernetes.io/os": "linux"}))

    def test_of_types_in_any_letter_case_have_canonical_names_in_the_status(self):
        self.submit(tfjob("letters", {"MASTER": role(PRINT + self.behind("letters")), "worker": role(FOREVER), "ps": role(FOREVER),
                                      "eVALUATOR": role(FOREVER)}))
        pods = self.await_running("letters", "chief-0", "eval-0", "ps-0", "worker-0")
        self.assertEqual(self.config(pods["chief-0"])["task"], {"type": "chief", "index": 0})
        eventually(lambda: {name: r["active"] for name, r in self.job("letters")["status"]["tfReplicaStatuses"].items()}
                   == {"Chief": 1, "Worker": 1, "PS": 1, "Eval": 1}, "all to be counted")
        self.open_gate("letters")
        self.await_state("letters", "Succeeded")

    def test_find_each_other_by_the_addresses_of_tf_config(self):
        peer = {"command": ["/usr/bin/python3", "-c", PEER]}
        elsewhere = {**peer, "ports": [{"name": "tfjob-port", "containerPort": 7777}]}
        self.submit(tfjob("peers", {"PS": role("", 2, container=elsewhere), "Worker": role("", 2, "OnFailure", container=peer)},
                          successPolicy="AllWorkers"))
        self.await_state("peers", "Succeeded")
        eventually(lambda: sorted(self.pods_of("peers")) == ["worker-0", "worker-1"], "the servers to go")
        for pod in self.pods_of("peers").values():
            self.assertEqual(self.logs(pod), "ps-0\nps-1\n")


class Conditions(JobCase):
    def test_follow_the_pods_from_created_to_succeeded(self):
        first = [{"name": "first", "image": "none", "command": ["/bin/sh", "-c", self.behind("init")]}]
        self.submit(tfjob("states", {"Worker": role(self.behind("states"), initContainers=first)}))
        job = self.await_state("states", "Created")
        self.assertNotIn("completionTime", job["status"])
        eventually(lambda: "init container first" in self.message("states"), "the message to say what is waited for")
        self.assertEqual(self.row("states")[:3], ["Created", "0/1", "0"])
        self.open_gate("init")
        job = self.await_state("states", "Running")
        self.assertEqual(job["status"]["tfReplicaStatuses"], {"Worker": {"active": 1, "succeeded": 0, "failed": 0}})
        self.assertEqual(self.row("states")[:3], ["Running", "1/1", "0"])
        self.open_gate("states")
        job = self.await_state("states", "Succeeded")
        eventually(lambda: self.row("states")[:3] == ["Succeeded", "1/1", "0"], "the row to say so")
        status = job["status"]
        self.assertEqual({c["type"]: (c["status"], c["reason"]) for c in status["conditions"]},
                         {"Created": ("False", "TFJobCreated"), "Running": ("False", "TFJobRunning"),
                          "Succeeded": ("True", "TFJobSucceeded")})
        self.assertEqual(status["observedGeneration"], job["metadata"]["generation"])
        self.assertLessEqual(job["metadata"]["creationTimestamp"], status["startTime"])
        self.assertLessEqual(status["startTime"], status["completionTime"])
        seen = [current(job)["type"] for _, job in self.jobs.of("states") if current(job)]
        self.assertEqual([state for i, state in enumerate(seen) if seen[i - 1:i] != [state]], ["Created", "Running", "Succeeded"])
        self.await_told("states", "Normal", "TFJobSucceeded", "worker-0 ended with 0")
        self.await_told("states", "Normal", "SuccessfulCreate", "made 1 pod and 1 service")

    def test_come_with_counts_that_are_right_from_the_first_moment(self):
        """Whoever waits for Succeeded reads the rest of that very status."""
        self.submit(tfjob("moment", {"Worker": role("exit 0", 3, "Never")}, successPolicy="AllWorkers"))
        self.await_state("moment", "Succeeded")
        first = next(job["status"] for _, job in self.jobs.of("moment") if (current(job) or {}).get("type") == "Succeeded")
        self.assertEqual(first["tfReplicaStatuses"]["Worker"], {"active": 0, "completedIndexes": "0-2", "failed": 0, "succeeded": 3})
        self.assertEqual(first["ready"], "3/3")

    def row(self, name):
        header, row = self.kubectl("get", "tfj", name).stdout.splitlines()
        self.assertEqual(header.split(), ["NAME", "STATE", "READY", "RESTARTS", "AGE"])
        self.assertRegex(row.split()[4], r"^\d+[smh]")
        return row.split()[1:]

    def test_say_what_pods_that_fit_nowhere_wait_for(self):
        self.submit(tfjob("greedy", {"Worker": role("exit 0", container={"resources": {"limits": {"nvidia.com/gpu": "1000"}}}),
                                     "PS": role(FOREVER)}))
        eventually(lambda: re.match(r"all 2 pods and services exist; waiting for worker-0 \(0/1 nodes are available: .*Insufficient nvidia.com/gpu", self.message("greedy") or ""),
                   "the message to say so")
        self.assertEqual((self.state("greedy"), self.job("greedy")["status"]["ready"]), ("Created", "1/2"))

    def test_are_told_by_kubectl_wait(self):
        self.submit(tfjob("waited", {"Worker": role("exit 0")}))
        done = self.kubectl("wait", "--for=condition=Succeeded", "--timeout=300s", "tfjob/waited")
        self.assertEqual(done.stdout, "tfjob.kubeflow.org/waited condition met\n")

    def test_stay_true_with_their_counters_after_the_end_whatever_is_cleaned(self):
        """Of two workers that succeed and a ps that runs on, each policy leaves other pods, and the same counts."""
        workers = {"completedIndexes": "0-1", "active": 0, "failed": 0, "succeeded": 2}
        left = {"All": [], "Running": ["worker-0", "worker-1"], "None": ["ps-0", "worker-0", "worker-1"]}
        self.submit(*(tfjob("clean-" + policy.lower(), {"Worker": role(self.behind("clean"), 2, "Never"), "PS": role(FOREVER)},
                            cleanPodPolicy=policy, successPolicy="AllWorkers") for policy in left))
        for policy in left:
            self.await_running("clean-" + policy.lower(), "ps-0", "worker-0", "worker-1")
        self.open_gate("clean")
        for policy, seats in left.items():
            with self.subTest(policy):
                name = "clean-" + policy.lower()
                self.await_state(name, "Succeeded")
                eventually(lambda: sorted(self.pods_of(name)) == seats, "pods %s to be left" % seats)
                services = ["ps-0", "worker-0", "worker-1"] if policy == "None" else []
                eventually(lambda: sorted(self.services_of(name)) == services, "services %s to be left" % services)
                ps = 1 if policy == "None" else 0
                counted = {"Worker": workers, "PS": {"active": ps, "failed": 0, "succeeded": 0}}
                eventually(lambda: self.job(name)["status"]["tfReplicaStatuses"] == counted, "the counts to be %s" % counted)
                eventually(lambda: self.job(name)["status"]["ready"] == "%d/3" % (2 + ps), "those that are ready to be counted")
        self.assertEqual(self.running("clean-none"), ["ps-0"])


class Ends(JobCase):
    def test_come_with_the_success_of_the_chief_though_workers_run(self):
        self.submit(tfjob("chief", {"Chief": role(self.behind("chief"), policy="Never"), "Worker": role(FOREVER, 2),
                                    "PS": role(FOREVER)}))
        self.await_running("chief", "chief-0", "ps-0", "worker-0", "worker-1")
        self.open_gate("chief")
        self.await_state("chief", "Succeeded")
        self.assertEqual(self.message("chief"), "chief-0 ended with 0")
        eventually(lambda: sorted(self.pods_of("chief")) == ["chief-0"], "those that still run to go")

    def test_do_not_come_with_the_success_of_workers_while_there_is_a_chief(self):
        self.submit(tfjob("boss", {"Chief": role(self.behind("boss"), policy="Never"), "Worker": role("exit 0", 2, "OnFailure")}))
        eventually(lambda: self.state("boss") == "Running" and self.counts("boss", "Worker")["succeeded"] == 2,
                   "both workers to succeed")
        self.assertEqual(self.job("boss")["status"]["ready"], "3/3")
        self.open_gate("boss")
        self.await_state("boss", "Succeeded")

    def test_are_decided_by_worker_0_without_a_chief(self):
        script = "case $HOSTNAME in *-worker-1-*) exit 0;; esac; " + self.behind("zero")
        self.submit(tfjob("zero", {"Worker": role(script, 3, "Never")}))
        eventually(lambda: self.state("zero") == "Running" and self.counts("zero", "Worker").get("completedIndexes") == "1",
                   "worker 1 to succeed")
        self.assertEqual(self.message("zero"), "2 of 3 pods run, 1 has completed")
        self.open_gate("zero")
        self.await_state("zero", "Succeeded")
        self.assertEqual(self.message("zero"), "worker-0 ended with 0")

    def test_wait_for_all_workers_where_that_is_the_policy(self):
        script = "case $HOSTNAME in *-worker-0-*) exit 0;; esac; " + self.behind("all")
        self.submit(tfjob("all", {"Chief": role("exit 0", policy="Never"), "Worker": role(script, 2, "OnFailure")},
                          successPolicy="AllWorkers"))
        eventually(lambda: self.state("all") == "Running"
                   and [self.counts("all", kind)["succeeded"] for kind in ("Chief", "Worker")] == [1, 1],
                   "all but worker 1 to succeed")
        self.open_gate("all")
        self.await_state("all", "Succeeded")
        self.assertEqual(self.counts("all", "Worker")["completedIndexes"], "0-1")

    def test_come_with_the_first_success_of_a_chief_that_would_always_be_started_again(self):
        self.submit(tfjob("always", {"Chief": role("exit 0"), "Worker": role(FOREVER)}))
        job = self.await_state("always", "Succeeded")
        self.assertNotIn("restartPolicy", job["spec"]["tfReplicaSpecs"]["Chief"])  # Always, which the pod has
        self.assertEqual(job["status"]["tfReplicaStatuses"]["Chief"]["succeeded"], 1)
        eventually(lambda: self.pods_of("always") == {}, "pods that the kubelet would start again to go")

    def test_are_not_spoilt_by_a_container_beside_the_one_that_works(self):
        chief = role("exit 0", policy="Never")
        chief["template"]["spec"]["containers"].append({"name": "sidecar", "image": "none", "command": ["sleep", "1000"]})
        self.submit(tfjob("sidecar", {"Chief": chief}))
        self.await_state("sidecar", "Succeeded")
        eventually(lambda: self.pods_of("sidecar") == {}, "the pod whose sidecar runs to go")


if __name__ == "__main__":
    cases.main()
