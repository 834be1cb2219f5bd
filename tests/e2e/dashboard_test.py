"""The page to watch jobs by: what it serves, to whom, and how it looks in a real Chromium."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import cases
import elastic_jobs
import graph_jobs
import js_packages
import processes
from cluster import environment, eventually

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/mnist/model.py")


class DashboardCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cases.Cluster(cases.TRAINYARD, "--dashboard-address", "127.0.0.1:0")
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        with open(os.path.join(cls.cluster.home, "dashboard"), encoding="ascii") as file:
            cls.url = file.read()
        cls.cookie = "trainyard_token_%s=" % cls.url.partition("/?")[0].rpartition(":")[2]
        cls.address, _, cls.token = cls.url.removeprefix("http://").partition("/?token=")

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def get(self, path):
        answer, body = self.ask(path, Cookie=self.cookie + self.token)
        self.assertEqual(answer.status, 200, body)
        return json.loads(body)


class ServedTest(DashboardCase):
    def test_shows_nothing_to_who_has_not_its_token(self):
        for headers in ({}, {"Cookie": self.cookie + "wrong"}, {"Authorization": "Bearer wrong"},
                        {"Cookie": self.cookie + self.token[:-1]}):
            for path in ("/api/jobs", "/api/job?kind=tfjob&namespace=default&name=x", "/api/nodes", "/api/events", "/api/stream"):
                answer, body = self.ask(path, **headers)
                self.assertEqual((answer.status, json.loads(body)["error"]), (401, "the token is missing or wrong"))
        self.assertEqual(self.ask("/?token=wrong")[0].status, 401)
        self.assertEqual(self.ask("/api/jobs", Authorization="Bearer " + self.token)[0].status, 200)
        self.assertEqual(self.ask("/api/jobs", method="POST", Cookie=self.cookie + self.token)[0].status, 405)
        self.assertEqual(self.ask("/../up.log", Cookie=self.cookie + self.token)[0].status, 404)
        with socket.create_connection(tuple(self.address.split(":"))) as stranger:
            stranger.sendall(b"GET ?a HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b" 400 ", stranger.makefile("rb").readline())
        self.assertEqual(self.ask("/")[0].status, 200, "it bears what is no path")
        mode = os.stat(os.path.join(self.cluster.home, "dashboard")).st_mode & 0o777
        self.assertEqual(mode, 0o600)

    def test_takes_the_token_out_of_the_address(self):
        answer, _ = self.ask("/?token=" + self.token)
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/"))
        self.assertIn("HttpOnly; SameSite=Strict", answer.headers["Set-Cookie"])
        page, body = self.ask("/")
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'self'", page.headers["Content-Security-Policy"])
        self.assertIn(b"<title>Trainyard</title>", body)
        self.assertIn(self.url, self.cluster.run("status").stdout)

    def test_tells_of_jobs_nodes_and_events(self):
        job = {"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "metadata": {"name": "shown"},
               "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [
                   {"name": "tensorflow", "image": "none", "command": ["sh", "-c", "sleep 100"]}]}}}}}}
        self.cluster.apply(json.dumps(job))
        def running():
            found = [one for one in self.get("/api/jobs")["jobs"] if one["name"] == "shown"]
            return found[0] if found and found[0]["state"] == "Running" else None
        shown = eventually(running, "the job to be shown as running")
        self.assertEqual((shown["kind"], shown["ready"], shown["wanted"]), ("tfjob", 1, 1))
        page = self.get("/api/job?kind=tfjob&namespace=default&name=shown")
        self.assertIn("is Running", page["sentence"])
        self.assertEqual([bar["state"] for bar in page["timeline"]], ["running"])
        nodes = self.get("/api/nodes")["nodes"]
        self.assertIn({"kind": "tfjob", "name": "shown"}, [pod.get("job") for node in nodes for pod in node["pods"]])
        eventually(lambda: any(event["object"] == "tfjob/shown" for event in self.get("/api/events")["events"]), "its events")
        answer, body = self.ask("/api/job?kind=tfjob&namespace=default&name=none", Cookie=self.cookie + self.token)
        self.assertEqual(answer.status, 404, body)

    def test_tells_of_changes_as_they_come(self):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/stream", headers={"Cookie": self.cookie + self.token})
        stream = connection.getresponse()
        self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
        self.cluster.kubectl("run", "pod-of-nobody", "--image=none", "--restart=Never", "--command", "--", "true")
        seen = b""
        while b"event: change" not in seen or b"pod/pod-of-nobody" not in seen:
            line = stream.readline()
            self.assertTrue(line, seen)
            seen += line


class BrowserTest(DashboardCase):
    @classmethod
    def setUpClass(cls):
        cls.chromium = shutil.which("chromium")
        if not cls.chromium:
            raise unittest.SkipTest("SKIPPED: there is no chromium")
        if graph_jobs.ty is None:
            raise unittest.SkipTest("SKIPPED: this build has no Python package")
        cls.folder = js_packages.install("playwright-core@1")
        cls.data = tempfile.mkdtemp(prefix="trainyard-dashboard.")
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        super().setUpClass()

    def next(self, stage):
        line = self.browser.stdout.readline()
        if not line:
            self.fail(self.browser.communicate()[1])
        found = json.loads(line)
        self.assertEqual(found["stage"], stage)
        return found

    def go_on(self):
        self.browser.stdin.write("\n")
        self.browser.stdin.flush()

    def test_shows_a_job_live_and_a_worker_that_is_killed(self):
        if not self.ask("/app.js")[1]:
            self.skipTest("SKIPPED: the program was built without its dashboard: npm could not fetch its packages")
        images, labels = elastic_jobs.write_digits(self.data, "train", 2000, 1)
        done = subprocess.run([cases.TRAINYARD, "train", "--kubeconfig", self.cluster.kubeconfig, "--name", "watched", "--detach",
                               "--model", MODEL, "--training-data", images, "--training-data", labels, "--epochs", "100000",
                               "--workers", "2"], capture_output=True, text=True, env=environment(), timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.browser = subprocess.Popen(["node", os.path.join(self.folder, "dashboard.mjs"), self.chromium, self.url],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment())
        self.addCleanup(self.browser.communicate)
        self.addCleanup(self.browser.kill)
        opened = self.next("opened")
        self.assertTrue(any("watched" in row for row in opened["rows"]), opened)
        self.go_on()
        plots = self.next("plots")
        self.assertGreater(plots["after"], plots["before"])
        port = self.cluster.access()["server"].rpartition(":")[2].encode()
        for pid, variables in processes.with_mark("TRAINYARD_POD_NAME", "watched-worker-0").items():
            if variables.get(b"KUBERNETES_SERVICE_PORT") == port:
                os.kill(pid, signal.SIGKILL)
        self.go_on()
        killed = self.next("killed")
        self.assertRegex(killed["causes"][0], re.compile("worker-0.*(SIGKILL|signal 9)", re.S))
        self.go_on()
        looks = self.next("looks")
        self.assertEqual((looks["widths"], looks["said"], looks["elsewhere"]), ([], [], []))
        self.assertNotEqual(looks["light"], looks["dark"])
        self.go_on()
        self.assertIn("needs its token", self.next("locked")["text"])


if __name__ == "__main__":
    graph_jobs.load_package(sys.argv[1])
    cases.main()
