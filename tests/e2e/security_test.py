"""Who gets into the embedded cluster, and what strange requests do to it.

usage: security_test.py TRAINYARD [unittest arguments]     (KUBEBUILDER_ASSETS: also on the real server in there)
"""

import json
import os
import re
import ssl
import stat
import subprocess
import tempfile

import cases
from cases import ClusterCase, also_on_a_real_server
from cluster import Cluster, environment
from wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def listeners(pid):
    """The TCP addresses on which a process listens, as (address, port)."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            match = re.match(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            continue
        if match:
            inodes.add(match.group(1))
    found = []
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    address, port = fields[1].split(":")
                    found.append((address, int(port, 16)))
    return found


class Home(ClusterCase):
    """What lies on the disk, and what the process shows."""

    def test_only_the_owner_can_read_it(self):
        home = tempfile.mkdtemp(prefix="trainyard-e2e.")
        new = Cluster(cases.TRAINYARD, home=os.path.join(home, "new"))
        self.addCleanup(os.rmdir, home)
        self.addCleanup(new.remove)
        os.makedirs(new.home, mode=0o700)
        before = os.umask(0)  # the most careless one
        try:
            new.start()
        finally:
            os.umask(before)
        self.assertEqual(mode(new.kubeconfig), 0o600)
        for folder, _, files in os.walk(os.path.join(new.home, "pki")):
            self.assertEqual(mode(folder) & 0o077, 0, folder)
            self.assertTrue(files)
            for name in files:
                self.assertEqual(mode(os.path.join(folder, name)), 0o600, name)
        for name in ("store", "pods"):
            path = os.path.join(new.home, name)
            self.assertTrue(not os.path.exists(path) or mode(path) & 0o077 == 0, path)

    def test_a_home_that_it_makes_is_private(self):
        with tempfile.TemporaryDirectory(prefix="trainyard-e2e.") as parent:
            home = os.path.join(parent, "made")
            done = subprocess.run([cases.TRAINYARD, "up", "--detach", "--home", home], capture_output=True, text=True,
                                  env=environment(), timeout=300, check=False)
            try:
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(mode(home), 0o700)
                self.assertEqual(mode(os.path.join(home, "kubeconfig")), 0o600)
            finally:
                subprocess.run([cases.TRAINYARD, "down", "--home", home], capture_output=True, env=environment(), check=True)

    def test_a_kubeconfig_that_others_can_read_is_closed_at_the_next_start(self):
        os.chmod(self.cluster.kubeconfig, 0o644)
        self.cluster.restart()
        self.assertEqual(mode(self.cluster.kubeconfig), 0o600)

    def test_a_home_that_others_can_write_to_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="trainyard-e2e.") as home:
            os.chmod(home, 0o777)
            done = subprocess.run([cases.TRAINYARD, "up", "--home", home], capture_output=True, text=True, env=environment(),
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("can be written by others", done.stderr)
            self.assertEqual(os.listdir(home), [])

    def test_a_second_cluster_on_the_same_home_is_refused(self):
        done = subprocess.run([cases.TRAINYARD, "up", "--home", self.cluster.home], capture_output=True, text=True,
                              env=environment(), timeout=300, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("process %d" % self.cluster.process.pid, done.stderr)
        self.cluster.kubectl("get", "namespaces")

    def test_it_listens_on_loopback_only(self):
        found = listeners(self.cluster.process.pid)
        self.assertIn(("0100007F", Wire(self.cluster).port), found)
        for address, _ in found:
            self.assertEqual(address, "0100007F", "127.0.0.1 as the kernel writes it")

    def test_it_shows_its_secrets_to_nobody(self):
        token = self.cluster.access()["token"].encode()
        for name in ("cmdline", "environ"):
            with open("/proc/%d/%s" % (self.cluster.process.pid, name), "rb") as file:
                self.assertNotIn(token, file.read(), name)
        self.assertNotIn(token.decode(), self.cluster.output())
        for path in ("/", "/version", "/metrics", "/api/v1/nodes"):
            self.assertNotIn(token, Wire(self.cluster).ask("GET", path)[1], path)


class WireCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wire = Wire(cls.cluster)

    def tearDown(self):
        self.assertEqual(self.wire.ask("GET", "/api/v1/namespaces/default")[0], 200, "it is still there for others")

    def refused(self, code, reason, answer):
        self.assertEqual(answer[0], code, answer[1][:500])
        return self.assert_status(answer[1], code, reason)


@also_on_a_real_server
class Strangers(WireCase):
    def test_without_credentials_see_nothing(self):
        for path in ("/", "/api", "/apis", "/version", "/openapi/v2", "/api/v1/namespaces", "/metrics", "/no/such/path",
                     "/api/v1/pods?watch=true"):
            self.refused(401, "Unauthorized", self.wire.ask("GET", path, token=False))
        self.refused(401, "Unauthorized", self.wire.ask("POST", MAPS, body="{", token=False))
        self.refused(401, "Unauthorized", self.wire.ask("DELETE", MAPS, token=False))

    def test_with_something_like_the_token_do_not_get_in(self):
        token = self.wire.access["token"]
        for wrong in ("Bearer " + token[:-1], "Bearer " + token + "0", "Bearer " + token.swapcase() + "x", "Bearer ", "Bearer",
                      "Basic " + token, token, "Bearer a " + token, "Bearer " + "x" * 5000):
            code, _ = self.wire.ask("GET", "/api", headers={"Authorization": wrong}, token=False)
            self.assertEqual(code, 401, wrong[:80])

    def test_with_a_certificate_of_their_own_do_not_get_in(self):
        with tempfile.TemporaryDirectory() as folder:
            def openssl(*args):
                subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

            def read(name):
                with open(os.path.join(folder, name), "rb") as file:
                    return file.read()
            with open(os.path.join(folder, "theirs"), "wb") as file:
                file.write(self.wire.access["ca"])
            name = subprocess.run(["openssl", "x509", "-in", "theirs", "-noout", "-subject", "-nameopt", "compat"], cwd=folder,
                                  check=True, capture_output=True, text=True).stdout.strip()
            subject = name.split("subject=", 1)[1].strip()
            # An authority of the same name, with another key.
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2",
                    "-subj", subject if subject.startswith("/") else "/" + subject.replace(" = ", "="))
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "my.key", "-out", "my.csr", "-subj",
                    "/O=system:masters/CN=trainyard-admin")
            openssl("x509", "-req", "-in", "my.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "my.crt")
            context = self.wire.context(read("my.crt"), read("my.key"))
        try:
            code, _ = self.wire.ask("GET", "/api", context=context, token=False)
            self.assertEqual(code, 401)
        except (ssl.SSLError, ConnectionError):
            pass  # refused before it could ask

    def test_speaking_plain_http_are_told_so(self):
        with self.wire.connect() as plain:
            plain.sendall(self.wire.head("GET", "/api").encode())
            answer = plain.makefile("rb").read()
        self.assertTrue(answer.startswith(b"HTTP/1.0 400 "), answer)
        self.assertIn(b"HTTPS server", answer)

    def test_speaking_no_tls_at_all_are_cut_off(self):
        for noise in (b"\x16\x03\x01\xff\xff" + b"\xff" * 70000, os.urandom(4096), b"\x00" * 100, b"SSH-2.0-x\r\n"):
            with self.wire.connect() as noisy:
                try:
                    noisy.sendall(noise)
                    while noisy.recv(65536):
                        pass
                except ConnectionError:
                    pass


@also_on_a_real_server
class Bodies(WireCase):
    def post(self, body, content_type="application/json", path=MAPS):
        return self.wire.ask("POST", path, body=body, headers={"Content-Type": content_type})

    def test_too_large(self):
        big = json.dumps({"metadata": {"name": "big"}, "data": {"a": "x" * (4 << 20)}})
        self.refused(413, "RequestEntityTooLarge", self.post(big))
        self.assertEqual(self.wire.ask("GET", MAPS + "/big")[0], 404)

    def test_malformed(self):
        for body in ("{", "", "[]", '"text"', "{'a': 1}", '{"metadata": {"name": "x"},}', "{} {}", "\x00", '{"a": 1e}'):
            status = self.refused(400, "BadRequest", self.post(body))
            self.assertGreater(len(status["message"]), 10, body)
        self.assertEqual(self.wire.ask("GET", MAPS + "/x")[0], 404)

    def test_with_values_of_the_wrong_type(self):
        for body in ('{"kind": 5}', '{"metadata": []}', '{"metadata": {"name": 5}}',
                     '{"metadata": {"name": "x"}, "data": "text"}',
                     '{"metadata": {"name": "x"}, "data": {"a": 5}}', '{"metadata": {"name": "x", "labels": {"a": {}}}}'):
            self.refused(400, "BadRequest", self.post(body))
        self.refused(400, "BadRequest", self.post("metadata: {name: x}\ndata: [1]", "application/yaml"))
        self.assertEqual(self.wire.ask("GET", MAPS + "/x")[0], 404)

    def test_malformed_yaml(self):
        for body in ("a: [", "\tx", "- 1", "metadata: {name: [}", "&a [*a"):
            self.refused(400, "BadRequest", self.post(body, "application/yaml"))

    def test_of_another_kind_or_version(self):
        for body in ({"apiVersion": "v1", "kind": "Secret"}, {"apiVersion": "v2", "kind": "ConfigMap"},
                     {"apiVersion": "apps/v1", "kind": "ConfigMap"}):
            self.refused(400, "BadRequest", self.post(json.dumps({**body, "metadata": {"name": "x"}})))

    def test_for_another_name_or_namespace(self):
        self.refused(400, "BadRequest", self.post('{"metadata": {"name": "x", "namespace": "kube-system"}}'))
        self.assertEqual(self.post('{"metadata": {"name": "its-name"}}')[0], 201)
        self.refused(400, "BadRequest", self.wire.ask("PUT", MAPS + "/its-name", body='{"metadata": {"name": "other"}}',
                                                      headers={"Content-Type": "application/json"}))

    def test_of_a_type_that_nobody_reads(self):
        self.refused(415, "UnsupportedMediaType", self.post("<xml/>", "application/xml"))

    def test_as_deep_as_a_well(self):
        for body in ("[" * 200000, '{"a":' * 200000, '{"data":' + "[" * 100000 + "]" * 100000 + "}"):
            self.refused(400, "BadRequest", self.post(body))

    def test_yaml_that_multiplies(self):
        bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
            "a%d: &a%d [%s]\n" % (i, i, ", ".join(["*a%d" % (i - 1)] * 10)) for i in range(1, 10))
        code, _ = self.post(bomb, "application/yaml")
        self.assertIn(code, (400, 413))

    def test_paths_that_climb(self):
        for path in ("/api/v1/namespaces/default/configmaps/%2e%2e", "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets",
                     "/api/v1/namespaces/default/configmaps/a%00b"):
            code, _ = self.wire.ask("GET", path)
            self.assertIn(code, (301, 400, 404), path)

    def test_log_of_a_container_that_is_a_path(self):
        pods = "/api/v1/namespaces/default/pods"
        spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
        self.assertEqual(self.post(json.dumps({"metadata": {"name": "quiet"}, "spec": spec}), path=pods)[0], 201)
        self.refused(400, "BadRequest", self.wire.ask("GET", pods + "/quiet/log?container=..%2F..%2Fpki%2Fca.key"))


class Expansions(WireCase):
    """What takes more memory than it sends: however it is asked for, the server stays small."""

    MOST_MEGABYTES = 400

    def tearDown(self):
        super().tearDown()
        with open("/proc/%d/status" % self.cluster.process.pid, encoding="ascii") as file:
            high = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) // 1024
        self.assertLess(high, self.MOST_MEGABYTES)

    def change(self, name, body, kind="application/merge-patch+json", query=""):
        return self.wire.ask("PATCH", MAPS + "/" + name + query, body=json.dumps(body), headers={"Content-Type": kind})

    def make(self, name, **data):
        answer = self.wire.ask("POST", MAPS, body=json.dumps({"metadata": {"name": name}, "data": data}),
                               headers={"Content-Type": "application/json"})
        self.assertEqual(answer[0], 201, answer[1][:300])

    def test_merge_patches_of_many_keys(self):
        self.make("merged", **{"key-%d" % i: "x" for i in range(30000)})
        for value in "abcde":
            code, answer = self.change("merged", {"data": {"key-%d" % i: value for i in range(0, 30000, 2)}})
            self.assertEqual(code, 200, answer[:300])
        code, answer = self.change("merged", {"data": {"key-%d" % i: None for i in range(30000)}})
        self.assertEqual((code, json.loads(answer).get("data", {})), (200, {}))

    def test_many_managers_that_apply_the_same_fields(self):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"key-%d" % i: "x" for i in range(2000)}}
        codes = [self.change("shared", config, "application/apply-patch+yaml", "?fieldManager=manager-%d" % i)[0] for i in range(60)]
        self.assertEqual(set(codes[1:]) - {200, 413}, set(), "each is taken, until the object is too large for the store")
        config["data"] = {key: "y" for key in config["data"]}
        code, answer = self.change("shared", config, "application/apply-patch+yaml", "?fieldManager=other")
        self.assertIn(code, (409, 413), answer[:300])
        self.assertLess(len(answer), 32 << 20)

    def test_copies_of_a_json_patch(self):
        self.make("copied", a="x" * 1000)
        code, answer = self.change("copied", [{"op": "copy", "from": "/data", "path": "/data/b%d" % i} for i in range(60)],
                                   "application/json-patch+json")
        self.refused(413, "RequestEntityTooLarge", (code, answer))

    def test_watches_of_large_objects_by_clients_that_do_not_read(self):
        self.make("watched", a="x" * 900000)
        stuck = []
        self.addCleanup(lambda: [connection.close() for connection in stuck])
        context = self.wire.context()
        for i in range(20):
            stuck.append(self.wire.connect_tls(context))
            accept = "Accept: application/json" + (";as=Table;v=v1;g=meta.k8s.io" if i % 2 else "")
            stuck[-1].sendall(self.wire.head("GET", MAPS + "?watch=true&includeObject=Object", accept).encode())
        for value in range(40):
            code, answer = self.change("watched", {"data": {"b": str(value)}})
            self.assertEqual(code, 200, answer[:300])


class Wires(WireCase):
    """What is our own answer to what HTTP leaves open, or forbids."""

    def test_health_is_told_to_everybody(self):
        for path in ("/healthz", "/livez", "/readyz"):
            self.assertEqual(self.wire.ask("GET", path, token=False), (200, b"ok"))

    def test_header_bombs(self):
        head = self.wire.head("GET", "/api")[:-2]
        self.assertEqual(self.wire.send(head, "X-Long: ", "x" * (1 << 20), "\r\n\r\n"), 431)
        self.assertEqual(self.wire.send(head, *["X-%d: x\r\n" % i for i in range(20000)], "\r\n"), 431)
        self.assertEqual(self.wire.send(self.wire.head("GET", "/api?" + "x" * (1 << 20))), 431)

    def test_a_length_that_cannot_be(self):
        for length, code in ((str(1 << 40), 413), ("-1", 400), ("99999999999999999999999", 400), ("5x", 400)):
            head = self.wire.head("POST", MAPS, "Content-Type: application/json", "Content-Length: " + length)
            self.assertEqual(self.wire.send(head), code, length)

    def test_two_lengths(self):
        for lines in (("Content-Length: 2", "Content-Length: 3"), ("Content-Length: 2", "Transfer-Encoding: chunked"),
                      ("Transfer-Encoding: gzip, chunked",)):
            code = self.wire.send(self.wire.head("POST", MAPS, "Content-Type: application/json", *lines), "{}")
            self.assertIn(code, (400, 501), lines)

    def test_bad_chunks(self):
        head = self.wire.head("POST", MAPS, "Content-Type: application/json", "Transfer-Encoding: chunked")
        for body in ("zz\r\n{}\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "2\r\n{}xx\r\n0\r\n\r\n"):
            self.assertIn(self.wire.send(head, body), (400, 413), body)
        self.assertEqual(self.wire.send(head, *["100000\r\n" + "x" * 0x100000 + "\r\n" for _ in range(5)]), 413)

    def test_what_is_no_http(self):
        for line in ("GET /api\r\n\r\n", "GET /api HTTP/9.9\r\n\r\n", "\x00\x01\x02\r\n\r\n", "G E T / HTTP/1.1\r\n\r\n",
                     "GET api HTTP/1.1\r\nHost: it\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                     "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     "GET / HTTP/1.1\r\nHost: it\r\nNo Colon\r\n\r\n"):
            self.assertIn(self.wire.send(line), (400, 505, None), line)

    def test_paths_that_climb_higher(self):
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/namespaces/%2e%2e/configmaps/x", "/api/v1/%", "//",
                     "/api/v1/namespaces/default/pods/%2e%2e%2f%2e%2e/log", "/api/v1/namespaces/" + "x" * 5000):
            code, _ = self.wire.ask("GET", path)
            self.assertIn(code, (301, 400, 404), path[:80])

    def test_slow_requests_hold_up_nobody(self):
        slow = []
        self.addCleanup(lambda: [connection.close() for connection in slow])
        context = self.wire.context()
        for i in range(300):
            if i % 3 == 0:
                slow.append(self.wire.connect())  # not even TLS
                continue
            slow.append(self.wire.connect_tls(context))
            if i % 3 == 1:
                slow[-1].sendall(self.wire.head("GET", "/api")[:20].encode())
            else:
                slow[-1].sendall((self.wire.head("POST", MAPS, "Content-Length: 1000") + "{").encode())
        for i in range(20):
            body = json.dumps({"metadata": {"name": "swift-%d" % i}})
            code, _ = self.wire.ask("POST", MAPS, body=body, headers={"Content-Type": "application/json"}, context=context)
            self.assertEqual(code, 201)

    def test_readers_that_do_not_read_hold_up_nobody(self):
        for i in range(8):
            body = json.dumps({"metadata": {"name": "wide-%d" % i}, "data": {"a": "x" * 900000}})
            self.assertEqual(self.wire.ask("POST", MAPS, body=body, headers={"Content-Type": "application/json"})[0], 201)
        stuck = []
        self.addCleanup(lambda: [connection.close() for connection in stuck])
        context = self.wire.context()
        for _ in range(30):
            stuck.append(self.wire.connect_tls(context))
            stuck[-1].sendall(self.wire.head("GET", MAPS).encode())
        for i in range(20):
            self.assertEqual(self.wire.ask("GET", MAPS + "/wide-%d" % (i % 8), context=context)[0], 200)


if __name__ == "__main__":
    cases.main()
