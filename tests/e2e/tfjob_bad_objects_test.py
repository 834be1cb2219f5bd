"""TFJobs that are none: each says what is wrong with it, and none of them disturbs the others.

usage: tfjob_bad_objects_test.py TRAINYARD [unittest arguments]
"""

import json

import cases
from cases import eventually
from tfjobs import FOREVER, JobCase, current, role, tfjob

SPECS = "spec.tfReplicaSpecs"
CONTAINERS = SPECS + ".Worker.template.spec.containers"


def worker(**changes):
    return {"Worker": {**role("exit 0", policy="Never"), **changes}}


def with_containers(*containers):
    return worker(template={"spec": {"containers": list(containers)}})


def with_spec(name, spec):
    return {**tfjob(name, {}), "spec": spec}


def bad_jobs():
    """(job, the beginning of what it is told)."""
    tensorflow = {"name": "tensorflow", "image": "none", "command": ["true"]}
    long = "l" * 60
    return [
        (with_spec("null-spec", None), "spec: "),
        (with_spec("no-spec", {}), SPECS + ": is missing"),
        (with_spec("null-types", {"tfReplicaSpecs": None}), SPECS + ": is missing"),
        (tfjob("no-types", {}), SPECS + ": is missing"),
        (tfjob("null-type", {"Worker": None}), SPECS + ".Worker: "),
        (tfjob("only-ps", {"PS": role("exit 0")}), SPECS + ": the job needs a Chief or a Worker"),
        (tfjob("no-template", {"Worker": {"replicas": 1}}), SPECS + ".Worker.template: "),
        (tfjob("no-containers", with_containers()), CONTAINERS + ": "),
        (tfjob("null-containers", worker(template={"spec": {"containers": None}})), CONTAINERS + ": "),
        (tfjob("odd-containers", worker(template={"spec": {"containers": "one"}})), CONTAINERS + ": "),
        (tfjob("odd-template", worker(template={"spec": ["containers"]})), CONTAINERS + ": "),
        (tfjob("no-image", with_containers(tensorflow, {"name": "second"})), CONTAINERS + "[1].image: "),
        (tfjob("no-tensorflow", with_containers({**tensorflow, "name": "torch"})),
         CONTAINERS + ": there is no container named tensorflow"),
        (tfjob("two-chiefs", {"Chief": role("exit 0"), "Master": role("exit 0")}), SPECS + ".Master: is the same as Chief"),
        (tfjob("too-many-chiefs", {"Chief": role("exit 0", 2)}), SPECS + ".Chief.replicas: there can be only one chief, not 2"),
        (tfjob("two-spellings", {"Worker": role("exit 0"), "worker": role("exit 0")}), SPECS + ".worker: is the same as Worker"),
        (tfjob("negative", worker(replicas=-1)), SPECS + ".Worker.replicas: must be a whole number from 0 to 100000, not -1"),
        (tfjob("too-many", worker(replicas=100001)), SPECS + ".Worker.replicas: "),
        (tfjob("odd-restart", worker(restartPolicy="Sometimes")),
         SPECS + ".Worker.restartPolicy: must be one of Always, OnFailure, Never, ExitCode, not \"Sometimes\""),
        (tfjob("odd-clean", worker(), cleanPodPolicy="Some"), "spec.cleanPodPolicy: must be one of Running, All, None"),
        (tfjob("odd-success", worker(), successPolicy="Luck"), "spec.successPolicy: must be one of "),
        (tfjob("negative-limit", worker(), backoffLimit=-1), "spec.backoffLimit: "),
        (tfjob("negative-deadline", worker(), activeDeadlineSeconds=-5), "spec.activeDeadlineSeconds: "),
        (tfjob("negative-ttl", worker(), ttlSecondsAfterFinished=-5), "spec.ttlSecondsAfterFinished: "),
        (tfjob("odd-type", {**worker(), "Trainer": role("exit 0")}), SPECS + ".Trainer: is unknown"),
        (tfjob(long, worker()), "metadata.name: is too long by "),
        (tfjob("dotted.name", worker()), "metadata.name: 'dotted.name' "),
        (tfjob("1st", worker()), "metadata.name: '1st' "),
    ]


# What the schema of the kind excludes, so that no operator sees it.
REFUSED = {"no-spec", "no-types", "negative", "too-many", "odd-restart", "odd-clean", "odd-success", "negative-limit", "negative-deadline", "negative-ttl"}


class BadObjects(JobCase):
    def test_are_refused_by_the_server_with_the_field_where_a_schema_can_say_it(self):
        self.assert_refused((job, told) for job, told in bad_jobs() if job["metadata"]["name"] in REFUSED)

    def test_are_told_the_field_that_is_wrong_while_a_good_one_beside_them_succeeds(self):
        bad = [(job, told) for job, told in bad_jobs() if job["metadata"]["name"] not in REFUSED]
        half = len(bad) // 2
        self.submit(*(job for job, _ in bad[:half]), tfjob("good", worker()), *(job for job, _ in bad[half:]))
        self.await_state("good", "Succeeded")
        events = []
        for job, told in bad:
            name = job["metadata"]["name"]
            with self.subTest(name):
                held = current(self.await_state(name, "Failed"))
                self.assertEqual(held["reason"], "InvalidSpec")
                self.assertEqual(held["message"][:len(told)], told)
                self.assertNotEqual(held["message"].partition(": ")[2], "")
                status = self.job(name)["status"]
                self.assertEqual(status["startTime"], status["completionTime"])
                events.append(("Warning", "InvalidSpec", name, held["message"]))

        def told_of():
            listed = self.get("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind=TFJob" % self.namespace)
            return {(e["type"], e["reason"], e["involvedObject"]["name"], e["message"]) for e in listed["items"]}
        eventually(lambda: set(events) <= told_of(), "an event for each")
        for watch in (self.pods, self.services):
            self.assertEqual({thing["metadata"]["labels"]["tf_job_name"] for _, thing in watch.events}, {"good"})
        rows = [row.split() for row in self.kubectl("get", "tfj", "--no-headers").stdout.splitlines()]
        self.assertEqual(sorted(row[1] for row in rows), ["Failed"] * len(bad) + ["Succeeded"])

    def test_of_the_wrong_types_are_refused_at_once(self):
        for name, spec in (("text", {"tfReplicaSpecs": worker(replicas="two")}), ("list", {"tfReplicaSpecs": []}),
                           ("flag", {"tfReplicaSpecs": worker(), "suspend": "no"})):
            with self.subTest(name):
                job = json.dumps(with_spec("refused-" + name, spec))
                done = self.kubectl("create", "-f", "-", "--validate=false", stdin=job, check=False)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("spec.", done.stderr)

    def test_that_become_so_while_they_run_continue_with_their_last_valid_spec(self):
        self.submit(tfjob("turns-bad", {"Chief": role(self.behind("turns-bad"), policy="ExitCode"), "Worker": role(FOREVER, 2, "ExitCode")}))
        pods = self.await_running("turns-bad", "chief-0", "worker-0", "worker-1")
        self.await_state("turns-bad", "Running")
        done = self.kubectl("patch", "tfj", "turns-bad", "--type=merge", "-p", '{"spec": {"cleanPodPolicy": "Al"}}', check=False)
        self.assertIn('spec.cleanPodPolicy: Unsupported value: "Al"', done.stderr)
        for size, told in (("chief=2", "there can be only one chief, not 2"), ("worker=-1", "'worker=-1' is no size")):
            done = self.cluster.run("scale", "tfj/turns-bad", size, "-n", self.namespace)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn(told, done.stderr)
        self.assertIsNone(self.condition("turns-bad", "SpecInvalid"))
        self.patch("turns-bad", {"tfReplicaSpecs": {"Chief": {"replicas": 2}}})
        told = eventually(lambda: self.condition("turns-bad", "SpecInvalid"), "it to say what is wrong")
        self.assertEqual((told["status"], told["reason"]), ("True", "InvalidSpec"))
        self.assertEqual(told["message"].split(";")[0], SPECS + ".Chief.replicas: there can be only one chief, not 2")
        self.await_told("turns-bad", "Warning", "SpecInvalid", "there can be only one chief")
        self.patch("turns-bad", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})  # what is wrong still is, so this is not taken
        self.kubectl("patch", "tfj", "turns-bad", "--type=json", "-p",
                     '[{"op": "add", "path": "/spec/tfReplicaSpecs/Boss", "value": {"replicas": 1}}]')
        eventually(lambda: "Boss" in self.condition("turns-bad", "SpecInvalid")["message"], "the second edit to be judged, too")
        self.cluster.restart()
        self.kubectl("patch", "tfj", "turns-bad", "--type=json", "-p", '[{"op": "remove", "path": "/spec/tfReplicaSpecs/Boss"}]')
        eventually(lambda: "Chief" in self.condition("turns-bad", "SpecInvalid")["message"], "the first to be what is left")
        self.assertEqual(self.running("turns-bad"), ["chief-0", "worker-0", "worker-1"])
        why = self.cluster.run("why", "tfj/turns-bad", "-n", self.namespace).stdout
        self.assertIn("there can be only one chief, not 2", why)
        self.kubectl("delete", "pod", pods["worker-1"]["metadata"]["name"], "--grace-period=0", "--force")
        self.await_another("turns-bad", "worker-1", pods["worker-1"])
        self.assertEqual(self.pods_of("turns-bad")["chief-0"]["metadata"]["uid"], pods["chief-0"]["metadata"]["uid"])
        self.patch("turns-bad", {"tfReplicaSpecs": {"Chief": {"replicas": 1}}})
        eventually(lambda: self.condition("turns-bad", "SpecInvalid") is None, "the condition to go")
        self.assertNotIn("lastValidSpec", self.job("turns-bad")["status"])
        self.await_running("turns-bad", "chief-0", "worker-0", "worker-1", "worker-2")
        self.open_gate("turns-bad")
        self.await_state("turns-bad", "Succeeded")

    def test_with_the_longest_name_that_fits_work(self):
        name = "l" * (63 - len("-worker-0-12345"))
        self.submit(tfjob(name, worker()), tfjob(name + "l", worker()))
        self.await_state(name, "Succeeded")
        self.assertIn("is too long by 1:", current(self.await_state(name + "l", "Failed"))["message"])

    def test_whose_status_somebody_has_scribbled_on_still_end_well(self):
        self.submit(tfjob("scribbled", {"Worker": role(self.behind("scribbled"), 2, "Never")}))
        self.await_running("scribbled", "worker-0", "worker-1")
        self.await_state("scribbled", "Running")
        junk = {"conditions": [{"type": "Odd", "status": "True"}, {"type": "Running", "status": "Maybe"}], "ready": "many",
                "restarts": {"Worker": {"attempts": "x:y", "count": -5}, "Nobody": {"count": 1}}, "startTime": "2001-01-01T00:00:00Z",
                "tfReplicaStatuses": {"Worker": {"completedIndexes": "no", "active": -7}}}
        self.kubectl("patch", "tfj", "scribbled", "--subresource=status", "--type=merge", "-p", json.dumps({"status": junk}))
        eventually(lambda: self.state("scribbled") == "Running" and self.job("scribbled")["status"]["ready"] == "2/2",
                   "it to be mended")
        self.open_gate("scribbled")
        status = self.await_state("scribbled", "Succeeded")["status"]
        self.assertGreaterEqual(status["tfReplicaStatuses"]["Worker"]["succeeded"], 1)
        self.assertNotIn("Odd", [c["type"] for c in status["conditions"]])

    def versions(self):
        """Without what was scribbled, which breaks the rules and not by the operator's doing."""
        return [job for job in super().versions() if job["metadata"]["name"] != "scribbled"]


class Refused(JobCase):
    """Pods that the API server does not take: the job says so, and goes on once that is mended."""

    def broken(self, name, replicas=2):
        bad = role("exit 0", replicas, "Never")
        bad["template"]["spec"]["containers"].append({"name": "Side_Car", "image": "none", "command": ["true"]})
        return tfjob(name, {"Worker": bad}, successPolicy="AllWorkers")

    def test_are_told_in_the_status_and_made_when_the_template_is_mended(self):
        self.submit(self.broken("mended"), tfjob("beside", worker()))
        self.await_state("beside", "Succeeded")
        created = eventually(lambda: (self.condition("mended", "Created") or {}).get("reason") == "FailedCreate"
                             and self.condition("mended", "Created"), "the condition")
        self.assertEqual(created["status"], "False")
        self.assertIsNone(self.state("mended"))
        self.assertIn("0 of 2 pods and ", created["message"])
        self.assertIn("Side_Car", created["message"])
        self.await_told("mended", "Warning", "FailedCreate", "Side_Car")
        self.assertEqual(self.pods_of("mended"), {})
        good = role("exit 0", 2, "Never")["template"]["spec"]["containers"]
        self.patch("mended", {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": good}}}}})
        self.await_state("mended", "Succeeded", within=20)  # not when the back-off is over, but when it is changed

    def test_do_not_flood_the_status_and_the_events_while_it_lasts(self):
        self.submit(self.broken("quiet", 1))
        eventually(lambda: (self.condition("quiet", "Created") or {}).get("reason") == "FailedCreate", "the condition")

        def failures():
            listed = self.get("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.name=quiet,reason=FailedCreate"
                              % self.namespace)
            return sum(e.get("count") or 1 for e in listed["items"]), len(listed["items"])
        eventually(lambda: failures()[0] >= 3, "some more tries")
        self.assertEqual(failures()[1], 1)
        said = [job["status"]["conditions"][0]["message"] for _, job in self.jobs.of("quiet") if "status" in job]
        self.assertEqual(len(said), len(set(said)), said)

    def test_names_of_others_are_told_and_not_taken(self):
        """A pod that has the name which one of the job would get."""
        self.submit(tfjob("taken", worker(), suspend=True))
        self.await_state("taken", "Suspended")
        name = "taken-worker-0-" + self.job("taken")["metadata"]["uid"][:5]
        self.submit({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                     "spec": {"containers": [{"name": "main", "image": "none", "command": ["sleep", "1000"]}],
                              "terminationGracePeriodSeconds": 1}})
        self.patch("taken", {"suspend": False})
        created = eventually(lambda: (self.condition("taken", "Created") or {}).get("reason") == "FailedCreate"
                             and self.condition("taken", "Created"), "the condition")
        self.assertIn("pod %s: exists, belongs to nobody" % name, created["message"])
        self.kubectl("delete", "pod", name, "--wait=false")
        self.await_state("taken", "Succeeded")


if __name__ == "__main__":
    cases.main()
