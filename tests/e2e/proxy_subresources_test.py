"""The proxy subresources of the embedded cluster: servers in pods, reached through the API server.

usage: proxy_subresources_test.py TRAINYARD [unittest arguments]
"""

import hashlib
import http.client
import json
import subprocess
import sys
import threading
import urllib.request

from kubernetes import client

import cases
from cases import ClusterCase
from cluster import environment, eventually, pod
from python_client import connect
from wire import PATIENCE, Wire

# A server that streams: what is posted to /say goes to everybody who reads /listen, at once; /listeners tells how
# many those are; /digest tells what was uploaded; anything else tells what was asked.
STREAMING = """
import hashlib, http.server, json, queue, threading

listeners = set()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            left = int(self.headers.get("Content-Length") or 0)
            while left:
                piece = self.rfile.read(min(left, 65536))
                left -= len(piece)
                yield piece
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def chunk(self, piece):
        self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(piece), piece))
        self.wfile.flush()

    def listen(self):
        said = queue.Queue()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b"welcome\\n")
        listeners.add(said)
        threading.Thread(target=self.await_end, args=(said,), daemon=True).start()
        while (piece := said.get()) is not None:
            self.chunk(piece)
        listeners.discard(said)
        self.close_connection = True

    def await_end(self, said):
        try:
            self.rfile.read(1)
        finally:
            said.put(None)

    def flood(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        piece = b"x" * 65536
        for _ in range(1024):
            self.chunk(piece)
        self.wfile.write(b"0\\r\\n\\r\\n")

    def serve(self):
        if self.path == "/listen":
            return self.listen()
        if self.path == "/flood":
            return self.flood()
        if self.path == "/digest":
            digest, size = hashlib.sha256(), 0
            for piece in self.body():
                digest.update(piece)
                size += len(piece)
            return self.answer(json.dumps([size, digest.hexdigest()]).encode())
        body = b"".join(self.body())
        if self.path == "/say":
            for said in list(listeners):
                said.put(body)
        told = {"method": self.command, "path": self.path, "body": body.decode(), "listeners": len(listeners),
                "headers": {k.lower(): v for k, v in self.headers.items()}}
        self.answer(json.dumps(told).encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

Server(("0.0.0.0", 8000), Handler).serve_forever()
"""


def server(name, *command):
    made = pod(name, *command, labels={"app": name})
    made["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 8000}]
    return made


def service(name):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8000}]}}


class Proxies(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.apply(server("files", "/bin/sh", "-c", "cd $(mktemp -d) && mkdir folder && echo hello > hello.txt && "
                         "exec %s -m http.server 8000" % sys.executable))
        cls.apply(server("streams", sys.executable, "-c", STREAMING))
        for name in ("files", "streams", "nobody"):
            cls.apply(service(name))
        for name in ("files", "streams"):
            eventually(lambda name=name: cls.raw(name + ":80", "/", check=False).returncode == 0, "the server in pod " + name)
        cls.wire = Wire(cls.cluster)

    @classmethod
    def apply(cls, manifest):
        cls.cluster.apply(manifest, "-n", cls.namespace)

    @classmethod
    def path(cls, name, rest, kind="services"):
        return "/api/v1/namespaces/%s/%s/%s/proxy%s" % (cls.namespace, kind, name, rest)

    @classmethod
    def raw(cls, name, rest, kind="services", check=True):
        return cls.cluster.kubectl("get", "--raw", cls.path(name, rest, kind), check=check)

    def ask(self, method, rest, **kwargs):
        code, body = self.wire.ask(method, self.path("streams:http", rest), **kwargs)
        self.assertEqual(code, 200, body)
        return json.loads(body)

    def listen(self, name="streams:80", kind="services"):
        """An answer that has begun, and whose end nobody has seen yet."""
        url = self.wire.access["server"] + self.path(name, "/listen", kind)
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + self.wire.access["token"]})
        answer = urllib.request.urlopen(request, timeout=PATIENCE, context=self.wire.context())
        self.assertEqual(answer.readline(), b"welcome\n")
        return answer

    def listeners(self):
        return self.ask("GET", "/")["listeners"]

    # ---- as kubectl asks

    def test_kubectl_reads_a_file_of_a_pod(self):
        for name, kind in (("files:80", "services"), ("files:http", "services"), ("http:files:80", "services"),
                           ("files", "pods"), ("files:8000", "pods")):
            self.assertEqual(self.raw(name, "/hello.txt", kind).stdout, "hello\n", name)

    def test_kubectl_proxy_leads_to_it_too(self):
        process = subprocess.Popen(self.cluster.kubectl_command("proxy", "--port=0"), stdout=subprocess.PIPE, text=True,
                                   env=environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address = process.stdout.readline().split()[-1]
        base = "http://" + address + self.path("files:80", "")
        with urllib.request.urlopen(base + "/hello.txt", timeout=PATIENCE) as answer:
            self.assertEqual(answer.read(), b"hello\n")
            self.assertEqual(answer.headers["Content-Type"], "text/plain")
            self.assertEqual(answer.headers["Content-Length"], "6")
        with urllib.request.urlopen(base, timeout=PATIENCE) as answer:
            self.assertTrue(answer.url.endswith("/proxy/"), "led to the root: " + answer.url)
            self.assertIn(b"hello.txt", answer.read())
        with urllib.request.urlopen(base + "/folder", timeout=PATIENCE) as answer:
            self.assertTrue(answer.url.endswith("/proxy/folder/"), "the server's own redirect: " + answer.url)

    def test_kubectl_posts_to_a_pod(self):
        done = self.cluster.kubectl("create", "--raw", self.path("streams:80", "/here"), "-f", "-", stdin='{"a": 1}')
        told = json.loads(done.stdout)
        self.assertEqual((told["method"], told["path"], told["body"]), ("POST", "/here", '{"a": 1}'))

    def test_kubectl_is_told_what_is_wrong(self):
        for name, wrong in (("none:80", "not found"), ("nobody:80", 'no endpoints available for service "nobody"'),
                            ("files:81", "no service port 81 found")):
            done = self.raw(name, "/", check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(wrong, done.stderr)

    # ---- as other clients ask

    def test_the_python_client_leads_to_it(self):
        core = client.CoreV1Api(connect(self.cluster))
        text = core.connect_get_namespaced_service_proxy_with_path("files:http", self.namespace, "hello.txt")
        self.assertEqual(text, "hello\n")
        core.connect_delete_namespaced_pod_proxy_with_path("streams:8000", self.namespace, "x")

    def test_every_method_comes_through(self):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            told = self.ask(method, "/a/b?c=d%20e", body="text" if method not in ("GET", "OPTIONS") else None)
            self.assertEqual((told["method"], told["path"]), (method, "/a/b?c=d%20e"))
            self.assertEqual(told["body"], "" if method in ("GET", "OPTIONS") else "text")
        self.assertEqual(self.wire.ask("HEAD", self.path("streams:80", "/")), (200, b""))
        self.assertEqual(self.wire.ask("BREW", self.path("streams:80", "/"))[0], 405)

    def test_headers_come_through_but_not_who_asks(self):
        headers = self.ask("GET", "/", headers={"token": "of the store", "X-Mine": "1", "Connection": "x-mine, close",
                                                "X-Remote-User": "root"})["headers"]
        self.assertEqual(headers["token"], "of the store")
        for absent in ("authorization", "x-mine", "x-remote-user"):
            self.assertNotIn(absent, headers)
        self.assertEqual(headers["x-forwarded-uri"], self.path("streams:http", "/"))

    def test_nobody_comes_through_without_a_token(self):
        self.assertEqual(self.wire.ask("GET", self.path("files:80", "/"), token=False)[0], 401)
        self.assertEqual(self.wire.ask("POST", self.path("files:80", "/"), body=b"x" * 100000, token=False)[0], 401)

    # ---- what streams

    def test_an_answer_without_an_end_comes_piece_by_piece(self):
        with self.listen() as answer:
            for word in ("one", "two", "three"):
                self.ask("POST", "/say", body=word + "\n")
                self.assertEqual(answer.readline().decode(), word + "\n")

    def test_a_reader_that_leaves_is_gone_for_the_pod(self):
        before = self.listeners()
        answers = [self.listen() for _ in range(5)]
        eventually(lambda: self.listeners() == before + 5, "the pod to have its readers")
        for answer in answers:
            answer.close()
        eventually(lambda: self.listeners() == before, "the pod to hear that they left")

    def test_a_pod_that_ends_ends_its_answers(self):
        self.apply(server("mortal", sys.executable, "-c", STREAMING))
        eventually(lambda: self.raw("mortal", "/", kind="pods", check=False).returncode == 0, "the server in the pod")
        with self.listen("mortal", kind="pods") as answer:
            self.cluster.kubectl("delete", "pod", "mortal", "-n", self.namespace, "--now")
            with self.assertRaises(http.client.IncompleteRead):  # not as if that had been all
                answer.read()

    def test_a_large_upload_of_unknown_length_arrives_whole(self):
        pieces = [bytes([i % 251]) * 65536 for i in range(512)]
        whole = b"".join(pieces)
        size, digest = self.ask("POST", "/digest", body=iter(pieces))
        self.assertEqual((size, digest), (len(whole), hashlib.sha256(whole).hexdigest()))
        size, digest = self.ask("PUT", "/digest", body=whole)
        self.assertEqual((size, digest), (len(whole), hashlib.sha256(whole).hexdigest()))

    def test_a_large_answer_costs_the_cluster_no_memory(self):
        def resident():
            with open("/proc/%d/status" % self.cluster.process.pid) as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))  # KiB
        before = resident()
        readers = []
        for _ in range(8):
            connection = self.wire.connect_tls()
            connection.sendall(self.wire.head("GET", self.path("streams:80", "/flood")).encode())
            self.assertIn(b"200", connection.recv(100))
            readers.append(connection)
        # 64 MiB wait for each of them, in the pod and nowhere else.
        self.assertLess(resident() - before, 64 << 10)
        total = 0
        while piece := readers[0].recv(1 << 20):
            total += len(piece)
            if piece.endswith(b"0\r\n\r\n"):
                break
        self.assertGreater(total, 64 << 20)
        for reader in readers:
            reader.close()

    def test_many_at_a_time(self):
        failures = []

        def work():
            for _ in range(20):
                code, body = self.wire.ask("GET", self.path("files:80", "/hello.txt"))
                if (code, body) != (200, b"hello\n"):
                    failures.append((code, body))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    cases.main()
