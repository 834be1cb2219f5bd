"""An AITrainingJob from kubectl apply to its end: what is made for it, and what its processes are told.

usage: aijob_life_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import re

import cases
from aijobs import FOREVER, ROOT, AiJobCase, aijob, owner, role
from cases import eventually

PORT = {"name": "aitj-2222", "containerPort": 2222}

# Prints what the operator has told the process, and whatever else begins as that does.
TELL = r"""
import json, os
print(json.dumps({k: v for k, v in os.environ.items() if k.split("_")[0] in ("TRAININGJOB", "MY", "PSERVER", "TRAINER")}), flush=True)
"""

# A pserver listens at the ports that it was told; a trainer speaks with all of them by the names that it was told, and
# finds itself.
PEER = r"""
import os, socket, subprocess, time
own = os.environ["TRAININGJOB_SERVICE"]
while subprocess.run(["getent", "hosts", own], stdout=subprocess.DEVNULL).returncode != 0:
    time.sleep(0.05)
if os.environ["TRAININGJOB_REPLICA_NAME"] == "pserver":
    with socket.create_server(("", int(os.environ["TRAININGJOB_PORTS"]))) as server:
        while True:
            with server.accept()[0] as peer:
                peer.sendall(os.environ["TRAININGJOB_REPLICA_INDEX"].encode())
for address in os.environ["PSERVER_HOSTS"].split(","):
    host, _, port = address.rpartition(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5) as peer:
                print(host, peer.makefile().read(), flush=True)
            break
        except OSError:
            time.sleep(0.05)
"""


def python(program):
    return {"command": ["/usr/bin/python3", "-c", program]}


def spelled(variables):
    """The same variables as the original design spells them: the last word in mixed case."""
    heads = {name: name.rpartition("_") for name in variables if not name.endswith(("NAMESPACE", "RESTARTCOUNT"))}
    return {head + "_" + last.capitalize(): variables[name] for name, (head, _, last) in heads.items()}


class Pods(AiJobCase):
    def printed(self, pod, container="aitj-main"):
        """What the process of a container prints."""
        return json.loads(eventually(lambda: self.logs(pod, container).splitlines()[:1], "what the process prints")[0])

    def test_and_services_are_made_for_every_index_with_the_names_and_labels_of_the_original(self):
        trainer = role(FOREVER, 2, container={"ports": [PORT, {"name": "web", "containerPort": 80}]})
        trainer["template"]["metadata"] = {"labels": {"team": "template", "JobName": "wrong"}, "annotations": {"note": "n"}}
        job = aijob("shape", {"Trainer": trainer, "my-ps": role(FOREVER)}, priority="high", frameworkType="paddle")
        job["metadata"]["labels"] = {"team": "job", "cost": "a"}
        self.submit(job)
        seats = ["my-ps-0", "trainer-0", "trainer-1"]
        pods = self.await_running("shape", *seats)
        eventually(lambda: sorted(self.services_of("shape")) == seats, "the services")
        uid = self.job("shape")["metadata"]["uid"]
        for kind, things in (("pods", pods), ("services", self.services_of("shape"))):
            for which, thing in things.items():
                with self.subTest(kind, seat=which):
                    meta, (name, _, index) = thing["metadata"], which.rpartition("-")
                    self.assertEqual(meta["name"], "shape-" + which)
                    labels = {"GroupName": "elasticdeeplearning.ai", "TrainingJobName": "shape", "TrainingJobReplicaName": name,
                              "TrainingJobReplicaIndex": index}
                    self.assertEqual({key: meta["labels"].get(key) for key in labels}, labels)
                    self.assertEqual(meta["ownerReferences"],
                                     [{"apiVersion": "elasticdeeplearning.ai/v1", "kind": "AITrainingJob", "name": "shape",
                                       "uid": uid, "controller": True, "blockOwnerDeletion": True}])
        labels = pods["trainer-1"]["metadata"]["labels"]
        wanted = {"JobName": "shape", "PodRole": "trainer", "RestartCount": "0", "priority": "high", "FrameworkType": "paddle",
                  "team": "template", "cost": "a"}
        self.assertEqual({key: labels.get(key) for key in wanted}, wanted)
        self.assertEqual(pods["my-ps-0"]["metadata"]["labels"]["team"], "job")
        self.assertEqual(pods["trainer-0"]["metadata"]["annotations"]["note"], "n")
        self.assertEqual({pod["spec"]["restartPolicy"] for pod in pods.values()}, {"Never"})
        for which, service in self.services_of("shape").items():
            spec = service["spec"]
            self.assertEqual(spec["clusterIP"], "None")
            self.assertEqual([(p["name"], p["port"]) for p in spec.get("ports", [])],
                             [] if which == "my-ps-0" else [("aitj-2222", 2222)])
            labels = pods[which]["metadata"]["labels"]
            self.assertEqual({key: labels.get(key) for key in spec["selector"]}, spec["selector"])
        listed = self.cluster.get("pods", "-n", self.namespace, "-l", "TrainingJobName=shape,TrainingJobReplicaName=trainer")
        self.assertEqual(len(listed["items"]), 2)

    def test_are_told_who_they_are_and_where_the_others_are(self):
        """In every container: the one that works, one beside it, and one before it."""
        beside = {"name": "beside", "image": "none", **python(TELL), "ports": [{"name": "aitj-9", "containerPort": 9}]}
        before = {"name": "before", "image": "none", **python(TELL)}
        trainer = role("", 2, container={**python(TELL), "ports": [PORT, {"name": "web", "containerPort": 80},
                                                                   {"name": "aitj-x", "containerPort": 3333}]},
                       pod={"initContainers": [before]})
        trainer["template"]["spec"]["containers"].append(beside)
        self.submit(aijob("told", {"my-Trainer": trainer, "pserver": role("", container=python(TELL))}, cleanPodPolicy="None"))
        self.await_phase("told", "Succeed")
        pods, here = self.pods_of("told"), self.namespace
        trainers = ["told-my-trainer-%d.%s" % (i, here) for i in (0, 1)]
        everybody = {
            "MY_TRAINER_INSTANCES": ",".join(trainers), "MY_TRAINER_INSTANCES_NUM": "2",
            "MY_TRAINER_PORTS": "2222,3333", "MY_TRAINER_PORTS_NUM": "2",
            "MY_TRAINER_HOSTS": ",".join("%s:%d" % (t, port) for t in trainers for port in (2222, 3333)),
            "MY_TRAINER_HOSTS_NUM": "4",
            "PSERVER_INSTANCES": "told-pserver-0." + here, "PSERVER_INSTANCES_NUM": "1", "PSERVER_PORTS": "",
            "PSERVER_PORTS_NUM": "0", "PSERVER_HOSTS": "", "PSERVER_HOSTS_NUM": "0",
            "TRAININGJOB_NAME": "told", "TRAININGJOB_NAMESPACE": here, "TRAININGJOB_REPLICA_RESTARTCOUNT": "0"}
        trainer = {"TRAININGJOB_REPLICA_NAME": "my-trainer", "TRAININGJOB_REPLICA_TYPE": "my-Trainer",
                   "TRAININGJOB_REPLICA_INDEX": "1", "TRAININGJOB_SERVICE": trainers[1]}
        server = {"TRAININGJOB_REPLICA_NAME": "pserver", "TRAININGJOB_REPLICA_TYPE": "pserver",
                  "TRAININGJOB_REPLICA_INDEX": "0", "TRAININGJOB_SERVICE": "told-pserver-0." + here}
        for which, container, own in (("my-trainer-1", "aitj-main", {**trainer, "TRAININGJOB_PORTS": "2222,3333"}),
                                      ("my-trainer-1", "beside", {**trainer, "TRAININGJOB_PORTS": ""}),
                                      ("my-trainer-1", "before", {**trainer, "TRAININGJOB_PORTS": ""}),
                                      ("pserver-0", "aitj-main", {**server, "TRAININGJOB_PORTS": ""})):
            with self.subTest(which, container=container):
                told = {**everybody, **own}
                self.assertEqual(self.printed(pods[which], container), {**told, **spelled(told)})

    def test_find_each_other_by_the_names_that_they_are_told(self):
        server = role("", 2, container={**python(PEER), "ports": [{"name": "aitj-7777", "containerPort": 7777}]},
                      completePolicy="None")
        self.submit(aijob("peers", {"pserver": server, "trainer": role("", 2, container=python(PEER))}, cleanPodPolicy="None"))
        self.await_phase("peers", "Succeed")
        for index in (0, 1):
            self.assertEqual(self.logs(self.pods_of("peers")["trainer-%d" % index]),
                             "".join("peers-pserver-%d.%s %d\n" % (i, self.namespace, i) for i in (0, 1)))

    def test_with_the_network_of_their_node_still_find_names(self):
        def host(**more):
            return role("until getent hosts ${OWN_INSTANCES}; do sleep 0.05; done" if not more else "exit 0",
                        pod={"hostNetwork": True, **more})
        self.submit(aijob("host", {"unset": host(), "set": host(dnsPolicy="Default"), "own": role(self.behind("host"))}, cleanPodPolicy="None"))
        eventually(lambda: self.counts("host", "unset").get("succeeded") == 1, "the other to be found by its name")
        self.open_gate("host")
        self.await_phase("host", "Succeed")
        self.assertIn("host-own-0." + self.namespace, self.logs(self.pods_of("host")["unset-0"]))
        policies = {which: pod["spec"].get("dnsPolicy") for which, pod in self.pods_of("host").items()}
        self.assertEqual((policies["unset-0"], policies["set-0"]), ("ClusterFirstWithHostNet", "Default"))
        self.assertIn(policies["own-0"], ("ClusterFirst", None))

    def test_keep_what_the_user_has_written(self):
        main = {"command": ["/bin/sh", "-c", 'printf "%s|" "$MINE" "$SECOND" "$TRAININGJOB_NAME" "$0" "$@"; exit 0'],
                "args": ["a b", "--flag=$(MINE)", "*"],
                "env": [{"name": "MINE", "value": "my own"}, {"name": "SECOND", "value": "$(MINE)!"},
                        {"name": "TRAININGJOB_NAME", "value": "mine too"}]}
        self.submit(aijob("kept", {"trainer": role("", container=main, pod={"restartPolicy": "Always", "schedulerName": "theirs",
                                                                            "nodeName": "node-1"})},
                          schedulerName="ours", cleanPodPolicy="None"))
        self.await_phase("kept", "Succeed")
        pod = self.pods_of("kept")["trainer-0"]
        self.assertEqual(self.logs(pod), "my own|my own!|kept|a b|--flag=my own|*|")
        self.assertEqual((pod["spec"]["restartPolicy"], pod["spec"]["schedulerName"]), ("Never", "ours"))

    def test_that_are_deleted_come_back_and_that_is_no_restart(self):
        self.submit(aijob("comes-back", {"trainer": role(self.behind("comes-back"), 2)}))
        before = self.await_running("comes-back", "trainer-0", "trainer-1")
        self.await_phase("comes-back", "Running")
        self.kubectl("delete", "pod", "comes-back-trainer-1", "--wait=false")
        self.kubectl("delete", "service", "comes-back-trainer-0")
        after = self.await_another("comes-back", "trainer-1", before["trainer-1"])
        self.assertEqual(after["metadata"]["name"], "comes-back-trainer-1")
        eventually(lambda: sorted(self.services_of("comes-back")) == ["trainer-0", "trainer-1"], "the service to be made again")
        self.await_phase("comes-back", "Running")
        self.open_gate("comes-back")
        self.assertEqual(self.await_phase("comes-back", "Succeed")["status"]["restartTotal"], 0)
        self.assertEqual(self.made("comes-back"), {"trainer-0": 1, "trainer-1": 2})

    def test_go_with_their_job(self):
        self.submit(aijob("leaves", {"trainer": role(FOREVER, 2)}, faultTolerant=True))
        self.await_running("leaves", "trainer-0", "trainer-1")
        uid = self.job("leaves")["metadata"]["uid"]
        eventually(lambda: self.kubectl("get", "configmap", "leaves-members", check=False).returncode == 0, "the members")
        self.kubectl("delete", "aitj", "leaves")
        eventually(lambda: not [thing for watch in (self.pods, self.services) for thing in list(watch.objects.values())
                                if owner(thing) == uid], "what was its own to go")
        eventually(lambda: self.kubectl("get", "configmap", "leaves-members", check=False).returncode == 1, "the members to go")

    def test_of_a_job_made_again_under_its_name_are_the_new_ones(self):
        """They have the names of the old ones, which must have gone."""
        def job(generation):
            return aijob("again", {"trainer": role(self.traced("again", self.behind("again-%d" % generation)), 2)})
        self.submit(job(1))
        old = self.await_running("again", "trainer-0", "trainer-1")
        eventually(lambda: len(self.starts("again")) == 2, "the processes")
        self.kubectl("delete", "aitj", "again", "--wait=false")
        self.submit(job(2))
        uid = owner(old["trainer-0"])
        eventually(lambda: self.job("again") and self.job("again")["metadata"]["uid"] != uid, "the new job")
        self.await_running("again", "trainer-0", "trainer-1")
        self.open_gate("again-2")
        self.await_phase("again", "Succeed")
        self.assertEqual(self.starts("again"), {"again-trainer-0": 2, "again-trainer-1": 2})
        self.assertEqual(self.job("again")["status"]["restartTotal"], 0)


class Life(AiJobCase):
    def test_goes_through_its_phases(self):
        first = {"name": "first", "image": "none", "command": ["/bin/sh", "-c", self.behind("init")]}
        self.submit(aijob("phases", {"trainer": role(self.behind("phases"), 2, pod={"initContainers": [first],
                                                                                    "nodeSelector": {"ready": "yes"}})}))
        eventually(lambda: re.match(r"0 of 2 pods are scheduled; waiting for trainer-0 \(0/1 nodes are available: .*\) and 1 other$",
                                    self.message("phases") or ""), "the message to say what is waited for")
        self.assertEqual((self.state("phases"), self.row("phases")), ("Pending", ["Pending", "0/2", "0"]))
        self.assertEqual(self.counts("phases", "trainer")["pending"], 2)
        self.cluster.kubectl("label", "node", "node-1", "ready=yes")
        self.await_phase("phases", "Creating")
        eventually(lambda: "init container first" in self.message("phases"), "the message to say what is waited for")
        eventually(lambda: self.counts("phases", "trainer").get("scheduled") == 2, "both to be counted")
        self.assertNotIn("startRunningTime", self.job("phases")["status"])
        self.open_gate("init")
        status = self.await_phase("phases", "Running")["status"]
        self.assertEqual((status["replicaStatuses"]["trainer"], status["ready"]), ({"active": 2, "size": 2}, "2/2"))
        self.assertEqual(self.message("phases"), "all 2 pods run")
        self.assertEqual(self.row("phases"), ["Running", "2/2", "0"])
        self.open_gate("phases")
        job = self.await_phase("phases", "Succeed")
        status = job["status"]
        self.assertEqual(self.message("phases"), "all 2 of trainer ended with 0")
        self.assertEqual([p for p in self.phases("phases") if p != "Terminating"], ["Pending", "Creating", "Running", "Succeed"])
        self.assertEqual({c["type"]: (c["status"], c["reason"]) for c in status["conditions"] if c["type"] != "Terminating"},
                         {"Pending": ("False", "TrainingJobPending"), "Creating": ("False", "TrainingJobCreating"),
                          "Running": ("False", "TrainingJobRunning"), "Succeed": ("True", "TrainingJobSucceed")})
        self.assertEqual((status["RestartCount"], status["RestartReplicaName"]), ({"trainer": 0}, ""))
        self.assertEqual(status["observedGeneration"], job["metadata"]["generation"])
        times = [job["metadata"]["creationTimestamp"], *(status[key] for key in ("startTime", "startRunningTime", "endTime"))]
        self.assertEqual(times, sorted(times))
        eventually(lambda: self.row("phases") == ["Succeed", "2/2", "0"], "the row to say so")
        eventually(lambda: self.pods_of("phases") == {} and self.services_of("phases") == {}, "its pods and services to go")

    def test_is_shown_by_kubectl(self):
        self.submit(aijob("shown", {"trainer": role(self.behind("shown"))}))
        self.await_phase("shown", "Running")
        header, row = self.kubectl("get", "aitj", "shown").stdout.splitlines()
        self.assertEqual(header.split(), ["NAME", "PHASE", "READY", "RESTARTS", "PROGRESS", "AGE"])
        self.assertEqual(row.split()[:4], ["shown", "Running", "1/1", "0"])
        self.assertRegex(row.split()[4], r"^\d+[smh]")
        self.assertIn("its pod runs", self.kubectl("get", "aitj", "shown", "-o", "wide").stdout)
        self.open_gate("shown")
        done = self.kubectl("wait", "--for=condition=Succeed", "--timeout=300s", "aitj/shown")
        self.assertEqual(done.stdout, "aitrainingjob.elasticdeeplearning.ai/shown condition met\n")
        done = self.kubectl("wait", "--for=jsonpath={.status.phase}=Succeed", "--timeout=300s", "aitrainingjobs/shown")
        self.await_told("shown", "Normal", "SuccessfulCreate", "made 1 pod and 1 service")
        self.await_told("shown", "Normal", "TrainingJobSucceed", "trainer-0 ended with 0")
        described = self.kubectl("describe", "aitj", "shown").stdout
        for part in ("SuccessfulCreate", "TrainingJobSucceed", "trainer-0 ended with 0"):
            self.assertIn(part, described.partition("\nEvents:")[2])
        # An example of kubectl explain is part of what the definition promises.
        self.assertIn("restartScope", self.kubectl("explain", "aitj.spec.replicaSpecs").stdout)

    def test_is_scaled_by_kubectl(self):
        self.submit(aijob("scaled", {"trainer": role(self.behind("scaled")), "evaluator": role(FOREVER, completePolicy="None")},
                          faultTolerant=True))
        self.await_phase("scaled", "Running")
        self.kubectl("scale", "aitj", "scaled", "--replicas=3")
        self.await_running("scaled", "evaluator-0", "trainer-0", "trainer-1", "trainer-2")
        eventually(lambda: self.row("scaled")[1] == "4/4", "all to be ready")
        scale = self.get((self.path % self.namespace) + "/scaled/scale")
        self.assertEqual((scale["spec"]["replicas"], scale["status"]["replicas"]), (3, 3))
        self.kubectl("scale", "aitj", "scaled", "--replicas=2", "--current-replicas=3")
        self.await_running("scaled", "evaluator-0", "trainer-0", "trainer-1")
        self.open_gate("scaled")
        self.assertEqual(self.await_phase("scaled", "Succeed")["status"]["restartTotal"], 0)

    def test_is_not_ended_by_a_size_that_cannot_be(self):
        self.submit(aijob("workers", {"worker": role(self.behind("sizes"), 2)}, faultTolerant=True),
                    aijob("fixed", {"trainer": role(self.behind("sizes"), 2, edlPolicy="Never")}),
                    aijob("paused", {"trainer": role(self.behind("sizes"))}, faultTolerant=True))
        for name in ("workers", "fixed", "paused"):
            self.await_phase(name, "Running")
        self.kubectl("scale", "aitj", "workers", "--replicas=3")  # which is about trainers, and it has none
        self.kubectl("scale", "aitj", "fixed", "paused", "--replicas=0")
        eventually(lambda: self.message("fixed") == "all 2 pods run; trainer has 2 pods, not 0: edlPolicy is Never", "it to say so")
        eventually(lambda: self.message("paused") == "there is no pod to run: all have 0 replicas" and not self.pods_of("paused"),
                   "its pod to go")
        self.kubectl("scale", "aitj", "paused", "--replicas=1")
        self.await_phase("paused", "Running")
        eventually(lambda: self.job("workers")["status"]["observedGeneration"] == 2, "it to be looked at")
        self.assertEqual(self.running("workers"), ["worker-0", "worker-1"])
        self.open_gate("sizes")
        self.await_end("Succeed", "workers", "fixed", "paused")

    def test_of_the_shape_that_the_originals_example_has_works(self):
        """A single trainer that is found by its node's network, with a codes' list and policies of every kind."""
        path = os.path.join(self.folder, "paddle.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(r"""
kind: AITrainingJob
apiVersion: "elasticdeeplearning.ai/v1"
metadata: {name: paddle-mnist}
spec:
  restartingExitCode: 137,128
  cleanPodPolicy: All
  replicaSpecs:
    trainer:
      restartPolicy: OnNodeFailWithExitCode
      restartLimit: 1
      failPolicy: Rank0
      completePolicy: All
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          hostNetwork: true
          containers:
          - name: "aitj-trainer"
            image: any/image
            command: ["/bin/bash"]
            args: ["-c", "echo $TRAINER_HOSTS > %s; [ $TRAININGJOB_REPLICA_RESTARTCOUNT = 1 ] || exit 137"]
            ports: [{containerPort: 24446, name: aitj-24446}]
            resources:
              requests: {cpu: 0.1, memory: '64Mi'}
              limits: {cpu: 0.1, memory: '64Mi'}
""" % os.path.join(self.folder, "paddle.hosts"))
        done = self.cluster.run("plan", "-f", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.kubectl("apply", "-f", path)
        job = self.await_phase("paddle-mnist", "Succeed")
        self.assertEqual(job["status"]["RestartCount"], {"trainer": 1})
        self.assertEqual(self.lines("paddle.hosts"), ["paddle-mnist-trainer-0.%s:24446" % self.namespace])
        eventually(lambda: self.pods_of("paddle-mnist") == {}, "its pod to go")

    def test_is_defined_as_deploy_says(self):
        done = self.cluster.kubectl("diff", "-f", os.path.join(ROOT, "deploy", "crds", "aitrainingjobs.yaml"), check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    cases.main()
