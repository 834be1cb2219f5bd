"""What the tests of `trainyard store` share: a server for each test, and a client of its gateway."""

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

TRAINYARD = None
PATIENCE = 300  # seconds; never reached when all is right


def environment(extra=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
    return {**clean, "ETCDCTL_API": "3", **(extra or {})}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Http:
    """One connection to a gateway."""

    def __init__(self, port, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.headers = headers or {}

    def close(self):
        self.connection.close()

    def send(self, path, body, method="POST"):
        text = body if isinstance(body, str) else json.dumps(body)
        self.connection.request(method, path, body=text, headers=self.headers)
        return self.connection.getresponse()

    def ask(self, path, body, method="POST"):
        """(code, text)"""
        answer = self.send(path, body, method)
        return answer.status, answer.read().decode()

    def ok(self, path, body):
        code, text = self.ask(path, body)
        if code != 200:
            raise AssertionError("%s %s: %d %s" % (path, body, code, text))
        return json.loads(text)

    def put(self, key, value, **more):
        return self.ok("/v3/kv/put", {"key": b64(key), "value": b64(value), **more})

    def get(self, key):
        kvs = self.ok("/v3/kv/range", {"key": b64(key)}).get("kvs", [])
        return base64.b64decode(kvs[0].get("value", "")).decode() if kvs else None


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainyard-e2e.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "store")
        self.port, self.gateway = free_port(), free_port()

    def serve(self, *flags, env=None):
        """Starts it, and returns when it is ready."""
        process = subprocess.Popen(
            [TRAINYARD, "store", "--path", self.path, "--listen", "127.0.0.1:%d" % self.port,
             "--gateway", "127.0.0.1:%d" % self.gateway, *flags],
            stdout=subprocess.PIPE, env=environment(env))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stdout.readline().decode()
        self.assertEqual(line, "The store in %s is ready: etcd://127.0.0.1:%d and http://127.0.0.1:%d\n" %
                         (self.path, self.port, self.gateway))
        return process

    def http(self, **headers):
        client = Http(self.gateway, headers)
        self.addCleanup(client.close)
        return client

    def run_store(self, *flags, env=None):
        return subprocess.run([TRAINYARD, "store", *flags], capture_output=True, timeout=PATIENCE,
                              env=environment(env), check=False)

    def kv(self, *args, env=None, options=""):
        return subprocess.run([TRAINYARD, "kv", *args, "--store", "etcd://127.0.0.1:%d%s" % (self.port, options)],
                              capture_output=True, timeout=PATIENCE, env=environment(env), check=False)

    def ok(self, *args, **kwargs):
        done = self.kv(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fails(self, done, code, *parts):
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(message.count("\n"), 1, message)
        for part in parts:
            self.assertIn(part, message)


def main():
    """usage: x_test.py TRAINYARD [unittest arguments]"""
    global TRAINYARD
    TRAINYARD = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2)
