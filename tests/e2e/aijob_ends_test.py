"""When an AITrainingJob is over: by its policies, by annotations, by its time; and what is left of it then.

usage: aijob_ends_test.py TRAINYARD [unittest arguments]
"""

import uuid

import cases
import processes
from aijobs import FOREVER, AiJobCase, aijob, at_first, current, role, seconds, version
from cases import eventually

MARK = "TRAINYARD_TEST_MARK"
ANNOTATIONS = ("Preempted", "Failed", "NodeFail")


class Policies(AiJobCase):
    """What each member does is written as a letter: 0 ends with 0, F fails, R runs for ever, G waits for the gate and ends with 0."""

    def members(self, letters, gate, **policies):
        scripts = {"0": "exit 0", "F": "exit 3", "R": FOREVER, "G": self.behind(gate)}
        script = "case $TRAININGJOB_REPLICA_INDEX in %s esac" % " ".join("%d) %s;;" % (i, scripts[c]) for i, c in enumerate(letters))
        return role(script, len(letters), **policies)

    def play(self, prefix, rows):
        """Submits a job for each row: ({type: (letters, policies)}, the job's policies, its phase, what it says)."""
        names = ["%s-%d" % (prefix, i) for i in range(len(rows))]
        self.submit(*(aijob(name, {key: self.members(letters, prefix, **policies) for key, (letters, policies) in roles.items()}, **spec)
                      for name, (roles, spec, _, _) in zip(names, rows)))
        waiting = {}  # those that must not end before the gate is opened, and what they come to before
        for name, (roles, spec, phase, said) in zip(names, rows):
            letters = "".join(letters for letters, _ in roles.values())
            if "G" in letters:
                waiting[name] = (letters.count("0"), letters.count("F"))
                continue
            with self.subTest(name, roles=roles, **spec):
                self.await_phase(name, phase)
                self.assertIn(said, self.message(name))

        def come_to(name):
            counts = self.job(name)["status"].get("replicaStatuses", {}).values()
            return (self.state(name), sum(c.get("succeeded", 0) for c in counts), sum(c.get("failed", 0) for c in counts))
        for name, so_far in waiting.items():
            eventually(lambda: come_to(name) == ("Running", *so_far), "%s to run with %s ended well and not" % (name, so_far))
        self.open_gate(prefix)
        for name, (roles, spec, phase, said) in zip(names, rows):
            if name in waiting:
                with self.subTest(name, roles=roles, **spec):
                    self.await_phase(name, phase)
                    self.assertIn(said, self.message(name))

    def test_of_a_type_say_whose_end_is_its_end_and_nothing_hangs(self):
        rows = [
            # letters, complete, fail
            ("000", "All", "Any", "Succeed", "all 3 of trainer ended with 0"),
            ("0G0", "All", "Any", "Succeed", "all 3 of trainer ended with 0"),
            ("R0R", "Any", "Any", "Succeed", "a trainer ended with 0"),
            ("FFG", "Any", "None", "Succeed", "a trainer ended with 0"),
            ("0RR", "Rank0", "Any", "Succeed", "trainer-0 ended with 0"),
            ("G00", "Rank0", "Any", "Succeed", "trainer-0 ended with 0"),
            ("000", "None", "Any", "Succeed", "ended with 0"),
            ("0G0", "None", "Any", "Succeed", "ended with 0"),
            ("RFR", "All", "Any", "Failed", "failPolicy of trainer is Any"),
            ("FRR", "All", "Rank0", "Failed", "failPolicy of trainer is Rank0"),
            ("0F0", "All", "Rank0", "Succeed", "2 of 3 of trainer ended with 0"),
            ("GFF", "All", "Rank0", "Succeed", "1 of 3 of trainer ended with 0"),
            ("FFF", "All", "All", "Failed", "failPolicy of trainer is All"),
            ("FF0", "All", "All", "Succeed", "1 of 3 of trainer ended with 0"),
            ("FFF", "All", "None", "Failed", "completePolicy All of trainer can no longer be met"),
            ("FRR", "Rank0", "None", "Failed", "completePolicy Rank0 of trainer can no longer be met"),
            ("FRR", "Rank0", "All", "Failed", "completePolicy Rank0 of trainer can no longer be met"),
            ("FFF", "Any", "None", "Failed", "completePolicy Any of trainer can no longer be met"),
            ("FFF", "None", "None", "Failed", "nobody is left who could end it well"),
            ("F0F", "None", "None", "Succeed", "ended with 0"),
        ]
        self.play("type", [({"trainer": (letters, {"completePolicy": complete, "failPolicy": fail})}, {}, phase, said)
                           for letters, complete, fail, phase, said in rows])

    def test_of_the_job_say_which_types_end_is_its_end_and_nothing_hangs(self):
        rows = [
            # a, b, complete, fail
            ("0", "0", "All", "Any", "Succeed", "a-0 and b-0 ended with 0"),
            ("0", "G", "All", "Any", "Succeed", "a-0 and b-0 ended with 0"),
            ("0", "R", "Any", "Any", "Succeed", "a-0 ended with 0"),
            ("0R", "0R", "Rank0", "Any", "Succeed", "a-0 and b-0 ended with 0"),
            ("00", "G0", "Rank0", "Any", "Succeed", "a-0 and b-0 ended with 0"),
            ("0", "G", "None", "Any", "Succeed", "ended with 0"),
            ("F", "R", "All", "Any", "Failed", "failPolicy of a is Any"),
            ("F", "F", "All", "All", "Failed", "failPolicy of "),
            ("F", "G", "All", "All", "Succeed", "b-0 ended with 0"),
            ("FR", "R", "All", "Rank0", "Failed", "failPolicy of the job is Rank0"),
            ("RF", "G", "Any", "Rank0", "Succeed", "b-0 ended with 0"),
            ("F", "G", "All", "None", "Succeed", "b-0 ended with 0"),
            ("F", "F", "All", "None", "Failed", "nobody is left who could end it well"),
            ("F", "F", "Any", "None", "Failed", "nobody is left who could end it well"),
            ("F", "F", "None", "None", "Failed", "nobody is left who could end it well"),
            ("F", "F", "Rank0", "None", "Failed", "nobody is left who could end it well"),
        ]
        self.play("job", [({"a": (a, {}), "b": (b, {})}, {"completePolicy": complete, "failPolicy": fail}, phase, said)
                          for a, b, complete, fail, phase, said in rows])

    def test_leave_out_a_type_that_nobody_waits_for(self):
        self.submit(aijob("served", {"trainer": role("exit 0", 2), "pserver": role(FOREVER, 2, completePolicy="None")}),
                    aijob("deserted", {"trainer": role(FOREVER, 2), "pserver": role("exit 3", completePolicy="None")}))
        self.await_phase("served", "Succeed")
        self.assertEqual(self.message("served"), "all 2 of trainer ended with 0")
        self.await_phase("deserted", "Failed")

    def test_keep_what_failed_and_does_not_matter_in_sight(self):
        self.submit(aijob("ignored", {"trainer": self.members("GFR", "ignored", failPolicy="Rank0", completePolicy="Rank0")}))
        eventually(lambda: self.state("ignored") == "Running" and self.message("ignored") == "2 of 3 pods run, 1 has failed",
                   "trainer 1 to fail")
        self.assertEqual(self.counts("ignored", "trainer")["failed"], 1)
        self.assertEqual(self.counts("ignored", "trainer")["failedIndexes"], "1")
        self.assertEqual(self.pods_of("ignored")["trainer-1"]["status"]["phase"], "Failed")
        self.open_gate("ignored")
        self.await_phase("ignored", "Succeed")


class Left(AiJobCase):
    """What each ending leaves: the phase comes when it is so, and not before."""

    ENDINGS = ("Succeed", "Failed", "Timeout", "Preempted", "NodeFail")

    def test_is_nothing_or_stopped_pods_with_their_logs(self):
        marks = {}
        for clean in ("All", "None"):
            for end in self.ENDINGS:
                name = "%s-%s" % (end.lower(), clean.lower())
                marks[name] = str(uuid.uuid4())
                mark = {"env": [{"name": MARK, "value": marks[name]}]}
                trainer = {"Succeed": self.behind("ends"), "Failed": self.behind("ends", "exit 3")}.get(end, FOREVER)
                more = {"timeLimit": 1} if end == "Timeout" else {}
                self.submit(aijob(name, {"trainer": role("echo one; " + trainer, container=mark),
                                         "pserver": role("echo two; " + FOREVER, 2, container=mark, completePolicy="None")},
                                  cleanPodPolicy=clean, **more))
        for name in marks:
            eventually(lambda: "Running" in self.phases(name), "%s to run" % name)
        self.open_gate("ends")
        for end in ("Preempted", "NodeFail"):
            self.kubectl("annotate", "aitj", end.lower() + "-all", end.lower() + "-none", end + "=by the test")
        for name, mark in marks.items():
            end = next(e for e in self.ENDINGS if name.startswith(e.lower()))
            with self.subTest(name):
                job = self.await_phase(name, end)
                self.assertEqual(processes.with_mark(MARK, mark), {})
                first = next(job for _, job in self.jobs.of(name) if (current(job) or {}).get("type") == end)
                self.assertIn("endTime", first["status"])
                self.assertEqual(sum(c.get("active", 0) for c in job["status"]["replicaStatuses"].values()), 0)
                self.assertNotIn("ending", job["status"])
                self.assertIn("Terminating", self.phases(name))
                if name.endswith("-all"):
                    for pod in ("pserver-0", "pserver-1", "trainer-0"):
                        what, last = self.pods.of("%s-%s" % (name, pod))[-1]
                        self.assertEqual(what, "DELETED")
                        self.assertLess(version(last), version(first))
                    eventually(lambda: self.services_of(name) == {}, "its services to go")
                else:
                    pods = self.pods_of(name)
                    self.assertEqual(sorted(pods), ["pserver-0", "pserver-1", "trainer-0"])
                    self.assertEqual({w: self.logs(p) for w, p in pods.items()},
                                     {"pserver-0": "two\n", "pserver-1": "two\n", "trainer-0": "one\n"})
                    self.assertEqual({w: p["status"]["phase"] for w, p in pods.items()},
                                     {"pserver-0": "Failed", "pserver-1": "Failed",
                                      "trainer-0": "Succeeded" if end == "Succeed" else "Failed"})
                    self.assertEqual(sorted(self.services_of(name)), ["pserver-0", "pserver-1", "trainer-0"])

    def test_is_told_while_members_still_take_their_leave(self):
        """A member that takes its time keeps the job Terminating, with its end in sight."""
        slow = "trap 'while [ ! -e %s ]; do sleep 0.05; done; exit 0' TERM; sleep 1000 & wait" % self.gate("leave")
        self.submit(aijob("leave", {"trainer": role(self.behind("leave-end")),
                                    "pserver": role(self.traced("leave", slow), completePolicy="None",
                                                    pod={"terminationGracePeriodSeconds": 60})}))
        self.await_phase("leave", "Running")
        eventually(lambda: self.starts("leave"), "the process")
        self.open_gate("leave-end")
        self.await_phase("leave", "Terminating")
        eventually(lambda: self.message("leave") == "trainer-0 ended with 0; 1 pod is ending", "the message to say so")
        status = self.job("leave")["status"]
        self.assertEqual((status["ending"]["phase"], status["ready"]), ("Succeed", "2/2"))
        self.assertNotIn("endTime", status)
        # What is asked for now comes too late.
        self.kubectl("annotate", "aitj", "leave", "Preempted=too late")
        self.open_gate("leave")
        self.await_phase("leave", "Succeed")


class Annotations(AiJobCase):
    def test_end_a_job_before_it_has_begun(self):
        self.submit(*(aijob("born-" + end.lower(), {"trainer": role(FOREVER)}, annotations={end: "no room"}) for end in ANNOTATIONS))
        for end in ANNOTATIONS:
            with self.subTest(end):
                name = "born-" + end.lower()
                self.await_phase(name, end)
                self.assertEqual(self.message(name), "the annotation %s was set: no room" % end)
                self.assertEqual((self.made(name), self.job(name)["status"]["startTime"]), ({}, self.job(name)["status"]["endTime"]))

    def test_end_a_job_that_runs_or_is_about_to(self):
        never = {"nodeSelector": {"nowhere": "yes"}}
        self.submit(*(aijob("runs-" + end.lower(), {"trainer": role(FOREVER, 2)}) for end in ANNOTATIONS),
                    *(aijob("waits-" + end.lower(), {"trainer": role(FOREVER, pod=never)}, failPolicy="None") for end in ANNOTATIONS))
        for end in ANNOTATIONS:
            self.await_phase("runs-" + end.lower(), "Running")
            self.await_phase("waits-" + end.lower(), "Pending")
            self.kubectl("annotate", "aitj", "runs-" + end.lower(), "waits-" + end.lower(), end + "=")
        for end in ANNOTATIONS:
            for how in ("runs-", "waits-"):
                with self.subTest(how + end):
                    name = how + end.lower()
                    held = current(self.await_phase(name, end))
                    self.assertEqual((held["reason"], held["message"]), ("TrainingJob" + end, "the annotation %s was set" % end))
                    eventually(lambda: self.pods_of(name) == {} and self.services_of(name) == {}, "its pods to go")
                    self.await_told(name, "Warning", "TrainingJob" + end, "was set")

    def test_end_a_job_in_the_midst_of_a_restart(self):
        """While a failed pod is waited after, and while a healthy member takes its leave."""
        slow = "trap 'while [ ! -e %s ]; do sleep 0.05; done; exit 0' TERM; sleep 1000 & wait" % self.gate("slow")
        fails = at_first(self.behind("fails", "exit 3")) + FOREVER
        for end in ANNOTATIONS:
            self.submit(aijob("backs-off-" + end.lower(), {"trainer": role("exit 3", policy="Always")}),
                        aijob("leaves-" + end.lower(), {"trainer": role(fails, policy="Always"),
                                                        "pserver": role(self.traced("slow-" + end, slow),
                                                                        pod={"terminationGracePeriodSeconds": 60})}))
        for end in ANNOTATIONS:
            self.await_phase("leaves-" + end.lower(), "Running")
            eventually(lambda: self.starts("slow-" + end), "the process")
        self.open_gate("fails")
        for end in ANNOTATIONS:
            eventually(lambda: self.restarts("backs-off-" + end.lower()).get("trainer") == 2, "two failures")
            eventually(lambda: self.restarts("leaves-" + end.lower()).get("trainer") == 1, "the restart")
            self.assertEqual((self.state("backs-off-" + end.lower()), self.state("leaves-" + end.lower())),
                             ("Terminating", "Terminating"))
            self.kubectl("annotate", "aitj", "backs-off-" + end.lower(), "leaves-" + end.lower(), end + "=now")
        for end in ANNOTATIONS:
            with self.subTest(end):
                self.await_phase("backs-off-" + end.lower(), end)
                eventually(lambda: self.job("leaves-" + end.lower())["status"].get("ending", {}).get("phase") == end,
                           "the end to be in sight")
        self.open_gate("slow")
        for end in ANNOTATIONS:
            with self.subTest(end):
                job = self.await_phase("leaves-" + end.lower(), end)
                self.assertEqual(job["status"]["RestartReplicaName"], "")
                self.assertEqual(self.made("leaves-" + end.lower()), {"trainer-0": 1, "pserver-0": 1})
                self.assertEqual(self.made("backs-off-" + end.lower()), {"trainer-0": 2})

    def test_with_other_names_of_phases_or_after_the_end_mean_nothing(self):
        self.submit(aijob("unmoved", {"trainer": role(self.behind("unmoved"))},
                          annotations={"Succeed": "x", "Timeout": "x", "Terminating": "x", "Running": "x"}))
        self.await_phase("unmoved", "Running")
        self.open_gate("unmoved")
        self.await_phase("unmoved", "Succeed")
        self.kubectl("annotate", "aitj", "unmoved", "Failed=late")
        self.submit(aijob("after-it", {"trainer": role("exit 0")}))
        self.await_phase("after-it", "Succeed")
        self.assertEqual(self.state("unmoved"), "Succeed")


class Timed(AiJobCase):
    def test_jobs_have_their_time_from_when_they_first_ran(self):
        first = {"initContainers": [{"name": "first", "image": "none", "command": ["/bin/sh", "-c", self.behind("late")]}]}
        self.submit(aijob("on-time", {"trainer": role("exit 0")}, timeLimit=600),
                    aijob("late", {"trainer": role(FOREVER, pod=first)}, timeLimit=1),
                    aijob("early", {"trainer": role(FOREVER), "pserver": role(FOREVER)}, timeLimit=2),
                    aijob("at-once", {"trainer": role(FOREVER)}, timeLimit=0),
                    aijob("changed", {"trainer": role(FOREVER)}))
        self.await_phase("changed", "Running")
        self.patch("changed", {"timeLimit": 1})
        for name, limit in (("early", 2), ("changed", 1), ("at-once", 0)):
            with self.subTest(name):
                status = self.await_phase(name, "Timeout")["status"]
                self.assertEqual(self.message(name), "the job ran for longer than timeLimit: %d" % limit)
                self.assertGreaterEqual(seconds(status["endTime"]) - seconds(status["startRunningTime"]), limit)
                self.await_told(name, "Warning", "TrainingJobTimeout", "timeLimit")
        self.await_phase("on-time", "Succeed")
        # It has waited for longer than its limit, and has not run yet.
        self.assertEqual(self.state("late"), "Creating")
        self.open_gate("late")
        self.await_phase("late", "Timeout")
        self.assertIn("Running", self.phases("late"))

    def test_jobs_have_no_more_time_for_restarts(self):
        """Nor do they have it while one is waited for."""
        self.submit(aijob("again", {"trainer": role(at_first(self.behind("again", "exit 3")) + "exit 3", policy="Always")}, timeLimit=5))
        self.await_phase("again", "Running")
        self.open_gate("again")
        eventually(lambda: self.restarts("again").get("trainer") == 2, "two failures")
        self.assertEqual(self.state("again"), "Terminating")
        status = self.await_phase("again", "Timeout")["status"]
        self.assertLess(seconds(status["endTime"]) - seconds(status["restarts"]["trainer"]["lastTime"]), 9)
        self.assertEqual(self.made("again"), {"trainer-0": 2})


if __name__ == "__main__":
    cases.main()
