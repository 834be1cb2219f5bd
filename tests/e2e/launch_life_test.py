"""Tasks of the launcher from the command line to their end, and what happens when pods, scripts and the launcher itself are
killed.

usage: launch_life_test.py TRAINYARD [unittest arguments]
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import cases
import graph_jobs
from cluster import environment, eventually
from launches import ScriptCase, launcher_beside


class Life(ScriptCase):
    def test_runs_the_script_in_all_members_and_shows_their_output(self):
        job = self.start(*self.script("plain", "--worker-num", 3, what="wait"))
        said = [job.stderr.readline()]
        while "Running" not in said[-1]:
            self.assertNotEqual(said[-1], "", "it has ended:\n" + "".join(said))
            said.append(job.stderr.readline())
        self.assertIn("task plain: Running: 3 members run", said[-1])
        self.go("plain")
        out = job.stdout.read()
        self.assertEqual(job.wait(), 0, out)
        for index in range(3):
            self.assertIn("[worker-%d] hello from worker-%d-1\n" % (index, index), out)
            self.assertIn("[worker-%d] bye from worker-%d-1\n" % (index, index), out)
        self.assertEqual(self.runs("plain"), {"worker-%d-1" % index: 1 for index in range(3)})
        pods = self.cluster.kubectl("get", "pods", "-l", "trainyard.dev/launch-task=plain", "--no-headers").stdout
        self.assertEqual(len(pods.splitlines()), 3)
        eventually(lambda: self.cluster.phase("plain-worker-0") == "Succeeded", "the pods to end with the task")
        logs = self.cluster.run("launch", "logs", "plain", "--member", "worker-1")
        self.assertIn("bye from worker-1-1", logs.stdout)
        eventually(lambda: self.cluster.get("aitj", "plain")["status"]["phase"] == "Succeed", "its job to end")
        self.assertEqual(self.cluster.get("aitj", "plain")["status"]["progress"]["phase"], "Succeeded")
        listed = self.cluster.run("get", "-o", "name").stdout
        self.assertIn("task/plain", listed)
        self.assertNotIn("aitrainingjob/plain", listed)
        self.assertIn("plain", self.cluster.run("launch", "list", "-o", "name").stdout)
        again = self.launch(*self.script("plain"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("there is a task plain already: choose another --task, or `trainyard launch delete plain`", again.stderr)
        self.assertEqual(self.cluster.run("launch", "delete", "plain").returncode, 0)
        eventually(lambda: "plain" not in self.cluster.kubectl("get", "aitj,pods,configmaps,secrets,services").stdout,
                   "all of it to be gone")

    def test_runs_the_script_of_its_own_folder_where_the_image_is_only_a_name(self):
        flags = self.script("named")
        flags[flags.index("--image") + 1] = "registry.example/train"
        done = self.complete(*flags, cwd=self.image)
        self.assertIn("hello from worker-0-1", done.stdout)
        done = self.launch(*flags, cwd=self.folder)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no exec.py in " + self.folder, done.stderr)

    def test_exits_with_what_a_script_that_fails_says(self):
        done = self.launch(*self.script("fails", "--max-restarts", 1, what="fail"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("task fails has failed: worker-0 exited 3, after 1 restarts", done.stderr)
        self.assertEqual(self.runs("fails"), {"worker-0-1": 1, "worker-0-2": 1})
        task = self.task("fails")
        self.assertEqual([(one["member"], one["cause"]) for one in task["history"]], [("worker-0", "exited 3")])
        self.assertIn("Restarted", self.cluster.kubectl("get", "events").stdout)
        eventually(lambda: self.cluster.get("aitj", "fails")["status"]["phase"] == "Failed", "its job to end")
        self.assertIn("hello from worker-0-2", self.logs("fails"))

    def test_says_what_is_wrong_before_anything_is_made(self):
        for flags, said in ((("--worker-num", 0), "--worker-num must be at least 1, and is 0"),
                            (("--ps-num", 1), "AllReduce has no parameter servers"),
                            (("--strategy", "ParameterServer"), "ParameterServer needs at least one: give --ps-num"),
                            (("--strategy", "Other"), "'Other' is not one of AllReduce, ParameterServer"),
                            (("--script", "nothing.py"), "there is no nothing.py in " + self.image),
                            (("--env", "novalue"), "--env must be NAME=VALUE"),
                            (("--min-workers", 5), "must be between")):
            done = self.launch(*self.script("wrong", *flags))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.launch("--master", "http://127.0.0.1:1", "--task", "x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the launcher does not answer", done.stderr)
        for words, said in ((("status", "nobody"), "there is no task nobody"), (("logs", "nobody"), "there is no task nobody"),
                            (("cancel", "nobody"), "there is no task nobody")):
            done = self.cluster.run("launch", *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)

    def test_goes_on_alone_and_can_be_cancelled(self):
        self.assertEqual(self.launch(*self.script("alone", "--detach", "--worker-num", 2, "--grace", "1s", what="wait")).returncode, 0)
        self.await_task("alone", lambda task: task["phase"] == "Running", "it to run")
        self.assertEqual(self.cluster.run("launch", "cancel", "alone").returncode, 0)
        task = self.await_task("alone", lambda task: task["phase"] == "Cancelled", "it to be cancelled")
        self.assertEqual(task["restarts"], 0)
        self.assertEqual(self.pids("alone", "worker-0"), [])
        again = self.cluster.run("launch", "cancel", "alone")
        self.assertEqual(again.returncode, 1)
        self.assertIn("has ended already: it is Cancelled", again.stderr)

    def test_is_cancelled_with_ctrl_c(self):
        job = self.start(*self.script("ctrl-c", "--grace", "1s", what="wait"))
        self.await_task("ctrl-c", lambda task: task["phase"] == "Running", "it to run")
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 1, out + err)
        self.assertIn("task ctrl-c was ended: it was cancelled", err)


class Losses(ScriptCase):
    def await_runs(self, name, runs):
        eventually(lambda: set(runs) <= set(self.runs(name)), "%s to run" % (runs,))

    def test_starts_all_again_when_a_script_is_killed(self):
        job = self.start(*self.script("scripts", "--worker-num", 4, "--grace", "1s", what="wait"))
        self.await_runs("scripts", ["worker-%d-1" % index for index in range(4)])
        self.await_task("scripts", lambda task: task["phase"] == "Running", "all to run")
        os.kill(self.pids("scripts", "worker-2")[0], signal.SIGKILL)
        self.await_runs("scripts", ["worker-%d-2" % index for index in range(4)])
        self.go("scripts")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertIn("worker-2 was killed by signal 9 (SIGKILL); restart 1 of 3", err)
        self.assertEqual(set(self.runs("scripts").values()), {1})
        pods = self.cluster.kubectl("get", "pods", "-l", "trainyard.dev/launch-task=scripts", "--no-headers").stdout
        self.assertEqual(len(pods.splitlines()), 4, "agents outlive their scripts")

    def test_replaces_a_pod_that_is_deleted(self):
        job = self.start(*self.script("pods", "--worker-num", 2, "--grace", "1s", what="wait"))
        self.await_task("pods", lambda task: task["phase"] == "Running", "all to run")
        self.cluster.kubectl("delete", "pod", "pods-worker-1", "--wait=false")
        self.await_runs("pods", ["worker-0-2", "worker-1-2"])
        self.go("pods")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        task = self.task("pods")
        self.assertEqual(task["members"][1]["pod"], "pods-worker-1")
        self.assertEqual([(one["member"], one["cause"]) for one in task["history"]], [("worker-1", "was deleted")])
        self.assertEqual(set(self.runs("pods").values()), {1})

    def test_replaces_a_pod_whose_agent_is_killed_and_keeps_its_history(self):
        job = self.start(*self.script("agents", "--worker-num", 2, "--grace", "1s", what="wait"))
        self.await_task("agents", lambda task: task["phase"] == "Running", "all to run")
        before = self.cluster.get("pod", "agents-worker-0")["metadata"]["uid"]
        for pid, env in self.cluster.processes(TRAININGJOB_SERVICE="agents-worker-0.default").items():
            if b"TRAINYARD_MEMBER" not in env:  # the script goes with its agent
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.await_runs("agents", ["worker-0-2", "worker-1-2"])
        self.assertNotEqual(self.cluster.get("pod", "agents-worker-0")["metadata"]["uid"], before)
        self.go("agents")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertIn("worker-0 was killed by signal 9", err)
        self.assertIn("agents-worker-0", self.cluster.run("describe", "task/agents").stdout)


class Nodes(ScriptCase):
    """A launcher beside the cluster, so that no node takes it along; agents may be silent for an hour."""

    flags = ("--nodes", "4", "--node-grace", "2s", "--capacity", "cpu=2,memory=4Gi")
    nodes = ("node-1", "node-2", "node-3", "node-4")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.master = launcher_beside(cls)

    def node(self, verb, *nodes):
        for node in nodes:
            done = self.cluster.run("node", verb, node)
            self.assertEqual(done.returncode, 0, done.stderr)

    def begin(self, name):
        """Two workers, each on a node of its own."""
        return self.start("--master", self.master, *self.script(
            name, "--worker-num", 2, "--cpu", "1500m", "--grace", "1s", "--agent-timeout", "1h", "--max-restarts", 1, what="wait"))

    def node_of(self, name, member):
        return self.cluster.get("pod", "%s-%s" % (name, member))["spec"]["nodeName"]

    def await_lost(self, name, node):
        task = self.await_task(name, lambda task: task["history"], "the loss to be told")
        self.assertEqual([(one["member"], one["cause"]) for one in task["history"]], [("worker-1", "was lost with " + node)])
        return task

    def succeed(self, name, job):
        self.go(name)
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertEqual(self.runs(name), {"worker-%d-%d" % (index, attempt): 1 for index in (0, 1) for attempt in (1, 2)})
        eventually(lambda: self.cluster.get("aitj", name)["status"]["phase"] == "Succeed", "its job to end")

    def test_that_are_killed_are_told_at_once_and_members_go_elsewhere(self):
        job = self.begin("killed")
        self.await_task("killed", lambda task: task["phase"] == "Running", "all to run")
        node = self.node_of("killed", "worker-1")
        self.node("kill", node)
        self.addCleanup(self.node, "start", node)
        self.await_lost("killed", node)
        self.await_task("killed", lambda task: task["phase"] == "Running", "all to run again")
        self.assertNotEqual(self.node_of("killed", "worker-1"), node)
        self.succeed("killed", job)

    def test_without_room_make_a_task_wait(self):
        self.node("cordon", *self.nodes)
        job = self.begin("room")
        task = self.await_task("room", lambda task: "gang of 2 needs 3 cpu" in task["reason"], "it to wait for room")
        self.assertEqual(task["phase"], "Pending")
        self.node("uncordon", *self.nodes)
        self.await_task("room", lambda task: task["phase"] == "Running", "all to run")
        node = self.node_of("room", "worker-1")
        others = [other for other in self.nodes if other not in (node, self.node_of("room", "worker-0"))]
        self.node("cordon", *others)
        self.node("kill", node)
        self.addCleanup(self.node, "start", node)
        self.await_lost("room", node)
        task = self.await_task("room", lambda task: "1 has a node" in task["reason"], "it to wait for room")
        self.assertEqual((task["phase"], task["restarts"]), ("Restarting", 1))
        self.assertIn("waits for worker-1", task["reason"])
        self.node("uncordon", *others)
        self.succeed("room", job)

    def test_with_room_for_some_run_those_and_the_job_has_none_behind_them(self):
        self.cluster.kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=300s")
        job = self.start("--master", self.master, *self.script("fewer", "--worker-num", 6, "--min-workers", 2, "--cpu", "1500m",
                                                               "--grace", "1s", what="wait"))
        def sized():
            return self.cluster.get("aitj", "fewer")["spec"]["replicaSpecs"]["worker"]["replicas"]
        task = self.await_task("fewer", lambda task: task["phase"] == "Running", "some to run")
        present = [index for index, member in enumerate(task["members"]) if member["attempt"] == 1]
        self.assertIn(len(present), (2, 3, 4), "no more fit")
        eventually(lambda: sized() == present[-1] + 1, "the job to have no pods behind its last member")
        os.kill(self.pid("fewer", "worker-0"), signal.SIGKILL)
        self.await_task("fewer", lambda task: (task["phase"], task["attempt"]) == ("Running", 2), "some to run again")
        self.go("fewer")
        out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertEqual(set(self.runs("fewer").values()), {1})
        eventually(lambda: self.cluster.get("aitj", "fewer")["status"]["phase"] == "Succeed", "its job to end")


class Launcher(ScriptCase):
    """A launcher of the test's own, which is killed and begun again at once."""

    def begin(self):
        self.launcher = subprocess.Popen([cases.TRAINYARD, "launcher", "--kubeconfig", self.cluster.kubeconfig, "--listen",
                                          "127.0.0.1:%d" % self.listen], env=environment(), stderr=subprocess.DEVNULL)

    def end(self):
        self.launcher.kill()
        self.launcher.wait()

    def submit(self, name):
        """Until somebody takes it."""
        def taken():
            done = self.launch("--master", "http://127.0.0.1:%d" % self.listen, "--detach", *self.script(name, "--worker-num", 2))
            return done.returncode == 0 or "there is a task" in done.stderr
        eventually(taken, "task %s to be taken" % name)

    def test_loses_nothing_and_runs_nothing_twice_however_often_it_is_killed(self):
        self.listen = graph_jobs.free_port()
        self.begin()
        self.addCleanup(self.end)
        source = random.Random(3)
        names = []
        for kill in range(24):
            if kill % 4 == 0:
                names.append("chaos-%d" % kill)
                self.submit(names[-1])
            time.sleep(source.uniform(0.0, 0.15))  # from before it looks at the task to after its end
            self.end()
            self.begin()
        for name in names:
            def ended():
                done = subprocess.run([cases.TRAINYARD, "launch", "status", name, "-o", "json", "--master",
                                       "http://127.0.0.1:%d" % self.listen], capture_output=True, text=True, timeout=300, check=False)
                task = json.loads(done.stdout) if done.returncode == 0 else {"phase": ""}
                return task if task["phase"] in ("Succeeded", "Failed") else None
            task = eventually(ended, name + " to end")
            self.assertEqual((task["phase"], task["restarts"]), ("Succeeded", 0), task)
            self.assertEqual(self.runs(name), {"worker-0-1": 1, "worker-1-1": 1}, "each once, for each attempt")


    def ask(self, head):
        """The first line of the answer to bytes that no client would send."""
        with socket.create_connection(("127.0.0.1", self.listen), timeout=10) as connection:
            connection.sendall(head.encode())
            return connection.makefile().readline().split()[1]

    def test_is_not_for_web_pages_where_it_has_no_token(self):
        self.listen = graph_jobs.free_port()
        self.begin()
        self.addCleanup(self.end)

        def answers():
            try:
                return self.ask("GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n") == "200"
            except OSError:
                return False
        eventually(answers, "it to answer")
        for header in ("Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example:7897"):
            host = "" if header.startswith("Host") else "Host: 127.0.0.1\r\n"
            self.assertEqual(self.ask("GET /create?name=x&img=evil HTTP/1.1\r\n%s%s\r\n\r\n" % (host, header)), "401", header)
        self.assertIn(self.ask("GET ?x HTTP/1.1\r\nHost: localhost\r\n\r\n"), ("400", "404"))
        self.assertTrue(answers(), "it bears what nobody meant")


class LauncherInTheCluster(ScriptCase):
    """The one that `trainyard launch` starts, which the operator keeps."""

    flags = ("--nodes", "2", "--node-grace", "2s")
    pod = "trainyard-launcher-launcher-0"

    def test_goes_on_elsewhere_when_its_node_is_killed(self):
        self.complete(*self.script("first"))
        before = self.cluster.get("pod", self.pod)
        node = before["spec"]["nodeName"]
        self.assertEqual(self.cluster.run("node", "cordon", node).returncode, 0)
        self.assertEqual(self.launch(*self.script("survives", "--detach", what="wait")).returncode, 0)
        self.await_task("survives", lambda task: task["phase"] == "Running", "it to run")
        self.assertEqual(self.cluster.run("node", "kill", node).returncode, 0)
        def moved():
            pods = self.cluster.get("pods", "-l", "TrainingJobName=trainyard-launcher")["items"]
            return any(pod["metadata"]["uid"] != before["metadata"]["uid"] and pod["spec"].get("nodeName", node) != node for pod in pods)
        eventually(moved, "the launcher to be on another node")
        self.go("survives")
        task = self.await_task("survives", lambda task: task["phase"] in ("Succeeded", "Failed"), "it to end")
        self.assertEqual((task["phase"], task["restarts"]), ("Succeeded", 0), task)
        self.assertEqual(self.runs("survives"), {"worker-0-1": 1})
        listed = self.cluster.run("get", "-o", "name").stdout
        self.assertIn("task/survives", listed)
        self.assertNotIn("trainyard-launcher", listed, "it is no job of the user's")


class WithoutAnOperator(ScriptCase):
    flags = ("--no-operator",)

    def launcher(self, listen):
        launcher = subprocess.Popen([cases.TRAINYARD, "launcher", "--kubeconfig", self.cluster.kubeconfig, "--listen", listen],
                                    env=environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(launcher.communicate)
        self.addCleanup(launcher.kill)
        return launcher

    def test_says_how_to_install_it_and_the_kinds(self):
        said = "the cluster has no AITrainingJobs: `kubectl apply -k deploy/` installs the kind and its operator"
        _, err = self.launcher("127.0.0.1:0").communicate(timeout=300)
        self.assertIn(said, err)
        kind = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "crds", "aitrainingjobs.yaml")
        self.cluster.kubectl("apply", "-f", kind)
        self.cluster.kubectl("wait", "--for=condition=Established", "-f", kind)
        listen = "127.0.0.1:%d" % graph_jobs.free_port()
        self.launcher(listen)
        master = ("--master", "http://" + listen)
        eventually(lambda: self.launch(*master, "--detach", *self.script("alone")).returncode == 0, "the task to be taken")
        eventually(lambda: "`kubectl apply -k deploy/` installs one" in
                   self.cluster.run("launch", "status", "alone", *master).stdout, "the task to say that there is no operator")
        self.cluster.kubectl("delete", "-f", kind)
        refused = self.launch(*master, *self.script("late"))
        self.assertEqual(refused.returncode, 1)
        self.assertIn(said, refused.stderr)


class OverHttp(ScriptCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.listen = graph_jobs.free_port()
        cls.launcher = subprocess.Popen([cases.TRAINYARD, "launcher", "--kubeconfig", cls.cluster.kubeconfig, "--listen",
                                         "127.0.0.1:%d" % cls.listen], env=dict(environment(), TRAINYARD_LAUNCHER_TOKEN="t0ken"),
                                        stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.launcher.wait)
        cls.addClassCleanup(cls.launcher.kill)
        eventually(lambda: cls.call("GET", "/healthz", token=None)[0] == 200, "the launcher to answer")

    @classmethod
    def call(cls, method, path, body=None, token="t0ken"):
        """(code, body); code 0: nobody answers."""
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (cls.listen, path), method=method,
                                         data=None if body is None else json.dumps(body).encode())
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def env_of(self, name):
        runs = os.path.join(self.folder, "runs-" + name)
        os.makedirs(runs, exist_ok=True)
        return {"RUNS": runs}

    def await_end(self, name):
        def ended():
            task = json.loads(self.call("GET", "/tasks/" + name)[1])
            return task if task["phase"] in ("Succeeded", "Failed", "Cancelled") else None
        return eventually(ended, name + " to end")

    def test_serves_what_its_document_describes(self):
        """A client made of the document alone: each operation by its id."""
        document = json.loads(self.call("GET", "/openapi.json", token=None)[1])
        operations = {}
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if method != "parameters":
                    operations[operation["operationId"]] = (method.upper(), path, operation)

        def use(identifier, body=None, **arguments):
            method, path, operation = operations[identifier]
            for name, value in arguments.items():
                path = path.replace("{%s}" % name, value)
            self.assertNotIn("{", path)
            code, text = self.call(method, path, body)
            responses = operation["responses"]
            self.assertTrue(str(code) in responses or "default" in responses, (identifier, code))
            return code, text

        spec = {"name": "described", "image": self.image, "workers": 2, "env": self.env_of("described")}
        self.assertEqual(use("createTask", spec)[0], 201)
        self.assertEqual(use("createTask", spec)[0], 409)
        self.assertEqual(use("createTask", {"name": "x", "nonsense": 1})[0], 400)
        self.assertEqual(self.await_end("described")["phase"], "Succeeded")
        events = use("followTask", name="described")[1]
        self.assertIn('data: {"name":"described","phase":"Succeeded"', events)
        task = json.loads(use("getTask", name="described")[1])
        for schema, value in (("Task", task), ("TaskSpec", task["spec"]), ("Member", task["members"][0])):
            known = document["components"]["schemas"][schema]
            self.assertLessEqual(set(known.get("required", [])), set(value))
            self.assertLessEqual(set(value), set(known["properties"]), schema)
        self.assertIn("described", [one["name"] for one in json.loads(use("listTasks")[1])["tasks"]])
        self.assertIn("[worker-1] bye from worker-1-1", use("readLogs", name="described")[1])
        self.assertEqual(use("cancelTask", name="described")[0], 409)
        self.assertEqual(use("deleteTask", name="described")[0], 202)
        eventually(lambda: use("getTask", name="described")[0] == 404, "it to be gone")
        self.assertEqual(use("health")[1], "ok\n")
        self.assertEqual(use("createByQuery")[0] // 100, 2)

    @unittest.skipUnless(shutil.which("curl"), "SKIPPED: there is no curl")
    def test_takes_the_query_of_the_first_launcher(self):
        query = "http://127.0.0.1:%d/create?strategy=AllReduce&n_worker=2&n_ps=0&img=%s&name=seed" % (self.listen, self.image)
        done = subprocess.run(["curl", "-s", "-H", "Authorization: Bearer t0ken", query], capture_output=True, text=True, check=True,
                              timeout=300)
        self.assertEqual(json.loads(done.stdout), {"name": "seed", "phase": "Pending"})
        self.assertEqual(json.loads(self.call("GET", "/tasks/seed")[1])["spec"]["workers"], 2)
        self.assertEqual(self.call("GET", "/create?n_worker=many&name=y")[0], 400)
        self.assertEqual(self.call("GET", "/create?n_workers=2&name=y")[0], 400)

    def test_lets_in_only_who_has_the_token(self):
        for token in (None, "wrong", "t0ken2"):
            self.assertEqual(self.call("GET", "/tasks", token=token)[0], 401)
        self.assertEqual(self.call("PUT", "/tasks")[0], 405)
        self.assertEqual(self.call("GET", "/nothing")[0], 404)
        self.assertEqual(self.call("POST", "/tasks", {"name": "n" * 2000000})[0], 413)


if __name__ == "__main__":
    cases.main()
