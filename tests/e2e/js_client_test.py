"""The embedded cluster as the official JavaScript client sees it.

usage: js_client_test.py TRAINYARD [unittest arguments]     (KUBEBUILDER_ASSETS: also on the real server in there)

The client is installed by npm into the build folder, once; where that is not possible, the tests are skipped.
"""

import json
import os
import subprocess
import threading
import unittest

import cases
import js_packages
from cases import ClusterCase, OwnServerCase, also_on_a_real_server, eventually
from cluster import environment

PACKAGE = "@kubernetes/client-node@1"  # the next ones need a newer Node.js than Debian's


class JsCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = js_packages.install(PACKAGE)
        super().setUpClass()

    def command(self, script):
        return ["node", os.path.join(self.folder, script), self.cluster.kubeconfig, self.namespace]

    def passes(self, script):
        done = subprocess.run(self.command(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, "\n" + done.stdout)
        self.assertRegex(done.stdout, r"(?m)^(#|ℹ) pass [1-9]", "it says what it has tested")


@also_on_a_real_server
class Api(JsCase):
    def test_objects(self):
        self.passes("objects.mjs")

    def test_custom_resources(self):
        self.passes("custom.mjs")

    def test_access(self):
        self.passes("access.mjs")


class Pods(JsCase):
    def test_pods_and_their_logs(self):
        self.passes("pods.mjs")


@also_on_a_real_server
class Informer(JsCase, OwnServerCase):
    def inform(self):
        process = subprocess.Popen(self.command("informer.mjs"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.told = []

        def read():
            for line in process.stdout:
                process.told.append(json.loads(line))
        process.reader = threading.Thread(target=read, daemon=True)
        process.reader.start()
        # From here on it tells what happens in the order in which it happens; a list comes by name.
        eventually(lambda: any(line["event"] == "connect" for line in process.told), "the informer's first list")
        return process

    def write(self, name, n):
        """Creates or changes the object; its version."""
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace}, "data": {"n": n}}
        done = self.cluster.kubectl("create" if n == "0" else "replace", "--validate=false", "-f", "-", "-o", "json",
                                    stdin=json.dumps(config))
        return json.loads(done.stdout)["metadata"]["resourceVersion"]

    def test_goes_on_over_a_restart_of_the_server(self):
        informer = self.inform()
        writes = []  # what the informer must tell: event, name, version

        def write(name, n):
            writes.append(("add" if n == "0" else "update", name, self.write(name, n)))

        def told(name, n):
            return any(line.get("name") == name and line["data"].get("n") == n for line in informer.told)
        write("stays", "0")
        write("goes", "0")
        eventually(lambda: told("goes", "0"), "the first events")
        write("stays", "1")
        self.cluster.restart()
        write("stays", "2")
        write("new", "0")
        self.cluster.kubectl("delete", "configmap", "goes", "-n", self.namespace)
        write("stays", "3")
        eventually(lambda: told("stays", "3"), "the last event")
        informer.stdin.close()
        informer.wait()
        informer.reader.join()

        held = {o["name"]: o["data"] for o in informer.told[-1]["objects"] if o["name"] != "kube-root-ca.crt"}
        self.assertEqual(held, {"stays": {"n": "3"}, "new": {"n": "0"}})
        events = [(line["event"], line["name"], line.get("version")) for line in informer.told
                  if line["event"] in ("add", "update") and line["name"] != "kube-root-ca.crt"]
        self.assertEqual(len(events), len(set(events)), "nothing is told twice")
        self.assertEqual([line["name"] for line in informer.told if line["event"] == "delete"], ["goes"])
        if self.cluster.runs_pods:  # a real server forgets what was before its start, and the informer lists again
            self.assertEqual(events, writes)
        self.assertEqual(events[-1], writes[-1])


if __name__ == "__main__":
    cases.main()
