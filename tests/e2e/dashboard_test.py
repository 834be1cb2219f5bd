"""The page to watch jobs by: what it serves, to whom, and how it looks in a real Chromium."""

import contextlib
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
from cluster import environment, eventually

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples/mnist/model.py")


def url_of(cluster):
    """The dashboard's address, with its token; None: there is none yet."""
    try:
        with open(os.path.join(cluster.home, "dashboard"), encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None


class DashboardCase(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = cases.Cluster(cases.TRAINYARD, *cls.flags)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        cls.url = eventually(lambda: url_of(cls.cluster), "the dashboard")
        cls.cookie = "trainyard_token_%s=" % cls.url.partition("/?")[0].rpartition(":")[2]
        cls.address, _, cls.token = cls.url.removeprefix("http://").partition("/?token=")

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection(self.address, timeout=300)
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
                self.assertEqual((answer.status, json.loads(body)["error"]), (401, "%s: open the dashboard with ?token=TOKEN in its address" % ("wrong token" if headers else "no token")))
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
        connection = http.client.HTTPConnection(self.address, timeout=300)
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


class StartTest(unittest.TestCase):
    """Where it is, if nothing or something is said about it."""

    def setUp(self):
        self.cluster = cases.Cluster(cases.TRAINYARD)
        self.addCleanup(self.cluster.remove)

    def up(self, *flags, **env):
        done = subprocess.run([cases.TRAINYARD, "up", "--detach", "--home", self.cluster.home, "--no-operator", *flags],
                              capture_output=True, text=True, env=environment(**env), timeout=300, check=False)
        self.addCleanup(self.cluster.down)
        return done

    @staticmethod
    def port_of(url):
        return int(url.partition("/?")[0].rpartition(":")[2])

    def test_is_there_without_being_asked_for_and_stays_where_it_was(self):
        done = self.up()
        url = url_of(self.cluster)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/\?token=\w+$")
        self.assertIn("The dashboard: " + url, done.stdout)
        status = self.cluster.run("status")
        self.assertIn(url, status.stdout)
        self.assertEqual(json.loads(self.cluster.run("status", "-o", "json").stdout)["dashboard"], url)
        self.cluster.down()
        self.assertEqual(self.up().returncode, 0)
        self.assertEqual(url_of(self.cluster), url, "a page that is open goes on when the cluster is back")

    def test_is_elsewhere_when_somebody_has_its_port(self):
        self.up()
        first = url_of(self.cluster)
        self.cluster.down()
        with socket.create_server(("127.0.0.1", self.port_of(first))):
            done = self.up()
            self.assertEqual(done.returncode, 0, done.stderr)
            second = url_of(self.cluster)
            self.assertNotEqual(self.port_of(second), self.port_of(first))
            self.assertEqual(second.partition("token=")[2], first.partition("token=")[2])

    def test_must_be_where_it_is_asked_for(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            done = self.up("--dashboard-address", address)
            self.assertEqual(done.returncode, 1)
            self.assertIn(address, done.stderr)
        self.assertEqual(self.cluster.run("status").returncode, 1, "nothing was started")
        done = self.up("--dashboard-address", address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("http://%s/" % address, done.stdout)

    def test_can_be_left_out(self):
        self.up()
        self.cluster.down()
        for flags in (("--dashboard-address", "none"), ("--dashboard-address", "")):
            done = self.up(*flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("dashboard", done.stdout)
            self.assertIsNone(url_of(self.cluster))
            self.assertNotIn("Dashboard", self.cluster.run("status").stdout)
            self.cluster.down()
        done = self.up(TRAINYARD_UP_DASHBOARD_ADDRESS="none")
        self.assertNotIn("dashboard", done.stdout)

    def test_is_served_by_an_operator_too(self):
        self.up("--dashboard-address", "none")
        self.cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds"))
        operator = [cases.TRAINYARD, "operator", "--kubeconfig", self.cluster.kubeconfig]

        def start(*flags):
            process = subprocess.Popen([*operator, *flags], stderr=subprocess.PIPE, text=True, env=environment())
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            return process

        def url_from(process):
            for line in process.stderr:
                if "the dashboard: " in line:
                    return line.strip().rpartition(" ")[2]
            return self.fail("it has none")
        urls = [url_from(start()), url_from(start())]
        self.assertNotEqual(self.port_of(urls[0]), self.port_of(urls[1]), "two of them are on one machine")
        for url in urls:
            self.assertTrue(url.startswith("http://127.0.0.1:"), url)
            connection = http.client.HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=300)
            self.addCleanup(connection.close)
            connection.request("GET", "/api/jobs", headers={"Authorization": "Bearer " + url.partition("token=")[2]})
            answer = connection.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read())["jobs"]), (200, []))
        taken = subprocess.run([*operator, "--dashboard-address", "127.0.0.1:%d" % self.port_of(urls[0])], capture_output=True,
                               text=True, env=environment(), timeout=300, check=False)
        self.assertEqual(taken.returncode, 1, taken.stderr)


class PlotsTest(DashboardCase):
    def plots(self, kind, name):
        page = self.get("/api/job?kind=%s&namespace=default&name=%s" % (kind, name))
        return {plot["name"]: plot["points"] for plot in page["plots"]}

    def test_has_plots_of_what_a_script_writes(self):
        script = "for i in 1 2 3; do echo \"step $i loss 0.$((9 - i)) took 3s\"; sleep 0.1; done; echo val_accuracy: 0.5; sleep 100"
        job = {"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "metadata": {"name": "writes"},
               "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers": [
                   {"name": "tensorflow", "image": "none", "command": ["sh", "-c", script]}]}}}}}}
        self.cluster.apply(json.dumps(job))
        plots = eventually(lambda: (lambda found: "val_accuracy" in found and found)(self.plots("tfjob", "writes")), "its plots")
        self.assertEqual(sorted(plots), ["loss", "val_accuracy"])
        self.assertEqual([value for _, value in plots["loss"]], [0.8, 0.7, 0.6], "of one worker, before anybody looked")
        times = [time for time, _ in plots["loss"]]
        self.assertEqual(times, sorted(times))

    def test_has_plots_of_what_a_graph_job_puts_out(self):
        ty = graph_jobs.ty
        if ty is None:
            self.skipTest("SKIPPED: this build has no Python package")
        folder = tempfile.mkdtemp(prefix="trainyard-dashboard.")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "line.csv")
        graph_jobs.write_line(path)
        program, loss = graph_jobs.line_program(path)
        t_graphs, p_graphs = ty.dist_transpiler(program, trainers_num=2, trainer_pass_num=20, pservers_num=1)
        job = ty.Yard(kubeconfig=self.cluster.kubeconfig).init_job("plotted")
        self.addCleanup(job.stop)
        job.add_workers(t_graphs)
        job.add_workers(p_graphs)
        job.pservers.start()
        job.trainers.start()
        self.assertTrue(job.wait(60))
        points = eventually(lambda: self.plots("aitrainingjob", "plotted").get(loss), "a plot of its loss")
        self.assertGreater(len(points), 1)
        self.assertLess(points[-1][1], points[0][1], "it has learnt")


class BrowserCase(DashboardCase):
    script = None

    @classmethod
    def setUpClass(cls):
        cls.chromium = shutil.which("chromium")
        if not cls.chromium:
            raise unittest.SkipTest("SKIPPED: there is no chromium")
        cls.folder = js_packages.install("playwright-core@1")
        super().setUpClass()

    def open_browser(self):
        if not self.ask("/app.js")[1]:
            self.skipTest("SKIPPED: the program was built without its dashboard: npm could not fetch its packages")
        self.browser = subprocess.Popen(["node", os.path.join(self.folder, self.script), self.chromium, self.url],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment())
        self.addCleanup(self.browser.communicate)
        self.addCleanup(self.browser.kill)

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


class LiveJobTest(BrowserCase):
    script = "dashboard.mjs"

    @classmethod
    def setUpClass(cls):
        if graph_jobs.ty is None:
            raise unittest.SkipTest("SKIPPED: this build has no Python package")
        cls.data = tempfile.mkdtemp(prefix="trainyard-dashboard.")
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        super().setUpClass()

    def test_shows_a_job_live_and_a_worker_that_is_killed(self):
        images, labels = elastic_jobs.write_digits(self.data, "train", 2000, 1)
        done = subprocess.run([cases.TRAINYARD, "train", "--kubeconfig", self.cluster.kubeconfig, "--name", "watched", "--detach",
                               "--model", MODEL, "--training-data", images, "--training-data", labels, "--epochs", "100000",
                               "--workers", "2"], capture_output=True, text=True, env=environment(), timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.open_browser()
        opened = self.next("opened")
        self.assertTrue(any("watched" in row for row in opened["rows"]), opened)
        self.go_on()
        plots = self.next("plots")
        self.assertGreater(plots["after"], plots["before"])
        for pid in self.cluster.processes("watched-worker-0"):
            with contextlib.suppress(ProcessLookupError):  # a process goes with its parent
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


class ManyJobsTest(BrowserCase):
    """A thousand jobs that nobody runs: what they cost is the page's."""

    script = "dashboard_many.mjs"
    flags = ("--no-operator",)
    count = 1000
    failed = 7

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds"))
        cls.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=300s")
        items = [{"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "metadata": {"name": "job-%04d" % i},
                  "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 4, "template": {"spec": {"containers": [
                      {"name": "tensorflow", "image": "none", "command": ["true"]}]}}}}}} for i in range(cls.count)]
        cls.cluster.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        status = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "Because", "message": "it was told to"}]}}
        for i in range(cls.failed):
            cls.cluster.kubectl("patch", "tfjob", "job-%04d" % i, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def test_shows_a_thousand_jobs_and_finds_one(self):
        self.open_browser()
        opened = self.next("opened")
        self.assertEqual(opened["rows"], self.count)
        self.assertEqual(opened["counts"], {"all": self.count, "running": 0, "waiting": self.count - self.failed,
                                            "ended": self.failed, "failed": self.failed})
        self.go_on()
        self.assertEqual(self.next("searched")["rows"], ["job-0712"])
        self.go_on()
        self.assertEqual(self.next("filtered")["rows"], self.failed)
        self.go_on()
        scrolled = self.next("scrolled")
        self.assertTrue(scrolled["last"]["visible"], scrolled)
        self.assertIn("job-", scrolled["last"]["text"])
        self.go_on()
        opened = self.next("job")
        self.assertIn(scrolled["last"]["text"].split()[0], opened["heading"])
        # Rows that were never on the screen are of a height that is guessed.
        self.assertAlmostEqual(opened["back"], scrolled["at"], delta=200, msg="a page that is left is there again as it was")
        self.go_on()
        new = self.cluster.kubectl("delete", "tfjob", "job-0500")
        self.assertEqual(new.returncode, 0)
        self.assertEqual(self.next("deleted")["rows"], self.count - 1)
        self.go_on()
        phone = self.next("phone")
        self.assertFalse(phone["wide"])
        self.assertEqual((phone["said"], phone["elsewhere"]), ([], []))


if __name__ == "__main__":
    graph_jobs.load_package(sys.argv[1])
    cases.main()
