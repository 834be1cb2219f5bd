"""`trainyard store` as its clients see it: etcdctl, our own commands, and HTTP.

usage: store_serve_test.py TRAINYARD [unittest arguments]
"""

import http.client
import json
import os
import signal
import subprocess
import threading
import time

import store_servers
from store_servers import PATIENCE, Case, Http, b64, environment


class EtcdCtl(Case):
    def setUp(self):
        super().setUp()
        self.serve()

    def command(self, *args):
        return ["etcdctl", "--endpoints", "127.0.0.1:%d" % self.port, *args]

    def ctl(self, *args, stdin=""):
        done = subprocess.run(self.command(*args), input=stdin.encode(), capture_output=True, env=environment(),
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_puts_gets_and_deletes(self):
        self.assertEqual(self.ctl("put", "a/1", "one"), "OK\n")
        self.ctl("put", "a/2", "two")
        self.assertEqual(self.ctl("put", "--prev-kv", "a/1", "uno"), "OK\na/1\none\n")
        self.assertEqual(self.ctl("get", "--prefix", "a/"), "a/1\nuno\na/2\ntwo\n")
        self.assertEqual(self.ctl("get", "--rev=2", "a/1"), "a/1\none\n")
        self.assertEqual(self.ctl("get", "--prefix", "--keys-only", "--order=DESCEND", "a/"), "a/2\n\na/1\n\n")
        self.assertEqual(self.ctl("get", "--prefix", "--sort-by=MODIFY", "--limit=1", "--print-value-only", "a/"), "two\n")
        self.assertEqual(json.loads(self.ctl("get", "--from-key", "--limit=1", "-w=json", ""))["count"], 2)
        self.assertEqual(self.ctl("del", "--prev-kv", "a/1"), "1\na/1\nuno\n")
        self.assertEqual(self.ctl("del", "--prefix", ""), "1\n")
        self.assertEqual(self.ok("range", ""), "")

    def test_runs_transactions(self):
        self.ctl("put", "k", "1")
        txn = 'value("k") = "%s"\n\nput k 2\nget k\n\nput k lost\nget k\n\n'
        self.assertRegex(self.ctl("txn", stdin=txn % "1"), r"^SUCCESS\s+OK\s+k\s+2\s*$")
        self.assertRegex(self.ctl("txn", stdin=txn % "1"), r"^FAILURE\s+OK\s+k\s+lost\s*$")

    def test_watches(self):
        with subprocess.Popen(self.command("watch", "--prefix", "--prev-kv", "--rev=2", "w/"), env=environment(),
                              stdout=subprocess.PIPE) as watch:
            try:
                self.ctl("put", "w/a", "1")
                self.ctl("put", "w/a", "2")
                self.ctl("del", "w/a")
                text = "".join(watch.stdout.readline().decode() for _ in range(12))
            finally:
                watch.kill()
        self.assertEqual(text, "PUT\nw/a\n1\nPUT\nw/a\n1\nw/a\n2\nDELETE\nw/a\n2\nw/a\n")

    def test_keeps_leases(self):
        lease = self.ctl("lease", "grant", "1").split()[1]
        self.ctl("put", "--lease=" + lease, "leased", "1")
        with subprocess.Popen(self.command("lease", "keep-alive", lease), env=environment(),
                              stdout=subprocess.PIPE) as keep:
            for _ in range(4):
                self.assertIn(b"keepalived with TTL(1)", keep.stdout.readline())
            self.assertEqual(self.ctl("get", "leased"), "leased\n1\n")
            keep.kill()
        self.assertRegex(self.ok("watch", "leased", "--count", "1", "--from-revision", "3"), r"^DELETE 3 leased\n$")
        other = self.ctl("lease", "grant", "100").split()[1]
        self.ctl("put", "--lease=" + other, "leased", "2")
        self.assertIn("revoked", self.ctl("lease", "revoke", other))
        self.assertEqual(self.ctl("get", "leased"), "")

    def test_compacts_and_says_what_it_is(self):
        for i in range(5):
            self.ctl("put", "k", str(i))
        self.assertEqual(self.ctl("compact", "4"), "compacted revision 4\n")
        done = subprocess.run(self.command("get", "--rev=3", "k"), capture_output=True, env=environment(), check=False)
        self.assertIn(b"required revision has been compacted", done.stderr)
        watch = subprocess.run(self.command("watch", "--rev=2", "k"), capture_output=True, env=environment(),
                               timeout=PATIENCE, check=False)
        self.assertIn(b"compacted", watch.stderr + watch.stdout)
        self.assertIn("true", self.ctl("endpoint", "status"))
        self.assertIn("127.0.0.1:%d" % self.port, self.ctl("member", "list"))
        health = subprocess.run(self.command("endpoint", "health"), capture_output=True, env=environment(), check=True)
        self.assertIn(b"is healthy", health.stdout + health.stderr)

    def test_large_values_are_refused_with_the_limit(self):
        path = os.path.join(self.folder, "large")
        with open(path, "wb") as file:
            file.write(b"x" * 1600000)
        with open(path, "rb") as file:
            done = subprocess.run(self.command("put", "k"), stdin=file, capture_output=True, env=environment(), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"request is too large", done.stderr)


class OurCommands(Case):
    def test_many_processes_share_one_store(self):
        self.serve()
        writers = [subprocess.Popen([store_servers.TRAINYARD, "kv", "put", "k%d" % i, str(i), "--if-absent", "--store",
                                     "etcd://127.0.0.1:%d" % self.port], env=environment(), stdout=subprocess.DEVNULL)
                   for i in range(12)]
        self.assertEqual([writer.wait() for writer in writers], [0] * 12)
        self.assertEqual(len(self.ok("range", "k", "-o", "name").split()), 12)
        self.assertEqual(self.http().get("k7"), "7", "and over HTTP")

    def test_ends_with_what_was_put_when_told_to(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            server = self.serve()
            self.ok("put", "k", str(ending))
            watch = self.http().send("/v3/watch", {"create_request": {"key": b64("k")}})
            self.assertIn(b"created", watch.readline())
            server.send_signal(ending)
            self.assertEqual(server.wait(PATIENCE), 0)
            self.assertIn(b"server stopped", watch.read())
            done = subprocess.run([store_servers.TRAINYARD, "kv", "get", "k", "--store", "embedded:" + self.path],
                                  capture_output=True, env=environment(), check=True)
            self.assertEqual(done.stdout.decode(), str(ending))

    def test_lets_in_only_who_has_the_token(self):
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("secret\n")
        self.serve("--token-file", token)
        self.ok("put", "k", "1", options="?token-file=" + token)
        self.assertEqual(self.ok("get", "k", env={"TRAINYARD_ETCD_TOKEN": "secret"}), "1")
        for command in (["get", "k"], ["put", "k", "2"], ["watch", "k"]):
            self.fails(self.kv(*command), 1, "wants a token", "TRAINYARD_ETCD_TOKEN")
            self.fails(self.kv(*command, env={"TRAINYARD_ETCD_TOKEN": "wrong"}), 1, "wants a token")
        self.assertEqual(self.http(Authorization="Bearer secret").get("k"), "1")
        self.assertEqual(self.http(token="secret").get("k"), "1")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"token": "secre"}):
            code, text = self.http(**headers).ask("/v3/kv/range", {"key": b64("k")})
            self.assertEqual((code, json.loads(text)["code"]), (401, 16))
        self.assertEqual(self.http().ask("/health", "", "GET"), (200, '{"health":"true"}'))


class Misuse(Case):
    def test_says_what_is_wrong_in_one_line(self):
        path = ["--path", self.path]
        for flags, part in [([], "--path is missing"),
                            ([*path, "--listen", "nowhere"], "--listen: 'nowhere' is no address to listen at"),
                            ([*path, "--gateway", "example.com:80"], "--gateway: 'example.com:80' is no address"),
                            ([*path, "--listen", ":2379"], "--listen: other machines can reach [::]:2379: give a --token-file"),
                            ([*path, "--gateway", "0.0.0.0:0"], "--gateway: other machines can reach 0.0.0.0:0")]:
            self.fails(self.run_store(*flags), 2, part)
        self.fails(self.run_store(*path, "--listen", ":0", env={"TRAINYARD_STORE_GATEWAY": "1.2.3.4:1"}), 2, "other machines")
        self.fails(self.run_store(*path, "--token-file", "/no/such"), 1, "cannot read /no/such")
        self.fails(self.run_store(*path, "--token-file", "/dev/null"), 1, "the token file /dev/null: a token must not be empty")
        self.assertFalse(os.path.exists(self.path), "and none of it made a store")

    def test_says_who_has_the_store_or_the_port(self):
        server = self.serve()
        self.fails(self.run_store("--path", self.path, "--listen", "127.0.0.1:0"), 1, "in use by process %d" % server.pid)
        other = os.path.join(self.folder, "other")
        self.fails(self.run_store("--path", other, "--listen", "127.0.0.1:%d" % self.port), 1,
                   "cannot listen at 127.0.0.1:%d" % self.port)
        self.fails(self.run_store("--path", other, "--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:%d" % self.gateway), 1,
                   "cannot listen at 127.0.0.1:%d: Address already in use" % self.gateway)

    def test_lets_other_machines_in_when_told_to(self):
        process = subprocess.Popen([store_servers.TRAINYARD, "store", "--path", self.path, "--listen", ":0", "--gateway", ":0", "--insecure"],
                                   stdout=subprocess.PIPE, env=environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        words = process.stdout.readline().decode().split()
        self.gateway = int(words[-1].rsplit(":", 1)[1])
        self.assertEqual(self.http().put("k", "1")["header"]["revision"], "2")


class Gateway(Case):
    def test_streams_a_watch_and_the_end_of_a_lease(self):
        self.serve()
        watch = self.http().send("/v3/watch", {"create_request": {"key": b64("k"), "prev_kv": True}})
        self.assertEqual(watch.getheader("Transfer-Encoding"), "chunked")
        self.assertTrue(json.loads(watch.readline())["result"]["created"])
        client = self.http()
        lease = client.ok("/v3/lease/grant", {"TTL": 1})
        client.put("k", "1", lease=lease["ID"])
        event = json.loads(watch.readline())["result"]["events"][0]
        self.assertEqual((event["kv"]["value"], event["kv"]["lease"]), (b64("1"), lease["ID"]))
        for _ in range(3):
            kept = client.ok("/v3/lease/keepalive", {"ID": lease["ID"]})
            self.assertEqual(kept["result"]["TTL"], "1")
        event = json.loads(watch.readline())["result"]["events"][0]
        self.assertEqual((event["type"], event["prev_kv"]["value"]), ("DELETE", b64("1")))
        self.assertEqual(client.get("k"), None)
        self.assertNotIn("TTL", client.ok("/v3/lease/keepalive", {"ID": lease["ID"]})["result"])


class Kill9(Case):
    def put_until_it_dies(self, acknowledged):
        """Puts numbers, each when the last one is acknowledged, until the connection breaks."""
        client = Http(self.gateway)
        try:
            while True:
                number = len(acknowledged) + 1
                client.put("number", str(number))
                acknowledged.append(number)
        except (OSError, http.client.HTTPException):
            client.close()

    def test_loses_nothing_acknowledged_and_watches_go_on(self):
        server = self.serve()
        self.ok("put", "number", "0")
        with subprocess.Popen([store_servers.TRAINYARD, "kv", "watch", "number", "--store", "etcd://127.0.0.1:%d" % self.port],
                              stdout=subprocess.PIPE, env=environment()) as watch:
            try:
                self.assertRegex(watch.stdout.readline().decode(), r"^LIST \d+ number 0$")
                acknowledged = []
                for kill in range(3):
                    writer = threading.Thread(target=self.put_until_it_dies, args=(acknowledged,))
                    writer.start()
                    deadline = time.monotonic() + PATIENCE
                    while len(acknowledged) < 50 * (kill + 1) and time.monotonic() < deadline:
                        time.sleep(0.001)
                    server.send_signal(signal.SIGKILL)
                    server.wait()
                    writer.join()
                    server = self.serve()
                    stored = int(self.http().get("number"))
                    self.assertIn(stored, (len(acknowledged), len(acknowledged) + 1), "one may be made and not be told")
                self.http().put("number", "end")
                seen = self.read_until_end(watch)
            finally:
                watch.kill()
        numbers = [int(word) for word in seen]
        self.assertEqual(sorted(set(numbers)), list(range(1, numbers[-1] + 1)), "every one, and none left out")
        self.assertEqual(numbers, sorted(numbers), "in order")
        self.assertGreaterEqual(numbers[-1], len(acknowledged))

    def read_until_end(self, watch):
        seen = []
        for line in iter(watch.stdout.readline, b""):
            self.assertTrue(line.startswith(b"PUT "), line)
            word = line.decode().split()[-1]
            if word == "end":
                return seen
            seen.append(word)
        self.fail("the watch ended")


if __name__ == "__main__":
    store_servers.main()
