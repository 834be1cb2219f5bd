"""Sends every input of corpus.py to the servers and commands of the program and compares the answer with the expected one. Meanwhile a
healthy client of each server must be answered; at the end all servers run, and their memory is bounded.

usage: hostile_test.py TRAINYARD [unittest arguments]
"""

import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import cases  # pylint: disable=wrong-import-position
from cluster import Cluster, environment, eventually  # pylint: disable=wrong-import-position
from corpus import COMMANDS, FLOODS, RAW, REQUESTS  # pylint: disable=wrong-import-position

PATIENCE = 30  # seconds for one answer, on a busy machine too
MOST_MEGABYTES = 600  # of any server, at its highest


class Servers:
    """One of each kind, and how to reach it: (host, port, TLS context or None, headers of a client that may ask, path that it may ask for)."""

    JOB = '{"name": "hostile", "id": "1", "trainingData": ["%s"], "minibatch": 1, "tasksOnly": true}'

    def __init__(self, trainyard):
        self.trainyard = trainyard
        self.folder = tempfile.mkdtemp(prefix="trainyard-hostile.")
        self.started = []
        self.cluster = Cluster(trainyard)
        self.at = {}

    def start(self):
        self.cluster.start()
        wire = self.cluster.access()
        api = urllib.parse.urlsplit(wire["server"])
        self.at["api"] = (api.port, ssl.create_default_context(cadata=wire["ca"].decode()), {"Authorization": "Bearer " + wire["token"]},
                          "/api/v1/namespaces/default")
        page = urllib.parse.urlsplit(eventually(self.dashboard, "the dashboard"))
        self.at["dashboard"] = (page.port, None, {"Authorization": "Bearer " + urllib.parse.parse_qs(page.query)["token"][0]}, "/api/jobs")
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("secret\n")
        secret = {"Authorization": "Bearer secret"}
        self.at["launcher"] = (self.spawn("launcher", "launcher", "--kubeconfig", self.cluster.kubeconfig, "--listen", "127.0.0.1:0",
                                          "--token-file", token), None, secret, "/tasks")
        agent = os.path.join(os.path.dirname(self.trainyard), "trainyard-agent")
        self.at["agent"] = (self.spawn("agent", "--listen", "127.0.0.1:0", "--token-file", token, program=agent), None, secret, "/healthz")
        store, gateway = self.free_port(), self.free_port()
        self.spawn("store", "store", "--path", os.path.join(self.folder, "store"), "--listen", "127.0.0.1:%d" % store, "--gateway",
                   "127.0.0.1:%d" % gateway, "--token-file", token)
        self.at["gateway"] = (gateway, None, secret, "/health")
        self.at["store"] = (store, None, None, None)
        self.at["operator"] = (self.spawn("operator", "operator", "--kubeconfig", self.cluster.kubeconfig, "--metrics-bind-address",
                                          "127.0.0.1:0", "--dashboard-address", "none"), None, {}, "/metrics")
        for name, content in (("job.json", self.JOB % os.path.join(self.folder, "records.csv")), ("records.csv", "1,2\n" * 1000)):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                file.write(content)
        self.at["master"] = (self.spawn("master", "master", "--job-file", "job.json", "--state-dir", "state", "--no-pods", "--listen",
                                        "127.0.0.1:0", "--token-file", token), None, None, None)
        # It serves before it finds its master, which it never does.
        self.at["pserver"] = (self.spawn("pserver", "pserver", "--master", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--token-file",
                                         token), None, None, None)
        for name in ("gateway", "store", "launcher", "agent", "operator", "master", "pserver"):
            eventually(lambda name=name: self.listens(name), name)
        return self

    def dashboard(self):
        path = os.path.join(self.cluster.home, "dashboard")
        if not os.path.exists(path):
            return None
        with open(path, encoding="ascii") as file:
            return file.read().strip()

    @staticmethod
    def free_port():
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            return found.getsockname()[1]

    def spawn(self, name, *args, program=None):
        """Starts a server; returns the port that it was given in place of 0."""
        port = self.free_port()
        args = [arg.replace("127.0.0.1:0", "127.0.0.1:%d" % port) for arg in args]
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            self.started.append((name, subprocess.Popen([program or self.trainyard, *args], stdout=log, stderr=log, cwd=self.folder,
                                                        env=environment())))
        return port

    def listens(self, name):
        try:
            self.connect(name).close()
            return True
        except OSError:
            return False

    def connect(self, name):
        return socket.create_connection(("127.0.0.1", self.at[name][0]), timeout=PATIENCE)

    def raw(self, name, *pieces):
        """The code that answers these bytes; None: the connection ended without an answer."""
        context = self.at[name][1]
        with self.connect(name) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") if context else plain as connection:
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                except OSError:
                    pass  # it may have answered, and closed, before it had read everything
                try:
                    line = connection.makefile("rb").readline(65536)
                except OSError:
                    return None
        match = re.match(rb"HTTP/1\.[01] (\d{3})", line)
        return int(match.group(1)) if match else None

    def ask(self, name, method, path, body=None, headers=None, known=True):
        """(code, text) of one request of a client that may ask, or of one that may not."""
        port, context, credentials, _ = self.at[name]
        connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context) if context else
                      http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE))
        try:
            connection.request(method, path, body=body, headers={**(credentials if known else {}), **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def command(self, args, files):
        """(exit code, all that was printed) of a command in a folder with these files."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for name, content in files.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
            done = subprocess.run([self.trainyard, *args], cwd=folder, capture_output=True, timeout=PATIENCE, check=False,
                                  env=environment(TRAINYARD_HOME=self.cluster.home))
            return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def processes(self):
        return [("cluster", self.cluster.process), *self.started]

    def remove(self):
        for _, process in self.started:
            process.terminate()
        for _, process in self.started:
            process.wait(PATIENCE)
        self.cluster.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


class Neighbour(threading.Thread):
    """A healthy client of one server, that asks while the others misbehave.

    Before it has sent its token a server cannot tell it from a flood of the same machine, and may close its connection. It tries
    again, as any client does, and must be answered within TRIES.
    """

    TRIES = 20

    def __init__(self, servers, name):
        super().__init__()
        self.servers, self.server, self.answers, self.wrong, self.ends = servers, name, 0, None, threading.Event()

    def run(self):
        while not self.ends.wait(0.05) and self.wrong is None:
            code, text = self.ask()
            self.answers += 1
            if code != 200:
                self.wrong = "%s %s" % (code, text[:200])

    def ask(self):
        for _ in range(self.TRIES):
            try:
                return self.servers.ask(self.server, "GET", self.servers.at[self.server][3])
            except ConnectionError as error:
                last = error
            except OSError as error:
                return "it was not answered:", repr(error)
        return "closed %d times in a row:" % self.TRIES, repr(last)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.servers = Servers(cases.TRAINYARD)
        cls.addClassCleanup(cls.servers.remove)
        cls.servers.start()
        cls.neighbours = [Neighbour(cls.servers, name) for name in ("api", "dashboard", "launcher", "agent", "gateway", "operator")]
        for neighbour in cls.neighbours:
            neighbour.start()
            cls.addClassCleanup(neighbour.ends.set)

    def tearDown(self):
        for neighbour in self.neighbours:
            self.assertIsNone(neighbour.wrong, "the healthy client of the %s" % neighbour.server)
        for name, process in self.servers.processes():
            self.assertIsNone(process.poll(), "the %s has ended" % name)
            with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
                high = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) // 1024
            self.assertLess(high, MOST_MEGABYTES, "megabytes of the %s" % name)

    def test_bytes_that_are_no_request(self):
        for number, (name, expected, pieces) in enumerate(RAW):
            with self.subTest(number=number, server=name):
                self.assertEqual(self.servers.raw(name, *pieces), expected)

    def test_requests(self):
        for number, (name, code, words, request) in enumerate(REQUESTS):
            with self.subTest(number=number, server=name):
                answer = self.servers.ask(name, **request)
                self.assertEqual(answer[0], code, answer[1][:300])
                self.assertIn(words, answer[1][:5000].replace('\\"', '"'))  # as JSON has it

    def test_commands(self):
        for number, (code, words, args, files) in enumerate(COMMANDS):
            with self.subTest(number=number, args=args):
                answer = self.servers.command(args, files)
                self.assertEqual(answer[0], code, answer[1][:300])
                self.assertIn(words, answer[1])

    def test_floods_of_connections(self):
        for name, count, begin in FLOODS:
            with self.subTest(server=name):
                flood = []
                for _ in range(count):
                    flood.append(self.servers.connect(name))
                    try:
                        flood[-1].sendall(begin)
                    except OSError:
                        pass  # closed already
                if self.servers.at[name][3]:
                    self.assertEqual(self.servers.ask(name, "GET", self.servers.at[name][3])[0], 200)
                for connection in flood:
                    connection.close()

    def test_zz_neighbours_were_answered_meanwhile(self):
        for neighbour in self.neighbours:
            eventually(lambda neighbour=neighbour: neighbour.answers > 5 or neighbour.wrong, "answers to the neighbour")
            self.assertIsNone(neighbour.wrong)


if __name__ == "__main__":
    cases.main()
