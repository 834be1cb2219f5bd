"""The operator of AITrainingJobs as a process of its own: its command line, what it logs, and that it can be killed.

usage: aijob_operator_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import re
import subprocess
import types

import cases
from aijobs import FOREVER, ROOT, AiJobCase, AiOperatorCase, aijob, at_first, role
from cases import eventually
from cluster import environment
from proxy import Proxy
from tfjob_operators import OperatorProcess

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def decode_all(text):
    """The documents of a text of JSON, one after the other."""
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    return documents


class CommandLine(AiOperatorCase):
    flags = ("--no-operator", "--nodes", "2", "--capacity", "cpu=32,memory=64Gi,example.com/npu=4")

    def test_of_the_original_works_as_it_is_written_there(self):
        """The address counts, and not the kubeconfig's, which is needed only for who we are."""
        with open(self.cluster.kubeconfig, encoding="utf-8") as file:
            elsewhere = re.sub(r"https://127\.0\.0\.1:\d+", "https://127.0.0.1:1", file.read())
        path = os.path.join(self.folder, "elsewhere")
        with open(path, "w", encoding="utf-8") as file:
            file.write(elsewhere)
        at = "%s:%d" % (self.wire.host, self.wire.port)
        there = types.SimpleNamespace(trainyard=self.cluster.trainyard, kubeconfig=path, home=self.cluster.home)
        operator = OperatorProcess(there, "--master", at, "--v", "4", "--thread-num", "1000", "--logtostderr", "--leader-elect=true",
                                   "--enable-creating-failed=true", "--lease-namespace", self.namespace)
        self.addCleanup(operator.kill)
        operator.await_ready()
        self.submit(aijob("original", {"trainer": role(at_first("exit 3") + "exit 0", 2, "Always")}))
        self.await_phase("original", "Succeed")
        eventually(operator.leads, "it to lead")
        self.assertEqual(self.cluster.get("leases", "-n", self.namespace)["items"][0]["metadata"]["name"], "trainyard-operator")
        self.assertIn("trainyard: watching tfjobs, pytorchjobs and aitrainingjobs at https://%s\n" % at, operator.output())
        self.assertIn("controller=AITrainingJob key=%s/original" % self.namespace, operator.output())

    def test_takes_an_address_without_tls(self):
        proxy = Proxy(self.wire)
        self.addCleanup(proxy.close)
        self.operator("--master", proxy.address, "--namespace", self.namespace).await_ready()
        self.submit(aijob("plain", {"trainer": role("exit 0")}))
        self.await_phase("plain", "Succeed")
        self.assertIn(("POST", "/api/v1/namespaces/%s/pods" % self.namespace), [(m, p.split("?")[0]) for m, p in proxy.seen])

    def test_says_how_much_is_logged(self):
        said = {}
        for v in (0, 1, 4):
            operator = self.operator("--v", str(v), "--namespace", self.namespace).await_ready()
            name = "logged-%d" % v
            self.submit(aijob(name, {"trainer": role(self.behind(name))}))
            self.await_phase(name, "Running")
            self.open_gate(name)
            self.await_phase(name, "Succeed")
            self.assertEqual(operator.terminate()[0], 0)
            said[v] = {level for level in (" INFO ", " DEBUG ")
                       if any(level in line and name in line for line in operator.output().splitlines())}
        self.assertEqual(said, {0: set(), 1: {" INFO "}, 4: {" INFO ", " DEBUG "}})

    def test_is_refused_where_it_is_wrong(self):
        for flags in (("--v", "-1"), ("--v", "much"), ("--master", "a b"), ("--master", "https://"), ("--thread-num", "0"),
                      ("--creating-duration-period", "0s"), ("--resync-period", "1ms"), ("--accelerators", "a b"),
                      ("--accelerator-conditions", "?"), ("--namespace", "A B"), ("--leader-elect=perhaps",), ("--nonsense",), ("--master", ":"),
                      ("--leader-elect-lease-duration", "inf")):
            with self.subTest(flags):
                done = subprocess.run([self.cluster.trainyard, "operator", "--kubeconfig", self.cluster.kubeconfig, *flags],
                                      capture_output=True, text=True, env=environment(), timeout=300, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(flags[0].partition("=")[0], done.stderr)
        for flags, part in ((("--metrics-bind-address", "x"), "'x'"), (("--health-probe-bind-address", "300.1.1.1:80"), "300.1.1.1"),
                            (("--leader-elect", "--leader-elect-lease-duration", "1s"), "lease duration")):
            with self.subTest(flags):
                done = subprocess.run([self.cluster.trainyard, "operator", "--kubeconfig", self.cluster.kubeconfig, *flags],
                                      capture_output=True, text=True, env=environment(), timeout=300, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(part, done.stderr)

    def test_names_other_accelerators_and_their_signs(self):
        self.operator("--accelerators", "example.com/npu,example.com/tpu", "--accelerator-conditions", "NpuBroken",
                      "--namespace", self.namespace)
        self.submit(aijob("npu", {"trainer": role(self.behind("npu"), policy="OnNodeFail",
                                                  container={"resources": {"limits": {"example.com/npu": "1"}}})}))
        self.await_phase("npu", "Running")
        before = self.pods_of("npu")["trainer-0"]
        node = before["spec"]["nodeName"]
        self.cluster.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", "-p",
                             '{"status": {"conditions": [{"type": "NpuBroken", "status": "True"}]}}')
        self.assertNotEqual(self.await_another("npu", "trainer-0", before)["spec"]["nodeName"], node)
        self.await_restarted("npu", trainer=1)
        self.assertEqual(self.job("npu")["status"]["restarts"]["trainer"]["lastCause"],
                         "trainer-0 lost its accelerator on %s: condition NpuBroken" % node)
        self.open_gate("npu")
        self.await_phase("npu", "Succeed")

    def test_says_how_often_a_quiet_job_is_looked_at(self):
        self.operator("--resync-period", "1s", "--namespace", self.namespace)
        self.submit(aijob("quiet", {"trainer": role(self.behind("quiet"))}))
        self.await_phase("quiet", "Running")
        seen = self.job("quiet")["status"]["lastReconcileTime"]
        eventually(lambda: self.job("quiet")["status"]["lastReconcileTime"] > seen, "it to be looked at again", 12)
        self.open_gate("quiet")
        self.await_phase("quiet", "Succeed")

    def test_keeps_to_one_namespace(self):
        self.cluster.kubectl("create", "namespace", "elsewhere")
        self.cluster.apply(aijob("there", {"trainer": role("exit 0")}), "-n", "elsewhere")
        self.submit(aijob("here", {"trainer": role("exit 0")}))
        self.operator("--namespace", self.namespace)
        self.await_phase("here", "Succeed")
        self.assertNotIn("status", self.cluster.get("aitj", "there", "-n", "elsewhere"))
        self.cluster.kubectl("delete", "aitj", "there", "-n", "elsewhere")

    def test_of_times_of_the_election_is_heeded(self):
        times = ("--leader-elect", "--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s",
                 "--leader-elect-retry-period", "500ms", "--lease-namespace", "elected")
        self.cluster.kubectl("create", "namespace", "elected")
        first = self.operator(*times)
        eventually(first.leads, "the first to lead")
        second = self.operator(*times).await_ready()
        self.assertFalse(second.leads())
        self.submit(aijob("elected", {"trainer": role(self.traced("elected", self.behind("elected")), 2)}))
        self.await_phase("elected", "Running")
        first.kill()
        eventually(second.leads, "the second to lead", 12)  # with the usual times it would be 15 s
        self.open_gate("elected")
        self.await_phase("elected", "Succeed")
        self.assertEqual(set(self.starts("elected").values()), {1})


class Operators(AiOperatorCase):
    SEATS = ["pserver-0", *("trainer-%d" % i for i in range(3))]

    def several(self, prefix, count):
        """Jobs whose trainer 1 fails once, and all are made again with it; their names."""
        names = ["%s-%d" % (prefix, i) for i in range(count)]
        fails = "case $TRAININGJOB_REPLICA_INDEX in 1) %s;; esac; " % at_first("exit 137")
        for name in names:
            self.submit(aijob(name, {"trainer": role(self.traced(name, fails + self.behind(prefix)), 3, "OnFailure", restartLimit=1),
                                     "pserver": role(self.traced(name, FOREVER), completePolicy="None")}, faultTolerant=True))
        return names

    def end_well(self, prefix, names):
        """That all run again with one restart, and end; no pod was ever there twice."""
        for name in names:
            self.await_restarted(name, trainer=1, pserver=1)
            eventually(lambda: self.starts(name)["%s-trainer-1" % name] == 2, "the second run of %s" % name)
        self.open_gate(prefix)
        for name in names:
            self.assertEqual(self.await_phase(name, "Succeed")["status"]["RestartCount"], {"trainer": 1, "pserver": 1})
            self.assertEqual(self.made(name)["trainer-1"], 2)
            self.assertLessEqual(set(self.made(name).values()), {1, 2})
            self.starts(name)

    def pods_made(self):
        return sum(1 for what, _ in list(self.pods.events) if what == "ADDED")

    def test_that_are_killed_again_and_again_lose_nothing(self):
        names = self.several("killed", 3)
        for _ in range(5):
            before = self.pods_made()
            slow = self.operator("--kube-api-qps", "12")
            eventually(lambda: self.pods_made() > before, "a pod to be made")
            slow.kill()
        self.operator()
        self.end_well("killed", names)

    def test_that_were_away_when_jobs_ended_catch_up(self):
        first = self.operator()
        self.submit(aijob("away", {"trainer": role(self.behind("away"), 2)}),
                    aijob("away-asked", {"trainer": role(FOREVER)}), aijob("away-limited", {"trainer": role(FOREVER)}, timeLimit=2))
        for name in ("away", "away-asked", "away-limited"):
            self.await_phase(name, "Running")
        first.kill()
        self.open_gate("away")
        self.kubectl("annotate", "aitj", "away-asked", "Preempted=for another")
        eventually(lambda: {p["status"]["phase"] for p in self.pods_of("away").values()} == {"Succeeded"}, "its pods to end")
        self.operator()
        self.await_phase("away", "Succeed")
        self.await_phase("away-asked", "Preempted")
        self.await_phase("away-limited", "Timeout")

    def test_count_for_prometheus(self):
        operator = self.operator().await_ready()
        self.submit(aijob("measured", {"trainer": role(at_first("exit 137") + self.behind("measured"), policy="Always",
                                                       restartScope="Pod")}))
        self.await_restarted("measured", trainer=1)
        running, succeeded = ('trainyard_jobs{kind="AITrainingJob",state="%s"}' % state for state in ("Running", "Succeed"))
        eventually(lambda: operator.metrics().get(running) == 1, "the job to be counted")
        before = operator.metrics()[succeeded]
        restarts = {name: value for name, value in operator.metrics().items() if name.startswith("trainyard_restarts_total")}
        self.assertEqual(list(restarts.values()), [1])
        for part in ('role="trainer"', 'cause="Program"'):
            self.assertIn(part, list(restarts)[0])
        self.open_gate("measured")
        self.await_phase("measured", "Succeed")
        eventually(lambda: (operator.metrics()[running], operator.metrics()[succeeded]) == (0, before + 1), "the end to be counted")

    def test_ask_for_nothing_that_deploy_does_not_allow_them(self):
        """All that they ask for in a job's life is among the rules of the role that they are given."""
        done = self.cluster.kubectl("annotate", "--local", "-f", os.path.join(ROOT, "deploy", "rbac.yaml"), "a=b", "-o", "json")
        allowed = {(group, resource, verb) for document in decode_all(done.stdout) for rule in document.get("rules", [])
                   for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
        proxy = Proxy(self.wire)
        self.addCleanup(proxy.close)
        self.operator("--master", proxy.address, "--leader-elect").await_ready()
        self.submit({"apiVersion": "v1", "kind": "Pod",
                     "metadata": {"name": "stray", "labels": {"GroupName": "elasticdeeplearning.ai", "TrainingJobName": "allowed",
                                                              "TrainingJobReplicaName": "trainer", "TrainingJobReplicaIndex": "2"}},
                     "spec": {**role(self.behind("allowed"))["template"]["spec"], "restartPolicy": "Never"}})
        self.submit(aijob("allowed", {"trainer": role(at_first("exit 137") + self.behind("allowed"), 3, "Always", restartScope="Pod"),
                                      "pserver": role(FOREVER, completePolicy="None")}, faultTolerant=True, cleanPodPolicy="None"))
        eventually(lambda: self.state("allowed") == "Running" and self.restarts("allowed")["trainer"] >= 1, "the job to run")
        self.open_gate("allowed")
        self.await_phase("allowed", "Succeed")
        self.submit(aijob("allowed-too", {"trainer": role("exit 0")}, faultTolerant=True))
        self.await_phase("allowed-too", "Succeed")
        # Whoever has authenticated may ask for the version.
        asked = {used(method, path) for method, path in list(proxy.seen) if path != "/version"}
        self.assertIn(("elasticdeeplearning.ai", "aitrainingjobs/status", "update"), asked)
        self.assertEqual(sorted(asked - allowed), [])


def used(method, path):
    """(group, resource, verb) of a request."""
    path, _, query = path.partition("?")
    parts = path.strip("/").split("/")
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    verb = VERBS.get(method) or ("watch" if "watch=" in query else "list" if len(parts) == 1 else "get")
    return group, "/".join([parts[0], *parts[2:]]), verb


class TwoAtOnce(AiOperatorCase):
    """Without an election nobody keeps two from working; they must not harm the jobs."""

    pods_may_come_late = True

    def test_make_no_pod_twice(self):
        self.operator().await_ready()
        self.operator().await_ready()
        Operators.end_well(self, "double", Operators.several(self, "double", 4))


class Plan(AiJobCase):
    def run_plan(self, *args, stdin=None):
        return self.cluster.run("plan", *args, input=stdin)

    def test_of_a_file_shows_what_would_be_made(self):
        job = aijob("new", {"trainer": role("exit 0", 2), "my-ps": role("exit 0")})
        done = self.run_plan("-f", "-", stdin=json.dumps(job))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        first, second, *rest = done.stdout.splitlines()
        self.assertEqual(first, "AITrainingJob default/new: New -> Pending")
        self.assertIn("TrainingJobPending: 0 of 3 pods are scheduled", second)
        self.assertEqual(sorted(line for line in rest if line.startswith("  create ")),
                         sorted("  create %s %s: it is missing" % (kind, seat) for kind in ("pod", "service")
                                for seat in ("my-ps-0", "trainer-0", "trainer-1")))
        told = json.loads(self.run_plan("-f", "-", "-o", "json", stdin=json.dumps(job)).stdout)
        self.assertEqual((told["kind"], told["state"], told["nextState"], len(told["actions"])), ("AITrainingJob", "New", "Pending", 6))

    def test_of_a_file_tells_fields_that_the_kind_does_not_have(self):
        for job, field in ((aijob("typo", {"trainer": role("exit 0")}, timelimit=3), "spec.timelimit"),
                           (aijob("typo", {"trainer": {**role("exit 0"), "replica": 3}}), "spec.replicaSpecs.trainer.replica")):
            done = self.run_plan("-f", "-", stdin=json.dumps(job))
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("AITrainingJob typo: %s: there is no such field" % field, done.stderr)

    def test_of_a_job_shows_what_would_be_done_now(self):
        self.submit(aijob("runs", {"trainer": role(FOREVER, 2)}, timeLimit=600))
        self.await_phase("runs", "Running")
        where = ("-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        for kind in ("aitj", "aitrainingjob", "aitrainingjobs"):
            done = self.run_plan(kind + "/runs", *where)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^AITrainingJob %s/runs: Running\n  TrainingJobRunning: all 2 pods run\n  nothing to do\n"
                                          r"  look again in \d+m[\d.]+s\n$" % self.namespace)
        done = self.run_plan("aitj/nowhere", *where)
        self.assertEqual(done.returncode, 1)
        for part in ("nowhere", "there are: ", "runs"):
            self.assertIn(part, done.stderr)
        self.kubectl("annotate", "aitj", "runs", "Failed=enough")
        self.await_phase("runs", "Failed")
        done = self.run_plan("aitj/runs", *where)
        self.assertEqual(done.stdout.splitlines()[0], "AITrainingJob %s/runs: Failed" % self.namespace)


if __name__ == "__main__":
    cases.main()
