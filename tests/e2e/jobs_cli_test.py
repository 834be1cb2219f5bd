"""What people type about jobs: apply, get, describe, why, logs, events, top, scale, delete, run, and completion."""

import contextlib
import json
import os
import signal
import subprocess
import unittest

import cases
from cluster import environment, eventually


def tfjob(name, script, workers=1, policy="Never", resources=None):
    container = {"name": "tensorflow", "image": "none", "command": ["sh", "-c", script]}
    if resources:
        container["resources"] = {"requests": resources}
    return {"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "metadata": {"name": name, "labels": {"of": name}},
            "spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers, "restartPolicy": policy,
                                                   "template": {"spec": {"containers": [container]}}}}}}


def aitj(name, script, replicas=2, limit=3):
    container = {"name": "aitj-main", "image": "none", "command": ["sh", "-c", script]}
    role = {"replicas": replicas, "restartPolicy": "OnFailure", "restartScope": "Pod", "restartLimit": limit,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "elasticdeeplearning.ai/v1", "kind": "AITrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {"trainer": role}}}


class JobsCase(unittest.TestCase):
    """All tests of a class share a cluster, and use names of their own."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cases.Cluster(cases.TRAINYARD)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def do(self, *words, code=0, stdin=None, env=None):
        done = subprocess.run([cases.TRAINYARD, *words, "--home", self.cluster.home], input=stdin, capture_output=True,
                              text=True, env=environment(**(env or {})), timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def apply(self, *objects):
        return self.do("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})).stdout

    def why(self, name):
        return json.loads(self.do("why", name, "-o", "json").stdout)

    def await_why(self, name, condition, what):
        def looks():
            page = self.why(name)
            return page if condition(page) else None
        return eventually(looks, what)

    def await_state(self, name, *states):
        return self.await_why(name, lambda page: page["state"] in states, "%s is %s" % (name, states))


class LookingTest(JobsCase):
    def test_lists_jobs_in_every_format(self):
        out = self.apply(tfjob("one", "sleep 100"), aitj("two", "sleep 100"))
        self.assertEqual(out, "tfjob/one created\naitrainingjob/two created\n")
        self.await_state("one", "Running")
        self.await_state("two", "Running")
        table = self.do("get").stdout.splitlines()
        self.assertEqual(table[0].split(), ["NAME", "STATE", "READY", "RESTARTS", "AGE"])
        rows = {line.split()[0]: line.split()[1:4] for line in table[1:]}
        self.assertEqual(rows["tfjob/one"], ["Running", "1/1", "0"])
        self.assertEqual(rows["aitrainingjob/two"], ["Running", "2/2", "0"])
        self.assertIn("MESSAGE", self.do("get", "-o", "wide").stdout.splitlines()[0])
        self.assertEqual(self.do("get", "tfjobs", "-A").stdout.splitlines()[0].split()[0], "NAMESPACE")
        self.assertEqual(self.do("get", "-l", "of=one", "-o", "name").stdout, "tfjob/one\n")
        self.assertEqual(json.loads(self.do("get", "one", "-o", "json").stdout)["metadata"]["name"], "one")
        self.assertIn("\nkind: TFJob\n", "\n" + self.do("get", "tfjob/one", "-o", "yaml").stdout)
        kinds = {item["kind"] for item in json.loads(self.do("get", "-o", "json").stdout)["items"]}
        self.assertLessEqual({"TFJob", "AITrainingJob"}, kinds)
        self.assertEqual(self.apply(tfjob("one", "sleep 100")), "tfjob/one unchanged\n")
        description = self.do("describe", "one").stdout
        for part in ("Name:", "Running", "worker-0", "Events:", "SuccessfulCreate"):
            self.assertIn(part, description)
        self.assertIn("SuccessfulCreate", self.do("events", "one").stdout)
        self.assertIn("tfjob/one", self.do("events", "-A").stdout)

    def test_watches(self):
        watch = subprocess.Popen([cases.TRAINYARD, "get", "-w", "--home", self.cluster.home], stdout=subprocess.PIPE,
                                 text=True, env=environment())
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        self.apply(tfjob("watched", "sleep 1"))
        seen = []
        while not seen or not seen[-1].startswith("tfjob/watched") or "Succeeded" not in seen[-1]:
            line = watch.stdout.readline()
            self.assertTrue(line, seen)
            seen.append(line)
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(20), 0)

    def test_names_that_are_none_are_told_in_a_line(self):
        for words, part, code in ((("why", "nobody"), "there is no job 'nobody' in namespace default", 1),
                                  (("get", "pod/x"), "'pod' is no kind of job", 2),
                                  (("logs", "tfjob/"), "has no name", 2),
                                  (("scale", "x", "many"), "'many' is no size", 2),
                                  (("get", "-w", "-o", "json"), "-w prints lines", 2),
                                  (("delete",), "name a job", 2),
                                  (("apply",), "name a file", 2),
                                  (("apply", "-f", "/nowhere"), "/nowhere", 1)):
            with self.subTest(words=words):
                done = self.do(*words, code=code)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_two_of_one_name_must_be_told_apart(self):
        self.apply(tfjob("twin", "sleep 100"), aitj("twin", "sleep 100"))
        self.assertIn("write tfjob/twin or aitrainingjob/twin", self.do("why", "twin", code=1).stderr)
        self.do("why", "aitj/twin")
        self.do("delete", "tfjob/twin", "aitj/twin")

    def test_what_the_server_refuses_is_told_and_the_rest_is_applied(self):
        bad = tfjob("bad", "true")
        bad["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = "many"
        done = self.do("apply", "-f", "-", stdin=json.dumps(bad) + "\n", code=1)
        self.assertIn("tfjob/bad", done.stderr)
        self.assertIn("replicas", done.stderr)
        both = {"apiVersion": "v1", "kind": "List", "items": [bad, tfjob("good", "true")]}
        self.assertEqual(self.do("apply", "-f", "-", stdin=json.dumps(both), code=1).stdout, "tfjob/good created\n")
        self.do("apply", "-f", "-", "--dry-run", stdin=json.dumps(tfjob("dry", "true")))
        self.do("why", "dry", code=1)
        nobody = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
        self.assertIn("the cluster knows no example.com/v1", self.do("apply", "-f", "-", stdin=json.dumps(nobody), code=1).stderr)


class WhyTest(JobsCase):
    def test_a_job_that_finds_no_room(self):
        self.apply(tfjob("huge", "true", resources={"cpu": "500"}))
        page = self.await_why("huge", lambda page: len(page["waits"]) > 1, "the nodes are explained")
        self.assertIn("worker-0 (pod huge-worker-0-", page["waits"][0])
        self.assertRegex(page["waits"][1], r"^node-\d+ has .* cpu free, and it asks for 500$")
        self.assertIn("ask for less", page["next"])
        self.assertIn("Next: ", self.do("why", "huge").stdout)

    def test_a_job_that_fails_keeps_the_last_words_of_its_pods(self):
        self.apply(aitj("crash", "echo begin; for i in $(seq 40); do echo line $i; done; echo oh no >&2; exit 7", 1, 2))
        page = self.await_state("crash", "Failed")
        self.assertEqual(page["restarts"], 2)
        gone = page["history"]
        self.assertGreaterEqual(len(gone), 2, gone)
        for one in gone:
            self.assertEqual((one["member"], one["exitCode"]), ("trainer-0", 7))
            self.assertIn("oh no\n", one["log"])
            self.assertTrue(one["node"] and one["cause"], one)
        text = self.do("why", "crash", "--lines", "3").stdout
        self.assertIn("trainer-0: exited 7 on node-1", text)
        self.assertIn("      | line 40\n", text)
        self.assertNotIn("      | line 38\n", text)
        self.assertIn("--previous", text)
        lines = self.do("logs", "crash", "--previous").stdout
        self.assertGreaterEqual(lines.count("[trainer-0] oh no"), 2)
        self.do("delete", "crash")
        eventually(lambda: "crash" not in self.cluster.kubectl("get", "configmaps", "-o", "name").stdout, "the history to go with the job")

    def test_a_pod_that_somebody_deletes_is_remembered(self):
        # It takes a moment to end: what is gone before the operator has seen it go leaves no log.
        self.apply(aitj("victim", "trap 'sleep 1; exit 0' TERM; echo I am $HOSTNAME; sleep 100 & wait"))
        self.await_state("victim", "Running")
        eventually(lambda: "I am" in self.do("logs", "victim", "--member", "trainer-1").stdout, "it to have written")
        self.cluster.kubectl("delete", "pod", "victim-trainer-1", "--wait=false")
        page = self.await_why("victim", lambda page: page["history"] and page["state"] == "Running", "it is remembered")
        self.assertEqual(page["history"][0]["member"], "trainer-1")
        self.assertIn("I am victim-trainer-1", page["history"][0]["log"])
        self.assertIn("[trainer-1] --- pod victim-trainer-1 is gone", self.do("logs", "victim", "--member", "trainer-1").stdout)


class LogsTest(JobsCase):
    def test_merges_members_and_follows_over_a_restart(self):
        script = 'id=$(cat /proc/sys/kernel/random/uuid); i=0; while [ ! -e %s ]; do i=$((i+1)); printf "step %%s of $id\\n" $((3*i-2)) $((3*i-1)) $((3*i)); sleep 0.1; done; printf done'
        stop = os.path.join(self.cluster.home, "stop")
        self.apply(aitj("steps", script % stop))
        self.await_state("steps", "Running")
        follow = subprocess.Popen([cases.TRAINYARD, "logs", "steps", "-f", "--home", self.cluster.home], stdout=subprocess.PIPE,
                                  text=True, env=environment())
        self.addCleanup(follow.communicate)
        self.addCleanup(follow.kill)
        seen = [follow.stdout.readline() for _ in range(6)]
        for pid in self.cluster.processes(HOSTNAME="steps-trainer-1"):
            with contextlib.suppress(ProcessLookupError):  # a sleep that is over by now
                os.kill(pid, signal.SIGKILL)
        self.await_why("steps", lambda page: page["restarts"] == 1 and page["state"] == "Running", "it runs again")
        with open(stop, "w"):
            pass
        lines = "".join(seen) + follow.stdout.read()  # communicate() with a time-out drops lines that are buffered already
        follow.wait()
        self.assertEqual(follow.returncode, 0)
        for member in ("trainer-0", "trainer-1"):
            self.assertIn("[%s] done" % member, lines)
        writers = {line.split()[-1] for line in lines.splitlines() if line.startswith("[trainer-1] step")}
        self.assertEqual(len(writers), 2, "both processes of the one that was killed\n" + lines)
        for member in ("trainer-0", "trainer-1"):
            for writer in writers:
                steps = [int(line.split()[2]) for line in lines.splitlines()
                         if line.startswith("[%s] step" % member) and line.endswith(" " + writer)]
                self.assertEqual(steps, list(range(1, len(steps) + 1)), "each line once, and all in order")

    def test_chooses_members_and_lines(self):
        self.apply(aitj("chosen", "echo first; echo second; sleep 100"))
        self.await_state("chosen", "Running")
        eventually(lambda: self.do("logs", "chosen").stdout.count("second") == 2, "both have written")
        self.assertEqual(self.do("logs", "chosen", "--member", "trainer-1").stdout, "[trainer-1] first\n[trainer-1] second\n")
        self.assertEqual(self.do("logs", "chosen", "--member", "trainer-0", "--tail", "1").stdout, "[trainer-0] second\n")
        self.assertEqual(self.do("logs", "chosen", "--member", "trainer-0", "--since", "1h").stdout.count("\n"), 2)
        self.assertRegex(self.do("logs", "chosen", "--timestamps").stdout, r"\[trainer-0\] \d{4}-\d\d-\d\dT\S+Z first")
        self.assertIn("has no member 'x': there are trainer-0, trainer-1", self.do("logs", "chosen", "--member", "x", code=1).stderr)


class ChangingTest(JobsCase):
    def test_scales_and_deletes(self):
        self.apply(aitj("sized", "sleep 100", 1))
        self.await_state("sized", "Running")
        self.assertEqual(self.do("scale", "sized", "3").stdout, "aitrainingjob/sized trainer 1 -> 3\n")
        eventually(lambda: "3/3" in self.do("get", "sized").stdout, "three run")
        self.assertIn("has no role 'ps': it has trainer", self.do("scale", "sized", "ps=3", code=1).stderr)
        self.apply(tfjob("unsized", "sleep 100"))
        self.assertIn("the job needs a Chief or a Worker", self.do("scale", "tfj/unsized", "worker=0", code=1).stderr)
        self.await_state("tfj/unsized", "Running")
        self.do("delete", "unsized")
        self.assertEqual(self.do("delete", "sized").stdout, "aitrainingjob/sized deleted\n")
        self.assertNotIn("sized", self.cluster.kubectl("get", "pods", "-o", "name").stdout)
        self.apply(tfjob("brief", "true"))
        self.await_state("brief", "Succeeded")
        self.assertIn("tfjob/brief deleted", self.do("delete", "--finished").stdout)
        self.do("why", "brief", code=1)

    def test_top_measures(self):
        self.apply(aitj("busy", "while :; do :; done", 1))
        self.await_state("busy", "Running")
        def measured():
            row = self.do("top", "busy").stdout.splitlines()[3].split()
            return row if float(row[2]) > 0.1 else None
        row = eventually(measured, "its processor time is seen")
        self.assertEqual(row[:2], ["trainer-0", "Running"])
        self.assertRegex(row[3], r"^\d+Mi$")
        top = self.cluster.kubectl("top", "pods").stdout
        self.assertIn("busy-trainer-0", top)
        self.do("delete", "busy")


class RunTest(JobsCase):
    def run_command(self, *words, code=0):
        done = subprocess.run([cases.TRAINYARD, "run", "--home", self.cluster.home, *words], capture_output=True, text=True,
                              env=environment(), timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_runs_a_command_in_members_and_exits_with_its_result(self):
        out = self.run_command("--workers", "3", "--", "sh", "-c", "echo member $RANK of $WORLD_SIZE --flag").stdout
        for rank in range(3):
            self.assertIn("[worker-%d] member %d of 3 --flag\n" % (rank, rank), out)
        self.assertNotIn("run-", self.do("get", "-o", "name").stdout, "nothing is left of what succeeded")
        failed = self.run_command("--name", "bad", "--", "sh", "-c", "echo last words; exit 3", code=1)
        self.assertIn("trainyard why task/bad", failed.stderr)
        page = self.why("task/bad")
        self.assertEqual(page["state"], "Failed")
        self.assertIn("last words", self.do("logs", "task/bad").stdout)
        self.do("delete", "task/bad")

    def test_a_restart_is_told(self):
        self.run_command("--name", "again", "--keep", "--max-restarts", "2", "--", "sh", "-c",
                         "[ -e %s/again ] || { touch %s/again; exit 9; }" % (self.cluster.home, self.cluster.home))
        self.assertEqual(self.why("task/again")["restarts"], 1)
        self.assertIn("exited 9", self.do("describe", "task/again").stdout)


class HelpTest(JobsCase):
    def test_every_command_is_on_the_page_and_in_the_manual(self):
        page = subprocess.run([cases.TRAINYARD, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(max(map(len, page.splitlines())), 79)
        listed = subprocess.run([cases.TRAINYARD, "nonsense"], capture_output=True, text=True, check=False)
        self.assertEqual(listed.returncode, 2)
        words = listed.stderr.partition("there are ")[2].partition(";")[0].split(", ")
        manual = subprocess.run([cases.TRAINYARD, "man"], capture_output=True, text=True, check=True).stdout
        self.assertGreater(len(words), 25)
        for word in words:
            self.assertRegex(page, r"(^|\s)%s\s" % word)
            if word != "man":
                self.assertIn(".SS trainyard %s\n" % word.replace("-", "\\-"), manual)
        rendered = subprocess.run(["man", "-l", "-"], input=manual, capture_output=True, text=True, check=False,
                                  env=environment(MANWIDTH="100")) if os.path.exists("/usr/bin/man") else None
        if rendered:
            self.assertEqual((rendered.returncode, rendered.stderr), (0, ""))

    def complete(self, *words):
        done = subprocess.run([cases.TRAINYARD, "__complete", *words], capture_output=True, text=True, check=True,
                              env=environment(TRAINYARD_HOME=self.cluster.home))
        return done.stdout.split()

    def test_completes_commands_flags_and_live_jobs(self):
        self.apply(tfjob("complete-me", "sleep 100"))
        self.assertEqual(self.complete("wh"), ["why"])
        self.assertIn("get", self.complete("kv", ""))
        self.assertIn("--all-namespaces", self.complete("get", "--a"))
        self.assertEqual(self.complete("why", "compl"), ["complete-me"])
        self.assertEqual(self.complete("logs", "-f", "tfjob/c"), ["tfjob/complete-me"])
        self.assertEqual(self.complete("logs", "--member", ""), [])
        folder = os.path.dirname(cases.TRAINYARD)
        script = 'source <(trainyard completion bash); COMP_WORDS=(trainyard why comp); COMP_CWORD=2; _trainyard; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                              env=environment(TRAINYARD_HOME=self.cluster.home, PATH=folder + ":" + os.environ["PATH"]))
        self.assertEqual(done.stdout.strip(), "complete-me")


if __name__ == "__main__":
    cases.main()
