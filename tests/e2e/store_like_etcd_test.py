"""The gateway of `trainyard store` beside that of a real etcd: the same requests must get the same answers.

usage: store_like_etcd_test.py TRAINYARD [unittest arguments]
"""

import base64
import http.client
import json
import os
import subprocess
import time

import store_servers
from store_servers import PATIENCE, Case, Http, b64, free_port


class LikeEtcd(Case):
    """The same requests to a real etcd's gateway and to ours, both new: the same answers, but for who gives them."""

    def setUp(self):
        super().setUp()
        self.serve()
        client, peer = free_port(), free_port()
        url = "http://127.0.0.1:%d"
        etcd = subprocess.Popen(
            ["etcd", "--data-dir", os.path.join(self.folder, "etcd"), "--logger", "zap", "--log-level", "error",
             "--listen-client-urls", url % client, "--advertise-client-urls", url % client,
             "--listen-peer-urls", url % peer, "--initial-advertise-peer-urls", url % peer,
             "--initial-cluster", "default=" + url % peer])
        self.addCleanup(etcd.wait)
        self.addCleanup(etcd.kill)
        self.clients = [Http(self.gateway), Http(client)]
        self.ports = [self.gateway, client]
        for one in self.clients:
            self.addCleanup(one.close)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.clients[1].ask("/health", "", "GET") == (200, '{"health":"true"}'):
                    break
            except (OSError, http.client.HTTPException):
                self.clients[1].close()
            self.assertLess(time.monotonic(), deadline, "etcd did not start")
            time.sleep(0.05)
        self.leases = [{}, {}]

    def plain(self, value, leases):
        """Without who answers; leases as the how-manyeth they are."""
        if isinstance(value, list):
            return [self.plain(item, leases) for item in value]
        if not isinstance(value, dict):
            return value
        result = {}
        for name, item in value.items():
            if name in ("cluster_id", "member_id", "raft_term"):
                continue
            if name in ("ID", "lease"):
                item = leases.setdefault(item, "lease %d" % len(leases))
            result[name] = self.plain(item, leases)
        return result

    def compare(self, path, body, method="POST"):
        """What both answer: the code, and the parsed body."""
        answers = []
        for client, leases in zip(self.clients, self.leases):
            code, text = client.ask(path, body, method)
            try:
                parsed = [self.plain(json.loads(line), leases) for line in text.splitlines()]
            except ValueError:
                parsed = text
            answers.append((code, parsed))
        self.assertEqual(answers[0], answers[1], "%s %s" % (path, body))
        return answers[0]

    def test_keys(self):
        a, b, z, zero = b64("a"), b64("b"), b64("z"), b64("\0")
        everything = {"key": zero, "range_end": zero}
        put = "/v3/kv/put", {"key": a, "value": b64("1")}
        requests = [
            ("/v3/kv/range", {"key": a}), put, put, ("/v3/kv/put", {"key": a, "value": b64("2"), "prev_kv": True}),
            ("/v3/kv/put", {"key": b, "prev_kv": True, "unknown": [1, {"x": 2}]}),
            ("/v3/kv/put", {"key": b64("a/1"), "value": ""}), ("/v3/kv/range", everything),
            ("/v3/kv/range", {"key": a, "range_end": z, "limit": 1}), ("/v3/kv/range", {"key": a, "range_end": z, "limit": "2"}),
            ("/v3/kv/range", {"key": a, "range_end": z, "limit": -1}), ("/v3/kv/range", {"key": a, "range_end": z, "revision": 3}),
            ("/v3/kv/range", {"key": a, "range_end": z, "revision": -3}),
            ("/v3/kv/range", {**everything, "sort_order": "DESCEND", "limit": 2}),
            ("/v3/kv/range", {**everything, "sortOrder": 2, "sortTarget": 3, "keysOnly": True}),
            ("/v3/kv/range", {**everything, "sort_target": "VERSION"}), ("/v3/kv/range", {**everything, "sort_target": "CREATE", "limit": 1}),
            ("/v3/kv/range", {**everything, "keys_only": True, "serializable": True}),
            ("/v3/kv/range", {**everything, "count_only": True, "limit": 1}), ("/v3/kv/range", {**everything, "min_mod_revision": 4}),
            ("/v3/kv/range", {**everything, "max_create_revision": "2", "limit": 1}),
            ("/v3/kv/range", {"key": z, "range_end": a}), ("/v3/kv/range", {}), ("/v3/kv/range", ""),
            ("/v3/kv/range", {"key": a, "revision": 99}), ("/v3/kv/put", {}), ("/v3/kv/put", {"key": a, "lease": 77}),
            ("/v3/kv/deleterange", {}), ("/v3/kv/deleterange", {"key": z, "range_end": a}),
            ("/v3/kv/deleterange", {"key": b, "prev_kv": True}), ("/v3/kv/deleterange", {"key": b, "prev_kv": True}),
            ("/v3/kv/deleterange", everything), ("/v3/kv/range", everything), ("/v3/kv/compaction", {"revision": 99}),
            ("/v3/kv/compaction", {"revision": 4}), ("/v3/kv/compaction", {"revision": 4}), ("/v3/kv/compaction", {}),
            ("/v3/kv/range", {"key": a, "revision": 3}), ("/v3/kv/range", {"key": a, "revision": 4}),
            ("/v3/kv/put", {"key": a, "value": base64.b64encode(b"x" * 1600000).decode()}),
        ]
        for path, body in requests:
            self.compare(path, body)

    def test_transactions(self):
        a, b = b64("a"), b64("b")
        put_a = {"request_put": {"key": a, "value": b64("1"), "prev_kv": True}}
        get_all = {"requestRange": {"key": a, "rangeEnd": b64("z"), "limit": 1}}
        delete = {"request_delete_range": {"key": a, "range_end": b64("z"), "prev_kv": True}}
        compares = [{"key": a, "target": "CREATE", "create_revision": 0}, {"key": a, "target": "VERSION", "result": "GREATER"},
                    {"key": a, "target": "VALUE", "value": b64("1")}, {"key": b, "target": "VALUE", "result": "NOT_EQUAL"},
                    {"key": a, "target": 2, "mod_revision": "2", "result": 3}, {"key": a, "version": "1"}, {"key": a},
                    {"key": a, "target": "MOD", "version": 5, "result": "LESS"}]
        self.compare("/v3/kv/txn", {})
        for compare in [[], *([one] for one in compares), compares]:
            self.compare("/v3/kv/txn", {"compare": compare, "success": [put_a, get_all], "failure": [get_all, delete]})
        self.compare("/v3/kv/put", {"key": b, "value": b64("2")})
        self.compare("/v3/kv/txn", {"success": [get_all, delete]})
        for wrong in ({"success": [put_a, put_a]}, {"failure": [put_a, delete]}, {"success": [{}]}, {"compare": [{}]},
                      {"success": [{"request_put": {}}]}, {"success": [{"request_put": {"key": a, "lease": "9"}}]},
                      {"success": [{"request_put": {"key": b64(str(i))}} for i in range(129)]},
                      {"success": [{"request_range": {"key": a, "revision": 99}}]}):
            self.assertNotEqual(self.compare("/v3/kv/txn", wrong)[0], 200)
        self.compare("/v3/kv/range", {"key": a, "range_end": b64("z")})

    def test_leases(self):
        grants = [client.ok("/v3/lease/grant", {"TTL": "100"}) for client in self.clients]
        self.assertEqual(*(self.plain(grant, leases) for grant, leases in zip(grants, self.leases)))

        def each(path, make):
            answers = [client.ask(path, make(grant["ID"])) for client, grant in zip(self.clients, grants)]
            codes = [code for code, _ in answers]
            bodies = [self.plain(json.loads(text), leases) for (_, text), leases in zip(answers, self.leases)]
            self.assertEqual((codes[0], bodies[0]), (codes[1], bodies[1]), path)

        each("/v3/kv/put", lambda lease: {"key": b64("k"), "value": b64("1"), "lease": lease})
        each("/v3/kv/range", lambda lease: {"key": b64("k")})
        each("/v3/lease/keepalive", lambda lease: {"ID": lease})
        each("/v3/lease/revoke", lambda lease: {"ID": lease})
        each("/v3/lease/revoke", lambda lease: {"ID": lease})
        each("/v3/kv/lease/revoke", lambda lease: {"ID": lease})
        each("/v3/lease/keepalive", lambda lease: {"ID": lease})
        each("/v3/kv/range", lambda lease: {"key": b64("k")})
        self.compare("/v3/lease/keepalive", '{"ID":5} {"ID":"6"}')
        self.compare("/v3/lease/grant", {"TTL": "99999999999"})

    def test_errors_of_the_carrier(self):
        self.compare("/v3/kv/nothing", {})
        self.compare("/nothing", "", "GET")
        self.compare("/v3/kv/range", "", "GET")
        self.compare("/v3/kv/range", {}, "PUT")
        self.compare("/version", "", "POST")
        self.compare("/health", "", "GET")
        for path in ("/v3/kv/range", "/v3/watch", "/v3/lease/keepalive"):
            for wrong in ("{", "[]", '{"key":"!"}' if "range" in path else "}", "nonsense"):
                answers = [client.ask(path, wrong) for client in self.clients]
                shown = [(code, sorted(json.loads(text)), json.loads(text)["code"]) for code, text in answers]
                self.assertEqual(shown[0], shown[1], "%s %s" % (path, wrong))

    def lines(self, body, count, act=()):
        """The first `count` lines of a watch; before the last ones each of `act` is done to both."""
        both = []
        for client, port, leases in zip(self.clients, self.ports, self.leases):
            stream = Http(port)
            answer = stream.send("/v3/watch", body)
            lines = [answer.readline() for _ in range(count - len(act))]
            for path, request in act:
                client.ok(path, request)
                lines.append(answer.readline())
            both.append([self.plain(json.loads(line), leases) for line in lines])
            stream.close()
        self.assertEqual(both[0], both[1], body)
        return both[0]

    def test_watches(self):
        a = b64("a")
        put, delete = ("/v3/kv/put", {"key": a, "value": b64("1")}), ("/v3/kv/deleterange", {"key": a})
        txn = ("/v3/kv/txn", {"success": [{"request_put": {"key": b64("a2")}}, {"request_put": {"key": b64("a1")}}]})
        for path, body in (put, put, delete, put):
            self.compare(path, body)
        self.lines({"create_request": {"key": a}}, 4, (put, put, delete))
        self.lines({"create_request": {"key": a, "start_revision": 1}}, 2)
        self.lines({"create_request": {"key": a, "start_revision": "3", "prev_kv": True, "watch_id": "9"}}, 3, (put,))
        self.lines({"create_request": {"key": a, "range_end": b64("b")}}, 4, (txn, put, delete))
        self.lines({"createRequest": {"range_end": b64("\0"), "filters": ["NODELETE"]}}, 2, (put,))
        self.lines({"create_request": {"key": b64("b"), "range_end": a}}, 1)
        create = {"create_request": {"key": a, "watch_id": 7}}
        cancel = {"cancel_request": {"watch_id": 7}}
        self.lines("".join(json.dumps(part) for part in (create, create, cancel, cancel, create)), 4)
        self.compare("/v3/kv/compaction", {"revision": 5})
        self.lines({"create_request": {"key": a, "start_revision": 4}}, 2)
        self.lines({"create_request": {"key": a, "start_revision": 5, "prev_kv": True}}, 2)


if __name__ == "__main__":
    store_servers.main()
