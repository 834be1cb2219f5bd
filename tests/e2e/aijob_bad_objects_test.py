"""AITrainingJobs that are none: each says what is wrong with it, and none of them disturbs the others.

usage: aijob_bad_objects_test.py TRAINYARD [unittest arguments]
"""

import json

import cases
from aijobs import FOREVER, AiJobCase, aijob, current, role
from cases import eventually

SPECS = "spec.replicaSpecs"
TRAINER = SPECS + ".trainer"
CONTAINERS = TRAINER + ".template.spec.containers"


def trainer(**changes):
    return {"trainer": {**role("exit 0"), **changes}}


def with_containers(*containers):
    return trainer(template={"spec": {"containers": list(containers)}})


def with_spec(name, spec):
    return {**aijob(name, {}), "spec": spec}


def bad_jobs():
    """(job, the beginning of what it is told)."""
    main = {"name": "aitj-main", "image": "none", "command": ["true"]}
    policies = "must be one of Any, All, Rank0, None, not \"Some\""
    one = role("exit 0")
    return [
        (with_spec("null-spec", None), "spec: "),
        (with_spec("no-spec", {}), SPECS + ": is missing"),
        (with_spec("null-types", {"replicaSpecs": None}), SPECS + ": is missing"),
        (aijob("no-types", {}), SPECS + ": is missing"),
        (aijob("null-type", {"trainer": None}), TRAINER + ": "),
        (aijob("null-type-beside", {"trainer": one, "other": None}), SPECS + ".other: "),
        (aijob("no-template", {"trainer": {"replicas": 1}}), TRAINER + ".template: is missing"),
        (aijob("no-containers", with_containers()), CONTAINERS + ": "),
        (aijob("null-containers", trainer(template={"spec": {"containers": None}})), CONTAINERS + ": "),
        (aijob("odd-containers", trainer(template={"spec": {"containers": "one"}})), CONTAINERS + ": "),
        (aijob("odd-template", trainer(template={"spec": ["containers"]})), CONTAINERS + ": "),
        (aijob("no-image", with_containers(main, {"name": "second"})), CONTAINERS + "[1].image: "),
        (aijob("no-aitj", with_containers({**main, "name": "main"})), CONTAINERS + ": there is no container whose name begins with aitj-"),
        (aijob("odd-port", with_containers({**main, "ports": [{"name": "aitj-p", "containerPort": 0}]})),
         CONTAINERS + "[0].ports[0].containerPort: "),
        (aijob("no-port", with_containers({**main, "ports": [{"name": "aitj-p"}]})), CONTAINERS + "[0].ports[0].containerPort: "),
        (aijob("odd-ports", with_containers({**main, "ports": "all"})), CONTAINERS + "[0].ports: "),
        (aijob("odd-env", with_containers({**main, "env": {"A": "1"}})), CONTAINERS + "[0].env: "),
        (aijob("odd-label", trainer(template={**one["template"], "metadata": {"labels": {"a": 1}}})),
         TRAINER + ".template.metadata.labels.a: "),
        # A server with a scale subresource looks at the trainers itself.
        (aijob("negative", {"pserver": {**one, "replicas": -1}}),
         SPECS + ".pserver.replicas: must be a whole number from 0 to 100000, not -1"),
        (aijob("too-many", trainer(replicas=100001)), TRAINER + ".replicas: "),
        (aijob("nobody", {"a": role("exit 0", 0), "b": role("exit 0", 0)}), SPECS + ": there is no pod to run"),
        (aijob("negative-limit", trainer(restartLimit=-1)), TRAINER + ".restartLimit: "),
        (aijob("negative-least", trainer(minReplicas=-1)), TRAINER + ".minReplicas: "),
        (aijob("negative-most", trainer(maxReplicas=-1)), TRAINER + ".maxReplicas: "),
        (aijob("crossed", trainer(minReplicas=3, maxReplicas=2)), TRAINER + ".minReplicas: is more than maxReplicas: 3 and 2"),
        (aijob("auto-endless", trainer(edlPolicy="Auto")), TRAINER + ".maxReplicas: is missing: edlPolicy Auto needs it"),
        (aijob("auto-nothing", trainer(edlPolicy="Auto", maxReplicas=0)), TRAINER + ".maxReplicas: "),
        (aijob("odd-restart", trainer(restartPolicy="Sometimes")),
         TRAINER + ".restartPolicy: must be one of Never, Always, OnFailure, OnNodeFail, ExitCode, OnNodeFailWithExitCode, not "),
        (aijob("odd-scope", trainer(restartScope="Some")), TRAINER + ".restartScope: must be one of All, Replica, Pod, not \"Some\""),
        (aijob("odd-size", trainer(edlPolicy="Some")), TRAINER + ".edlPolicy: must be one of "),
        (aijob("odd-fail", trainer(failPolicy="Some")), TRAINER + ".failPolicy: " + policies),
        (aijob("odd-complete", trainer(completePolicy="Some")), TRAINER + ".completePolicy: must be one of All, Any, Rank0, None"),
        (aijob("odd-job-fail", trainer(), failPolicy="Some"), "spec.failPolicy: " + policies),
        (aijob("odd-job-complete", trainer(), completePolicy="Some"), "spec.completePolicy: must be one of All, Any, Rank0, None"),
        (aijob("odd-clean", trainer(), cleanPodPolicy="Running"), "spec.cleanPodPolicy: must be one of All, None, not \"Running\""),
        (aijob("negative-time", trainer(), timeLimit=-5), "spec.timeLimit: "),
        (aijob("odd-code", trainer(), restartingExitCode="137,abc"), "spec.restartingExitCode: 'abc' is no exit code"),
        (aijob("high-code", trainer(), restartingExitCode="256"), "spec.restartingExitCode: '256' is no exit code"),
        (aijob("empty-code", trainer(), restartingExitCode="1,,2"), "spec.restartingExitCode: '' is no exit code"),
        (aijob("crossed-codes", trainer(), restartingExitCode="9-3"), "spec.restartingExitCode: the range 9-3 is empty"),
        (aijob("odd-priority", trainer(), priority="very high"), "spec.priority: becomes a label, and 'very high' "),
        (aijob("odd-framework", trainer(), frameworkType="-"), "spec.frameworkType: becomes a label, and '-' "),
        (aijob("two-cases", {"Trainer": one, "trainer": one}),
         TRAINER + ": and Trainer are the same as variables: TRAINER_INSTANCES and so on; choose another name"),
        (aijob("two-mapped", {"my-Trainer": one, "My-trainer": one}), SPECS + ".my-Trainer: and My-trainer are the same as variables: MY_TRAINER_"),
        (aijob("own-name", {"TrainingJob": one}), SPECS + ".TrainingJob: its variables would be TRAININGJOB_"),
        (aijob("dotted-type", {"my.trainer": one}), SPECS + ".my.trainer: "),
        (aijob("underscored-type", {"my_trainer": one}), SPECS + ".my_trainer: "),
        (aijob("nameless-type", {"": one}), SPECS + ".: "),
        (aijob("l" * 60, trainer()), "metadata.name: is too long by "),
        (aijob("dotted.name", trainer()), "metadata.name: 'dotted.name' "),
        (aijob("1st", trainer()), "metadata.name: '1st' "),
    ]


# What the schema of the kind excludes, so that no operator sees it.
REFUSED = {"no-spec", "no-types", "negative", "too-many", "negative-limit", "negative-least", "negative-most", "odd-restart", "odd-scope", "odd-size", "odd-fail",
           "odd-complete", "odd-job-fail", "odd-job-complete", "odd-clean", "negative-time"}


class BadObjects(AiJobCase):
    def test_are_refused_by_the_server_with_the_field_where_a_schema_can_say_it(self):
        self.assert_refused((job, told) for job, told in bad_jobs() if job["metadata"]["name"] in REFUSED)

    def test_are_told_the_field_that_is_wrong_while_a_good_one_beside_them_succeeds(self):
        bad = [(job, told) for job, told in bad_jobs() if job["metadata"]["name"] not in REFUSED]
        half = len(bad) // 2
        self.submit(*(job for job, _ in bad[:half]), aijob("good", trainer()), *(job for job, _ in bad[half:]))
        self.await_phase("good", "Succeed")
        events = []
        for job, told in bad:
            name = job["metadata"]["name"]
            with self.subTest(name):
                held = current(self.await_phase(name, "Failed"))
                self.assertEqual(held["reason"], "InvalidSpec")
                self.assertEqual(held["message"][:len(told)], told)
                self.assertNotEqual(held["message"].partition(": ")[2], "")
                status = self.job(name)["status"]
                self.assertEqual(status["startTime"], status["endTime"])
                events.append(("Warning", "InvalidSpec", name, held["message"]))

        def told_of():
            listed = self.get("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind=AITrainingJob" % self.namespace)
            return {(e["type"], e["reason"], e["involvedObject"]["name"], e["message"]) for e in listed["items"]}
        eventually(lambda: set(events) <= told_of(), "an event for each")
        for watch in (self.pods, self.services):
            self.assertEqual({thing["metadata"]["labels"]["TrainingJobName"] for _, thing in watch.events}, {"good"})
        rows = [row.split() for row in self.kubectl("get", "aitj", "--no-headers").stdout.splitlines()]
        self.assertEqual(sorted(row[1] for row in rows), ["Failed"] * len(bad) + ["Succeed"])

    def test_are_told_the_same_by_plan(self):
        """Before they are submitted, and without a cluster."""
        for job, told in bad_jobs():
            with self.subTest(job["metadata"]["name"]):
                done = self.cluster.run("plan", "-f", "-", input=json.dumps(job))
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("AITrainingJob %s: %s" % (job["metadata"]["name"], told), done.stderr)

    def test_of_the_wrong_types_are_refused_at_once(self):
        for name, spec in (("text", {"replicaSpecs": trainer(replicas="two")}), ("list", {"replicaSpecs": []}),
                           ("flag", {"replicaSpecs": trainer(), "faultTolerant": "no"}),
                           ("time", {"replicaSpecs": trainer(), "timeLimit": "soon"})):
            with self.subTest(name):
                job = json.dumps(with_spec("refused-" + name, spec))
                done = self.kubectl("create", "-f", "-", "--validate=false", stdin=job, check=False)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("spec.", done.stderr)

    def test_that_become_so_while_they_run_or_restart_continue_with_their_last_valid_spec(self):
        self.submit(aijob("turns-bad", {"pserver": role(FOREVER, 2)}),
                    aijob("turns-null", {"trainer": role(FOREVER, 2), "pserver": role(FOREVER)}),
                    aijob("turns-late", {"pserver": role("exit 3", policy="Always")}))
        before = {name: self.await_phase(name, "Running") and self.pods_of(name) for name in ("turns-bad", "turns-null")}
        eventually(lambda: self.restarts("turns-late").get("pserver") == 2, "it to wait before it is made again")
        done = self.kubectl("patch", "aitj", "turns-bad", "--type=merge", "-p", '{"spec": {"failPolicy": "any"}}', check=False)
        self.assertIn('spec.failPolicy: Unsupported value: "any"', done.stderr)
        bad = {"restartingExitCode": "256"}
        self.patch("turns-bad", bad)
        self.patch("turns-late", bad)
        self.kubectl("patch", "aitj", "turns-null", "--type=json", "-p", '[{"op": "replace", "path": "/spec/replicaSpecs/pserver", "value": null}]')
        for name, field in (("turns-bad", "spec.restartingExitCode"), ("turns-late", "spec.restartingExitCode"), ("turns-null", SPECS + ".pserver")):
            told = eventually(lambda: self.condition(name, "SpecInvalid"), "%s to say what is wrong" % name)
            self.assertEqual((told["reason"], told["message"].split(":")[0]), ("InvalidSpec", field))
        eventually(lambda: self.restarts("turns-late")["pserver"] > 2, "restarts to go on")
        for name, pods in before.items():
            self.assertEqual(self.state(name), "Running")
            self.assertEqual({p["metadata"]["uid"] for p in self.pods_of(name).values()}, {p["metadata"]["uid"] for p in pods.values()})
        self.patch("turns-bad", {"restartingExitCode": "255"})
        eventually(lambda: self.condition("turns-bad", "SpecInvalid") is None, "the condition to go")

    def test_with_the_longest_name_that_fits_work(self):
        name = "l" * (63 - len("-trainer-0"))
        self.submit(aijob(name, trainer()), aijob(name + "l", trainer()))
        self.await_phase(name, "Succeed")
        self.assertIn("is too long by 1:", current(self.await_phase(name + "l", "Failed"))["message"])


class Forged(AiJobCase):
    """Statuses that somebody else has written: they are mended, and the jobs end well."""

    def forge(self, name, status):
        self.kubectl("patch", "aitj", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    def test_statuses_are_mended(self):
        forged = {
            "of-a-type-that-is-gone": {"RestartReplicaName": "gone", "RestartCount": {"gone": 3},
                                       "replicaStatuses": {"gone": {"active": 2, "restartScope": "All", "size": 7}},
                                       "restarts": {"gone": {"count": 3, "attempts": "0-6:1"}}},
            "of-nonsense": {"conditions": [{"type": "Odd", "status": "True"}, {"type": "Running", "status": "Maybe"}],
                            "ready": "many", "phase": "Perfect", "RestartReplicaName": "\u00e4", "startTime": "2001-01-01T00:00:00Z",
                            "restarts": {"trainer": {"attempts": "x:y", "count": -5}}, "members": {"epoch": -7},
                            "ending": {"phase": "Somehow"}, "replicaStatuses": {"trainer": {
                                "completedIndexes": "no", "failedIndexes": "9999999999", "succeeded": -7, "size": -1,
                                "restartScope": "Some", "creationErrors": {"-1": "2001-01-01T00:00:00Z", "x": "2001-01-01T00:00:00Z"}}}},
            "of-huge-attempts": {"restarts": {"trainer": {"attempts": "0-1:2147483647", "count": 9223372036854775807,
                                                          "seen": "0:9223372036854775807"}}},
            "of-the-most-attempts": {"restarts": {"trainer": {"attempts": "0-1:1000000", "count": 1000000, "seen": "0-1:1000000"}}},
            "of-a-huge-size": {"replicaStatuses": {"trainer": {"size": 900000}}},
            "of-high-indexes": {"replicaStatuses": {"trainer": {"completedIndexes": "5-900000", "failedIndexes": "7"}}},
        }
        # After that one of each fails, and is made again.
        script = "case $HOSTNAME-$TRAINYARD_ATTEMPT in *-1-0) %s;; esac; %s" % (self.behind("fail", "exit 3"), self.behind("forged"))
        self.submit(*(aijob(name, {"trainer": role(script, 2, "Always", restartScope="Pod")}) for name in forged))
        for name in forged:
            self.await_phase(name, "Running")
        for name, status in forged.items():
            self.forge(name, status)
        self.open_gate("fail")
        for name in forged:
            with self.subTest(name):
                eventually(lambda: sum(self.made(name).values()) > 2 and self.state(name) == "Running"
                           and self.job(name)["status"]["phase"] == "Running" and self.job(name)["status"]["ready"] == "2/2",
                           "it to be mended and to run again")
                status = self.job(name)["status"]
                self.assertEqual(status["RestartReplicaName"], "")
                self.assertNotIn("Odd", [c["type"] for c in status["conditions"]])
                if name != "of-a-huge-size":  # all were made again for that
                    self.assertGreaterEqual(status["RestartCount"]["trainer"], 1, status)
        self.open_gate("forged")
        for name in forged:
            with self.subTest(name):
                self.await_phase(name, "Succeed")
        self.submit(aijob("good", trainer()))
        self.await_phase("good", "Succeed")

    def versions(self):
        """Without what was forged, which breaks the rules and not by the operator's doing."""
        return [job for job in super().versions() if not job["metadata"]["name"].startswith("of-")]


class Refused(AiJobCase):
    """Pods that cannot be made: the job says so, and goes on once that is mended."""

    def test_by_the_api_server_are_told_and_made_when_the_template_is_mended(self):
        bad = role("exit 0", 2)
        bad["template"]["spec"]["containers"].append({"name": "Side_Car", "image": "none", "command": ["true"]})
        self.submit(aijob("mended", {"trainer": bad}), aijob("beside", trainer()))
        self.await_phase("beside", "Succeed")
        eventually(lambda: "Side_Car" in (self.message("mended") or ""), "the message")
        self.assertEqual(self.state("mended"), "Pending")
        self.assertIn("0 of 2 pods and ", self.message("mended"))
        self.await_told("mended", "Warning", "FailedCreate", "Side_Car")
        good = role("exit 0", 2)["template"]["spec"]["containers"]
        self.patch("mended", {"replicaSpecs": {"trainer": {"template": {"spec": {"containers": good}}}}})
        self.await_phase("mended", "Succeed", within=20)  # not when the back-off is over, but when it is changed

    def test_because_another_job_has_their_name_wait_for_it(self):
        """a-b's c is called as a's b-c is."""
        self.submit(aijob("a-b", {"c": role(FOREVER)}))
        self.await_phase("a-b", "Running")
        self.submit(aijob("a", {"b-c": role(self.behind("a"))}))
        eventually(lambda: "pod a-b-c-0: exists and belongs to AITrainingJob a-b" in (self.message("a") or ""), "it to say so")
        self.assertEqual((self.state("a"), self.state("a-b")), ("Pending", "Running"))
        self.kubectl("delete", "aitj", "a-b")
        self.await_phase("a", "Running")
        self.open_gate("a")
        self.await_phase("a", "Succeed")


if __name__ == "__main__":
    cases.main()
