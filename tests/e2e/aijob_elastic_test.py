"""AITrainingJobs that grow and shrink while they run, with members that bear it and with such that do not.

usage: aijob_elastic_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import signal
import uuid

import cases
import processes
from aijobs import FOREVER, AiJobCase, aijob, role, version
from cases import eventually

MARK = "TRAINYARD_TEST_MARK"

# Writes down every list of members that it finds, until it is told to end.
READER = r"""
import os, time
path, last = os.environ["TRAININGJOB_MEMBERS_FILE"], None
with open(os.environ["SEEN"] + os.environ["TRAININGJOB_REPLICA_INDEX"], "a") as seen:
    while not os.path.exists(os.environ["GATE"]):
        with open(path) as file:
            now = file.read()
        if now != last:
            seen.write(now.replace("\n", ";") + "\n")
            seen.flush()
            last = now
        time.sleep(0.02)
"""


class ElasticCase(AiJobCase):
    def resize(self, name, replicas, kind="trainer"):
        self.patch(name, {"replicaSpecs": {kind: {"replicas": replicas}}})

    def seats(self, count, kind="trainer"):
        return ["%s-%d" % (kind, i) for i in range(count)]

    def await_size(self, name, count):
        """All its trainers run, and no others are there."""
        self.await_running(name, *self.seats(count))
        eventually(lambda: self.state(name) == "Running" and self.job(name)["status"]["ready"] == "%d/%d" % (count, count)
                   and sorted(self.pods_of(name)) == sorted(self.services_of(name)) == self.seats(count), "the rest to go")
        return self.pods_of(name)

    def uids(self, pods):
        return {which: pod["metadata"]["uid"] for which, pod in pods.items()}


class Sizes(ElasticCase):
    def test_that_are_manual_stay_within_their_bounds(self):
        self.submit(aijob("manual", {"trainer": role(self.traced("manual", self.behind("manual")), 1, edlPolicy="Manual",
                                                     minReplicas=2, maxReplicas=4)}, faultTolerant=True))
        self.await_size("manual", 2)
        self.assertEqual(self.message("manual"), "all 2 pods run; trainer has 2 pods, not 1: minReplicas is 2")
        for wanted, size, said in ((3, 3, "all 3 pods run"), (10, 4, "all 4 pods run; trainer has 4 pods, not 10: maxReplicas is 4"),
                                   (0, 2, "all 2 pods run; trainer has 2 pods, not 0: minReplicas is 2")):
            self.resize("manual", wanted)
            self.await_size("manual", size)
            eventually(lambda: self.message("manual") == said, "it to say '%s'" % said)
            self.assertEqual(self.counts("manual", "trainer")["size"], size)
        self.open_gate("manual")
        self.assertEqual(self.await_phase("manual", "Succeed")["status"]["restartTotal"], 0)

    def test_that_are_never_to_change_do_not(self):
        self.submit(aijob("never", {"trainer": role(self.behind("never"), 2, edlPolicy="Never", minReplicas=1, maxReplicas=9)}))
        before = self.uids(self.await_size("never", 2))
        self.resize("never", 5)
        eventually(lambda: self.message("never") == "all 2 pods run; trainer has 2 pods, not 5: edlPolicy is Never", "it to say so")
        self.resize("never", 2)
        eventually(lambda: self.message("never") == "all 2 pods run", "it to be content")
        self.assertEqual(self.uids(self.pods_of("never")), before)
        self.open_gate("never")
        self.await_phase("never", "Succeed")
        self.assertEqual(self.made("never"), {"trainer-0": 1, "trainer-1": 1})

    def test_without_a_word_may_be_any_and_types_come_and_go(self):
        self.submit(aijob("any", {"trainer": role(self.behind("any")), "evaluator": role(FOREVER, completePolicy="None")},
                          faultTolerant=True))
        self.await_running("any", "evaluator-0", "trainer-0")
        self.resize("any", 0, "evaluator")
        self.await_size("any", 1)
        self.resize("any", 2, "evaluator")
        self.await_running("any", "evaluator-0", "evaluator-1", "trainer-0")
        self.patch("any", {"replicaSpecs": {"evaluator": None, "helper": role(FOREVER, completePolicy="None")}})
        self.await_running("any", "helper-0", "trainer-0")
        eventually(lambda: sorted(self.pods_of("any")) == sorted(self.services_of("any")) == ["helper-0", "trainer-0"],
                   "the evaluators to go")
        eventually(lambda: self.job("any")["status"]["ready"] == "2/2", "two to be ready")
        self.open_gate("any")
        self.await_phase("any", "Succeed")
        self.assertEqual(self.made("any")["trainer-0"], 1)


class Members(ElasticCase):
    """Of jobs that are fault tolerant: they join and leave while the others go on."""

    def reader(self, name, **more):
        container = {"command": ["/usr/bin/python3", "-c", READER],
                     "env": [{"name": "SEEN", "value": os.path.join(self.folder, name + ".seen-")},
                             {"name": "GATE", "value": self.gate(name)}, {"name": MARK, "value": more.pop("mark", "")}],
                     "volumeMounts": [{"name": "who", "mountPath": "/run/members"}]}
        volumes = [{"name": "who", "configMap": {"name": name + "-members"}}]
        return role("", more.pop("replicas", 2), container=container, pod={"volumes": volumes}, **more)

    def seen(self, name, index):
        """(epoch, {seat: uid}) of every list that this member has read."""
        path = os.path.join(self.folder, "%s.seen-%d" % (name, index))
        if not os.path.exists(path):
            return []
        with open(path, encoding="ascii") as file:
            lists = [line.rstrip(";\n").split(";") for line in file if line.endswith("\n")]
        read = []
        for first, *rest in lists:
            word, epoch = first.split()
            self.assertEqual(word, "epoch")
            members = {}
            for line in rest:
                kind, number, instance, uid = line.split()
                self.assertEqual(instance, "%s-%s-%s.%s" % (name, kind, number, self.namespace))
                members["%s-%s" % (kind, number)] = uid
            read.append((int(epoch), members))
        return read

    def await_seen(self, name, index=0):
        """That the member reads of exactly those that run."""
        def read():
            lists = self.seen(name, index)
            return lists and lists[-1][1] == self.uids(self.pods_of(name))
        eventually(read, "member %d of %s to read who is there" % (index, name))

    def test_are_told_by_a_file_while_they_run(self):
        mark = str(uuid.uuid4())
        self.submit(aijob("elastic", {"trainer": self.reader("elastic", mark=mark, policy="OnFailure", restartScope="Pod")},
                          faultTolerant=True))
        first = self.uids(self.await_size("elastic", 2))
        self.await_seen("elastic")
        for size in (4, 1, 3):
            self.resize("elastic", size)
            self.await_size("elastic", size)
            self.await_seen("elastic")
        self.await_seen("elastic", 2)
        # One that dies comes back as another.
        before = self.uids(self.pods_of("elastic"))
        victim = next(pid for pid, env in processes.with_mark(MARK, mark).items() if env[b"TRAININGJOB_REPLICA_INDEX"] == b"1")
        os.kill(victim, signal.SIGKILL)
        after = self.uids(self.await_restarted("elastic", trainer=1))
        self.assertEqual([after[s] == before[s] for s in self.seats(3)], [True, False, True])
        self.await_seen("elastic")
        epochs = [epoch for epoch, _ in self.seen("elastic", 0)]
        self.assertEqual(epochs, sorted(set(epochs)))
        self.assertEqual(self.job("elastic")["status"]["members"]["epoch"], epochs[-1])
        # No epoch ever means two things.
        everywhere = {}
        for index in range(3):
            for epoch, members in self.seen("elastic", index):
                self.assertEqual(everywhere.setdefault(epoch, members), members)
        self.assertEqual(self.pods_of("elastic")["trainer-0"]["metadata"]["uid"], first["trainer-0"])
        self.open_gate("elastic")
        self.await_phase("elastic", "Succeed")
        self.assertEqual(self.made("elastic")["trainer-0"], 1)
        eventually(lambda: self.kubectl("get", "configmap", "elastic-members", check=False).returncode == 1, "the list to go")

    def test_are_told_where_to_look(self):
        script = 'printf "%%s|" "$TRAININGJOB_MEMBERS" "${TRAININGJOB_MEMBERS_FILE-none}" "$TRAINER_INSTANCES_NUM"; %s'
        self.submit(aijob("where", {"trainer": role(script % "exit 0", 2)}, faultTolerant=True, cleanPodPolicy="None"),
                    aijob("nowhere", {"trainer": role(script % "exit 0", 2)}, cleanPodPolicy="None"))
        self.await_end("Succeed", "where", "nowhere")
        self.assertEqual(self.logs(self.pods_of("where")["trainer-1"]), "where-members|none|2|")
        self.assertEqual(self.logs(self.pods_of("nowhere")["trainer-1"]), "|none|2|")
        self.assertEqual(self.kubectl("get", "configmap", "nowhere-members", check=False).returncode, 1)

    def test_have_a_list_that_belongs_to_their_job_and_is_made_again(self):
        self.submit(aijob("listed", {"trainer": role(self.behind("listed"), 2)}, faultTolerant=True))
        pods = self.await_size("listed", 2)

        def members():
            done = self.kubectl("get", "configmap", "listed-members", "-o", "json", check=False)
            return json.loads(done.stdout) if done.returncode == 0 else None

        def told():
            made = members()
            return made and made["data"]["members"].splitlines()[1:] == [
                "trainer %d listed-trainer-%d.%s %s" % (i, i, self.namespace, pods["trainer-%d" % i]["metadata"]["uid"])
                for i in range(2)] and made
        before = eventually(told, "the list")
        self.assertEqual(before["metadata"]["ownerReferences"][0]["uid"], self.job("listed")["metadata"]["uid"])
        self.kubectl("delete", "configmap", "listed-members")
        again = eventually(told, "the list to be made again")
        self.assertGreaterEqual(int(again["data"]["members"].split()[1]), int(before["data"]["members"].split()[1]))
        self.kubectl("patch", "configmap", "listed-members", "--type=merge", "-p", '{"data": {"members": "nobody"}}')
        eventually(told, "the list to be mended")
        self.open_gate("listed")
        self.await_phase("listed", "Succeed")

    def test_do_not_take_the_list_of_somebody_else(self):
        self.kubectl("create", "configmap", "theirs-members", "--from-literal=members=mine")
        self.submit(aijob("theirs", {"trainer": role(self.behind("theirs"))}, faultTolerant=True))
        eventually(lambda: "configmap theirs-members: exists and does not belong to the job" in (self.message("theirs") or ""),
                   "it to say what is in the way")
        self.assertEqual(self.cluster.get("configmap", "theirs-members", "-n", self.namespace)["data"], {"members": "mine"})
        self.kubectl("delete", "configmap", "theirs-members")
        self.await_phase("theirs", "Running")
        self.open_gate("theirs")
        self.await_phase("theirs", "Succeed")


class Remade(ElasticCase):
    """Jobs that are not fault tolerant: a change of size makes all of the type again, once."""

    def test_are_all_of_the_type_once_with_the_new_size_and_after_their_grace(self):
        told = os.path.join(self.folder, "remade.told")
        script = ("echo $TRAININGJOB_REPLICA_INDEX/$TRAINER_INSTANCES_NUM >> %s; trap 'sleep 0.3; echo saved >> %s; exit 0' TERM; %s"
                  % (told, told, self.behind("remade")))
        self.submit(aijob("remade", {"trainer": role(self.traced("remade", script), 2, "Always", restartLimit=0,
                                                     pod={"terminationGracePeriodSeconds": 20}),
                                     "pserver": role(FOREVER, completePolicy="None")}))
        before = self.await_running("remade", "pserver-0", "trainer-0", "trainer-1")
        eventually(lambda: len(self.lines("remade.told")) == 2, "both to be told")
        text = "trainer goes from 2 to 3 pods; all of them are made again"
        self.resize("remade", 3)
        self.await_told("remade", "Normal", "TrainingJobScaling", text)
        after = self.await_running("remade", "pserver-0", *self.seats(3))
        self.await_phase("remade", "Running")
        self.assertIn(text, self.messages("remade", "Terminating"))
        self.assertEqual(after["pserver-0"]["metadata"]["uid"], before["pserver-0"]["metadata"]["uid"])
        eventually(lambda: len(self.lines("remade.told")) == 7, "all to be told")
        lines = self.lines("remade.told")
        self.assertEqual((sorted(lines[:2]), lines[2:4], sorted(lines[4:])), (["0/2", "1/2"], ["saved", "saved"], ["0/3", "1/3", "2/3"]))
        gone = max(version(pod) for what, pod in list(self.pods.events) if what == "DELETED"
                   and pod["metadata"]["uid"] in self.uids(before).values())
        self.assertLess(gone, min(version(pod) for what, pod in list(self.pods.events) if what == "ADDED"
                                  and pod["metadata"]["uid"] in {after[s]["metadata"]["uid"] for s in self.seats(3)}))
        # It was asked for: no restart was spent on it.
        self.assertEqual(self.restarts("remade"), {"trainer": 0, "pserver": 0})
        self.resize("remade", 1)
        self.await_running("remade", "pserver-0", "trainer-0")
        eventually(lambda: self.lines("remade.told")[-1] == "0/1", "the last one to be told")
        self.open_gate("remade")
        self.await_phase("remade", "Succeed")
        self.assertEqual(self.made("remade"), {"pserver-0": 1, "trainer-0": 3, "trainer-1": 2, "trainer-2": 1})

    def test_up_and_down_at_once_settle_at_the_last_word(self):
        self.submit(aijob("wobbles", {"trainer": role(self.traced("wobbles", self.behind("wobbles")))}))
        for replicas in (5, 1, 4, 2, 3):
            self.resize("wobbles", replicas)
        self.await_size("wobbles", 3)
        self.open_gate("wobbles")
        self.await_phase("wobbles", "Succeed")
        self.starts("wobbles")


if __name__ == "__main__":
    cases.main()
