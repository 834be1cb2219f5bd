"""What follows when a process of an AITrainingJob fails: by policy, by exit code, by scope, by limit.

usage: aijob_restarts_test.py TRAINYARD [unittest arguments]
"""

import os
import signal
import uuid

import cases
import processes
from aijobs import FOREVER, AiJobCase, aijob, at_first, current, role, seconds, version
from cases import eventually

MARK = "TRAINYARD_TEST_MARK"


def marked(mark):
    return {"env": [{"name": MARK, "value": mark}]}


class Policies(AiJobCase):
    def test_decide_by_how_a_process_ended(self):
        # $$ is $ in a container's command, as everywhere in Kubernetes.
        failures = {"exit-1": ("exit 1", 1), "exit-137": ("exit 137", 137), "kill": ("kill -KILL $$$$; sleep 1000", 137),
                    "segv": ("kill -SEGV $$$$; sleep 1000", 139)}
        by_code = "restartPolicy %s restarts after exit codes 137,143-150 only"
        refusals = {"Always": None, "OnFailure": None, "Never": "restartPolicy is Never", "OnNodeFail": "restartPolicy is OnNodeFail",
                    "ExitCode": by_code % "ExitCode", "OnNodeFailWithExitCode": by_code % "OnNodeFailWithExitCode"}
        self.submit(*(aijob("%s-%s" % (policy.lower(), how), {"trainer": role(at_first(script) + "exit 0", policy=policy, restartScope="Pod")},
                            restartingExitCode=" 137, 143-150") for policy in refusals for how, (script, _) in failures.items()))
        for policy, refusal in refusals.items():
            for how, (_, code) in failures.items():
                with self.subTest(policy, how=how):
                    name = "%s-%s" % (policy.lower(), how)
                    again = refusal is None or ("ExitCode" in policy and code == 137)
                    status = self.await_phase(name, "Succeed" if again else "Failed")["status"]
                    self.assertEqual(status["RestartCount"], {"trainer": 1 if again else 0})
                    cause = "trainer-0 exited %d (Error) on node-1" % code
                    if again:
                        self.assertEqual(status["restarts"]["trainer"]["lastCause"], cause)
                    else:
                        self.assertEqual(self.message(name), "%s; not restarted: %s; failPolicy of trainer is Any" % (cause, refusal))
                        self.assertEqual((current(self.job(name))["reason"], status["replicaStatuses"]["trainer"]["failed"]),
                                         ("TrainingJobFailed", 1))

    def test_without_a_word_are_never_and_all(self):
        self.submit(aijob("default", {"trainer": role("exit 1")}))
        self.await_phase("default", "Failed")
        replica = self.job("default")["spec"]["replicaSpecs"]["trainer"]
        self.assertEqual({key: replica[key] for key in ("restartPolicy", "restartScope", "failPolicy", "completePolicy")},
                         {"restartPolicy": "Never", "restartScope": "All", "failPolicy": "Any", "completePolicy": "All"})

    def test_of_exit_codes_take_lists_blanks_and_ranges(self):
        lists = {"137,128": {137, 128}, "137, 128": {137, 128}, " 3 ,\t128-255": {3, 128, 137}, 137: {137}, "": set(), "0-255": {1, 3, 128, 137}}
        jobs = [(i, codes, code) for i, codes in enumerate(lists) for code in (1, 3, 128, 137)]
        self.submit(*(aijob("list-%d-%d" % (i, code), {"trainer": role(at_first("exit %d" % code) + "exit 0", policy="ExitCode")},
                            restartingExitCode=codes) for i, codes, code in jobs))
        for i, codes, code in jobs:
            with self.subTest(codes, code=code):
                self.await_phase("list-%d-%d" % (i, code), "Succeed" if code in lists[codes] else "Failed")

    def test_look_at_the_containers_that_count_alone(self):
        def several(*scripts, **more):
            made = role("", policy="ExitCode", restartScope="Pod", **more)
            made["template"]["spec"]["containers"] = [{"name": name, "image": "none", "command": ["/bin/sh", "-c", script]}
                                                      for name, script in scripts]
            return {"trainer": made}
        first = {"name": "first", "image": "none", "command": ["/bin/sh", "-c", at_first("exit 137") + "exit 0"]}
        self.submit(aijob("side-fails", several(("aitj-a", "exit 0"), ("side", "exit 1"))),
                    aijob("side-goes-on", several(("aitj-a", "exit 0"), ("side", FOREVER))),
                    aijob("both-work", several(("aitj-a", "exit 0"), ("aitj-b", self.behind("both-work")))),
                    aijob("one-fails", several(("aitj-a", FOREVER), ("aitj-b", "exit 3"))),
                    aijob("one-again", several(("aitj-a", at_first(FOREVER) + "exit 0"), ("aitj-b", at_first("exit 137") + "exit 0")), restartingExitCode="137"),
                    aijob("first-again", several(("aitj-a", "exit 0"), pod={"initContainers": [first]}), restartingExitCode="137"))
        self.await_end("Succeed", "side-fails", "side-goes-on", "one-again", "first-again")
        self.assertEqual([self.restarts(name)["trainer"] for name in ("one-again", "first-again")], [1, 1])
        self.assertIn("in container first", self.job("first-again")["status"]["restarts"]["trainer"]["lastCause"])
        self.await_phase("one-fails", "Failed")
        self.assertIn("trainer-0 exited 3 (Error) on node-1; not restarted: ", self.message("one-fails"))
        self.await_phase("both-work", "Running")
        self.open_gate("both-work")
        self.await_phase("both-work", "Succeed")


class Limits(AiJobCase):
    def test_end_the_job_with_one_failure_more(self):
        self.submit(*(aijob("limit-%d" % limit, {"trainer": role(self.traced("limit-%d" % limit, "exit 3"), policy="OnFailure",
                                                                 restartLimit=limit)}) for limit in (0, 1)))
        for limit in (0, 1):
            with self.subTest(limit):
                name = "limit-%d" % limit
                self.await_phase(name, "Failed")
                self.assertEqual(self.message(name), "trainer-0 exited 3 (Error) on node-1; no restart is left: restartLimit of trainer "
                                                     "is %d; failPolicy of trainer is Any" % limit)
                self.assertEqual((self.restarts(name), self.starts(name)), ({"trainer": limit}, {name + "-trainer-0": limit + 1}))
                self.await_told(name, "Warning", "TrainingJobFailed", "exited 3")

    def test_are_each_types_own(self):
        """Unless a restart is one of all: then it counts for each of them."""
        def roles(scope):
            return {"trainer": role(at_first("exit 3") + FOREVER, policy="Always", restartScope=scope, restartLimit=1),
                    "pserver": role(at_first(self.behind("own", "exit 4")) + FOREVER, policy="Always", restartScope=scope, restartLimit=1)}
        self.submit(aijob("own-pod", roles("Pod")), aijob("own-all", roles("All")))
        self.await_restarted("own-pod", trainer=1, pserver=0)
        self.await_restarted("own-all", trainer=1, pserver=1)
        self.open_gate("own")
        self.await_restarted("own-pod", trainer=1, pserver=1)
        self.assertEqual(self.state("own-all"), "Running")  # its pserver waits for no gate any more
        self.assertEqual({self.row(name)[2] for name in ("own-pod", "own-all")}, {"2"})

    def test_are_told_with_the_number_of_the_restart_and_its_cause(self):
        script = "case $TRAININGJOB_REPLICA_INDEX in 1) %s;; esac; %s" % (at_first("exit 137"), self.behind("told"))
        self.submit(aijob("told", {"trainer": role(script, 2, "Always", restartScope="Pod", restartLimit=5)}))
        text = "trainer-1 exited 137 (Error) on node-1; restart 1 of 5"
        eventually(lambda: text in self.messages("told", "Terminating"), "the condition to say so")
        self.await_told("told", "Warning", "TrainingJobRestarting", text)
        self.await_phase("told", "Running")
        self.assertEqual((self.row("told"), self.job("told")["status"]["RestartReplicaName"]), (["Running", "2/2", "1"], ""))
        self.open_gate("told")
        self.await_phase("told", "Succeed")
        self.assertEqual(self.phases("told")[-1], "Succeed")
        self.assertIn("Terminating", self.phases("told"))

    def test_or_none_the_first_restart_is_at_once_and_the_second_waits(self):
        """Meanwhile what has failed stays to be read, and whose restart is waited for is said."""
        script = 'echo "run $TRAININGJOB_REPLICA_RESTARTCOUNT"; [ $TRAININGJOB_REPLICA_RESTARTCOUNT = 2 ] || exit 137'
        self.submit(aijob("waits", {"trainer": role(script, policy="Always", restartScope="Pod")}, cleanPodPolicy="None"),
                    aijob("waits-all", {"trainer": role(script, policy="Always"), "pserver": role(FOREVER, completePolicy="None")}))
        for name in ("waits", "waits-all"):
            eventually(lambda n=name: self.restarts(n).get("trainer") == 2, "two failures")
            pod = self.pods_of(name)["trainer-0"]
            self.assertEqual((self.state(name), pod["status"]["phase"]), ("Terminating", "Failed"))
            self.assertEqual((self.job(name)["status"]["RestartReplicaName"], self.logs(pod)), ("trainer", "run 1\n"))
            plan = self.cluster.run("plan", "aitj/" + name, "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
            self.assertRegex(plan.stdout, r"  look again in \d+\.?\d*s\n$")
        for name in ("waits", "waits-all"):
            self.await_phase(name, "Succeed", within=60)
            made = [pod for what, pod in self.pods.of(name + "-trainer-0") if what == "ADDED"]
            second = next(pod for _, pod in reversed(self.pods.of(name + "-trainer-0"))
                          if pod["metadata"]["uid"] == made[1]["metadata"]["uid"] and pod["status"].get("containerStatuses"))
            ended = second["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
            self.assertGreaterEqual(seconds(made[2]["metadata"]["creationTimestamp"]) - seconds(ended), 9)  # whole seconds
        self.assertEqual(self.logs(self.pods_of("waits")["trainer-0"]), "run 2\n")


class Scopes(AiJobCase):
    """Processes that are killed from outside, and who is made again with them."""

    SEATS = ("pserver-0", "trainer-0", "trainer-1")

    def start(self, name, scope):
        """A job whose trainer-1 has a mark; the others, told to go, take a moment to save their work."""
        mark = str(uuid.uuid4())
        saves = ("trap 'echo $TRAININGJOB_SERVICE >> %s; sleep 0.5; exit 0' TERM; " % os.path.join(self.folder, name + ".saved")
                 + self.behind(name))
        victim = "case $TRAININGJOB_REPLICA_INDEX-$TRAININGJOB_REPLICA_RESTARTCOUNT in 1-0) %s;; esac; " % FOREVER
        grace = {"terminationGracePeriodSeconds": 20}
        self.submit(aijob(name, {"trainer": role(self.traced(name, victim + saves), 2, "OnFailure", restartScope=scope,
                                                 restartLimit=1, container=marked(mark), pod=grace),
                                 "pserver": role(self.traced(name, saves), policy="OnFailure", pod=grace)}))
        before = self.await_running(name, *self.SEATS)
        self.await_phase(name, "Running")
        eventually(lambda: len(self.starts(name)) == 3, "the processes")
        return before, mark

    def kill(self, mark):
        victims = eventually(lambda: [pid for pid, env in processes.with_mark(MARK, mark).items()
                                      if env.get(b"TRAININGJOB_REPLICA_INDEX") == b"1"], "the process to be there")
        self.assertEqual(len(victims), 1)
        os.kill(victims[0], signal.SIGKILL)

    def test_make_again_the_pod_its_type_or_all_and_let_the_healthy_save_their_work(self):
        again = {"Pod": {"trainer-1"}, "Replica": {"trainer-0", "trainer-1"}, "All": set(self.SEATS)}
        begun = {scope: self.start("scope-" + scope.lower(), scope) for scope in again}
        for _, mark in begun.values():
            self.kill(mark)
        for scope, replaced in again.items():
            with self.subTest(scope):
                name, before = "scope-" + scope.lower(), begun[scope][0]
                after = self.await_restarted(name, trainer=1, pserver=1 if scope == "All" else 0)
                self.assertEqual({s for s in self.SEATS if after[s]["metadata"]["uid"] != before[s]["metadata"]["uid"]}, replaced)
                self.assertEqual({s: pod["metadata"]["labels"]["RestartCount"] for s, pod in after.items()},
                                 {s: "1" if s in replaced else "0" for s in self.SEATS})
                saved = {"%s-%s.%s" % (name, s, self.namespace) for s in replaced - {"trainer-1"}}
                self.assertEqual(set(self.lines(name + ".saved")), saved)
                starts = {"%s-%s" % (name, s): 2 if s in replaced else 1 for s in self.SEATS}
                eventually(lambda: self.starts(name) == starts, "starts %s" % starts)
                # None is made before the last of the past is gone.
                events = [(version(pod), what, pod["metadata"]["uid"]) for what, pod in list(self.pods.events)
                          if pod["metadata"]["name"].startswith(name + "-")]
                old = {before[s]["metadata"]["uid"] for s in replaced}
                new = {after[s]["metadata"]["uid"] for s in replaced}
                self.assertLess(max(v for v, what, uid in events if what == "DELETED" and uid in old),
                                min(v for v, what, uid in events if what == "ADDED" and uid in new))
                self.assertEqual(self.job(name)["status"]["restarts"]["trainer"]["lastCause"],
                                 "trainer-1 exited 137 (Error) on node-1")
                self.open_gate(name)
                self.await_phase(name, "Succeed")
        self.assertEqual({mark: processes.with_mark(MARK, mark) for _, mark in begun.values()},
                         {mark: {} for _, mark in begun.values()})

    def test_of_a_pod_leave_alone_what_has_completed_and_those_of_all_do_it_again(self):
        """Of three trainers one completes at once, and another fails after that."""
        script = ("case $TRAININGJOB_REPLICA_INDEX in 0) exit 0;; 1) %s;; esac; %s"
                  % (at_first(self.behind("fail", "exit 3")), self.behind("rest")))
        for scope in ("Pod", "Replica", "All"):
            name = "done-" + scope.lower()
            self.submit(aijob(name, {"trainer": role(self.traced(name, script), 3, "Always", restartScope=scope)}))
        for scope in ("Pod", "Replica", "All"):
            name = "done-" + scope.lower()
            eventually(lambda n=name: self.state(n) == "Running" and self.counts(n, "trainer").get("completedIndexes") == "0",
                       "trainer 0 to complete")
            self.assertEqual((self.row(name)[1], self.message(name)), ("3/3", "2 of 3 pods run, 1 has completed"))
        self.open_gate("fail")
        for scope in ("Pod", "Replica", "All"):
            self.await_restarted("done-" + scope.lower(), trainer=1)
        self.open_gate("rest")
        for scope in ("Pod", "Replica", "All"):
            with self.subTest(scope):
                name = "done-" + scope.lower()
                self.await_phase(name, "Succeed")
                starts = self.starts(name)
                self.assertEqual([starts["%s-trainer-%d" % (name, i)] for i in range(3)], [1, 2, 1] if scope == "Pod" else [2, 2, 2])

    def test_of_all_end_members_that_hear_nothing_by_force_after_their_grace(self):
        deaf = "trap '' TERM; " + self.behind("deaf")
        self.submit(aijob("deaf", {"trainer": role(at_first(self.behind("deaf-fail", "exit 3")) + self.behind("deaf"), policy="Always"),
                                   "pserver": role(self.traced("deaf", deaf), 2, completePolicy="None")}))
        self.await_running("deaf", "pserver-0", "pserver-1", "trainer-0")
        eventually(lambda: len(self.starts("deaf")) == 2, "the processes")
        self.open_gate("deaf-fail")
        self.await_restarted("deaf", trainer=1, pserver=1)
        eventually(lambda: sorted(self.starts("deaf").values()) == [2, 2], "the processes of the second run")
        self.open_gate("deaf")
        self.await_phase("deaf", "Succeed")


if __name__ == "__main__":
    cases.main()
