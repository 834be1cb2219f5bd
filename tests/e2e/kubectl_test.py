"""The embedded cluster as kubectl sees it.

usage: kubectl_test.py TRAINYARD [unittest arguments]      (TRAINYARD_TEST_KUBECTL: another kubectl than the PATH's)
"""

import json
import os
import subprocess
import sys
import threading
import time
import unittest

from cluster import Cluster, environment, sh

TRAINYARD = None

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Something round.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: integer, minimum: 0, description: How many.}
              color: {type: string, default: red}
          status:
            type: object
            properties: {size: {type: integer}}
"""


def widget(name, size=1):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


class Case(unittest.TestCase):
    """All tests of a class share a cluster and use names of their own."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(TRAINYARD).start()
        cls.addClassCleanup(cls.cluster.remove)
        cls.kubectl = cls.cluster.kubectl

    def follow(self, *args):
        """A kubectl that runs on, with the lines that it has printed so far."""
        process = subprocess.Popen(self.cluster.kubectl_command(*args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, env=environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.lines = []

        def read():
            for line in process.stdout:
                process.lines.append(line.rstrip("\n"))
        threading.Thread(target=read, daemon=True).start()
        return process


class Objects(Case):
    def test_apply_creates_then_changes_then_leaves_alone(self):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "apply"}, "data": {"a": "1"}}
        self.assertIn("configmap/apply created", self.cluster.apply(config).stdout)
        self.assertIn("configmap/apply unchanged", self.cluster.apply(config).stdout)
        config["data"] = {"b": "2"}
        self.assertIn("configmap/apply configured", self.cluster.apply(config).stdout)
        self.assertEqual(self.cluster.get("configmap", "apply")["data"], {"b": "2"})

    def test_server_side_apply_tells_conflicts(self):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": {"a": "1"}}
        self.cluster.apply(config, "--server-side", "--field-manager=one")
        config["data"]["a"] = "2"
        done = self.kubectl("apply", "-f", "-", "--server-side", "--field-manager=two", stdin=json.dumps(config), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(".data.a", done.stderr)
        self.cluster.apply(config, "--server-side", "--field-manager=two", "--force-conflicts")
        self.assertEqual(self.cluster.get("configmap", "ssa")["data"], {"a": "2"})

    def test_label_and_annotate(self):
        self.kubectl("create", "configmap", "marked")
        self.kubectl("label", "configmap", "marked", "color=red")
        self.kubectl("annotate", "configmap", "marked", "note=some text")
        metadata = self.cluster.get("configmap", "marked")["metadata"]
        self.assertEqual(metadata["labels"], {"color": "red"})
        self.assertEqual(metadata["annotations"], {"note": "some text"})
        self.assertIn("marked", self.kubectl("get", "configmaps", "-l", "color=red").stdout)
        self.assertNotIn("marked", self.kubectl("get", "configmaps", "-l", "color!=red").stdout)
        self.kubectl("label", "configmap", "marked", "color-")
        self.assertNotIn("labels", self.cluster.get("configmap", "marked")["metadata"])

    def test_patch_of_each_type(self):
        self.kubectl("create", "configmap", "patched", "--from-literal=a=1")
        self.kubectl("patch", "configmap", "patched", "--type=merge", "-p", '{"data":{"b":"2"}}')
        self.kubectl("patch", "configmap", "patched", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]')
        self.kubectl("patch", "configmap", "patched", "--type=strategic", "-p", '{"data":{"c":"3"}}')
        self.assertEqual(self.cluster.get("configmap", "patched")["data"], {"b": "2", "c": "3"})

    def test_edit(self):
        self.kubectl("create", "configmap", "edited", "--from-literal=a=before")
        self.kubectl("edit", "configmap", "edited", env={"KUBE_EDITOR": "sed -i s/before/after/"})
        self.assertEqual(self.cluster.get("configmap", "edited")["data"], {"a": "after"})

    def test_replace_of_what_has_changed_since_is_a_conflict(self):
        self.kubectl("create", "configmap", "stale", "--from-literal=a=1")
        old = self.kubectl("get", "configmap", "stale", "-o", "json").stdout
        self.kubectl("patch", "configmap", "stale", "--type=merge", "-p", '{"data":{"a":"2"}}')
        done = self.kubectl("replace", "-f", "-", stdin=old, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Conflict", done.stderr)
        self.assertEqual(self.cluster.get("configmap", "stale")["data"], {"a": "2"})

    def test_create_of_what_exists_is_refused(self):
        self.kubectl("create", "configmap", "twice")
        done = self.kubectl("create", "configmap", "twice", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("already exists", done.stderr)

    def test_secrets_and_namespaces(self):
        self.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=value")
        self.assertEqual(self.cluster.get("secret", "hidden")["data"], {"key": "dmFsdWU="})
        self.kubectl("create", "namespace", "elsewhere")
        self.kubectl("create", "configmap", "there", "-n", "elsewhere")
        self.assertIn("elsewhere", self.kubectl("get", "configmaps", "-A").stdout)
        self.kubectl("delete", "namespace", "elsewhere")
        self.assertNotEqual(self.kubectl("get", "namespace", "elsewhere", check=False).returncode, 0)
        self.assertNotIn("there", self.kubectl("get", "configmaps", "-A").stdout)

    def test_service_and_its_endpoints(self):
        self.cluster.apply(sh("backend", "sleep 1000", labels={"app": "backend"}))
        self.kubectl("expose", "pod", "backend", "--port=80", "--target-port=8080")
        self.cluster.wait_for_phase("backend", "Running")
        address = self.cluster.wait(lambda: self.cluster.get("pod", "backend")["status"].get("podIP"), "an address")
        self.cluster.wait(lambda: address + ":8080" in self.kubectl("get", "endpoints", "backend").stdout, "the endpoint")
        self.assertRegex(self.kubectl("get", "service", "backend", "-o", "wide").stdout, r"backend +ClusterIP +127\.")

    def test_dry_run(self):
        self.kubectl("create", "configmap", "dry", "--dry-run=server")
        self.assertNotEqual(self.kubectl("get", "configmap", "dry", check=False).returncode, 0)

    def test_diff_shows_what_apply_would_change(self):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "diffed"}, "data": {"a": "1"}}
        self.cluster.apply(config)
        config["data"]["a"] = "2"
        done = self.kubectl("diff", "-f", "-", stdin=json.dumps(config), check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("+  a: \"2\"", done.stdout)

    def test_auth_can_i(self):
        self.assertEqual(self.kubectl("auth", "can-i", "create", "pods").stdout.strip(), "yes")

    def test_api_resources_and_versions(self):
        resources = self.kubectl("api-resources").stdout
        for name in ("pods", "services", "nodes", "customresourcedefinitions", "leases", "events"):
            self.assertIn(name, resources)
        self.assertIn("coordination.k8s.io/v1", self.kubectl("api-versions").stdout)
        self.assertIn("trainyard", self.kubectl("version", "-o", "json").stdout)


class CustomResources(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.apply(WIDGETS)
        cls.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=300s")

    def test_are_shown_by_short_name_with_their_columns(self):
        self.cluster.apply(widget("shown", 3))
        self.assertRegex(self.kubectl("get", "wd").stdout, r"NAME +SIZE +AGE\n(.*\n)*shown +3 ")
        self.assertIn("widget.example.com/shown", self.kubectl("get", "all").stdout)

    def test_are_validated_and_defaulted(self):
        self.cluster.apply(widget("filled"))
        self.assertEqual(self.cluster.get("widget", "filled")["spec"]["color"], "red")
        done = self.kubectl("apply", "-f", "-", stdin=json.dumps(widget("bad", -1)), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("spec.size", done.stderr)

    def test_with_unknown_fields_are_refused_by_kubectl(self):
        bad = widget("unknown")
        bad["spec"]["sise"] = 3
        done = self.kubectl("create", "-f", "-", stdin=json.dumps(bad), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("sise", done.stderr)

    def test_are_scaled(self):
        self.cluster.apply(widget("scaled"))
        self.kubectl("scale", "widget/scaled", "--replicas=5")
        self.assertEqual(self.cluster.get("widget", "scaled")["spec"]["size"], 5)

    def test_are_explained(self):
        done = self.kubectl("explain", "widgets.spec.size")
        self.assertIn("How many.", done.stdout)
        self.assertIn("Something round.", self.kubectl("explain", "widgets").stdout)
        self.assertIn("FIELD", self.kubectl("explain", "pods.spec.containers.name").stdout)

    def test_go_with_their_definition(self):
        other = WIDGETS.replace("widget", "gadget").replace("Widget", "Gadget").replace("[wd]", "[gd]")
        self.cluster.apply(other)
        self.kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=300s")
        self.cluster.apply({**widget("one"), "kind": "Gadget"})
        self.kubectl("delete", "crd", "gadgets.example.com")
        self.assertNotEqual(self.kubectl("get", "gadgets", check=False).returncode, 0)


class Pods(Case):
    def test_run_to_their_end_and_keep_their_logs(self):
        self.cluster.apply(sh("hello", "echo hello; echo world >&2; exit 3", restartPolicy="Never"))
        self.cluster.wait_for_phase("hello", "Failed")
        state = self.cluster.get("pod", "hello")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((state["exitCode"], state["reason"]), (3, "Error"))
        self.assertEqual(sorted(self.kubectl("logs", "hello").stdout.split()), ["hello", "world"])

    def test_get_wide_and_describe(self):
        self.cluster.apply(sh("wide", "sleep 1000"))
        self.cluster.wait_for_phase("wide", "Running")
        line = self.kubectl("get", "pod", "wide", "-o", "wide").stdout.splitlines()[1]
        self.assertRegex(line, r"^wide +1/1 +Running +0 +\S+ +127\.\S+ +\S+ ")
        text = self.kubectl("describe", "pod", "wide").stdout
        for part in ("Status:", "Running", "sleep 1000", "Scheduled", "Started"):
            self.assertIn(part, text)
        self.assertIn("Ready", self.kubectl("describe", "nodes").stdout)
        self.assertRegex(self.kubectl("get", "nodes", "-o", "wide").stdout, r"Ready")

    def test_logs_follow_tail_since_and_timestamps(self):
        self.cluster.apply(sh("counter", "i=0; while [ $i -lt 5 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; sleep 1000"))
        self.cluster.wait_for_phase("counter", "Running")
        follower = self.follow("logs", "-f", "counter")
        self.cluster.wait(lambda: "line 4" in follower.lines, "the last line")
        self.assertEqual(follower.lines, ["line %d" % i for i in range(5)])
        self.assertEqual(self.kubectl("logs", "counter", "--tail=2").stdout, "line 3\nline 4\n")
        self.assertEqual(self.kubectl("logs", "counter", "--since=1h").stdout.count("\n"), 5)
        self.assertRegex(self.kubectl("logs", "counter", "--timestamps", "--tail=1").stdout, r"^\d{4}-\d\d-\d\dT\S+Z line 4\n$")
        self.kubectl("delete", "pod", "counter", "--wait=false")
        self.cluster.wait(lambda: follower.poll() is not None, "kubectl logs -f to end with the pod")

    def test_watch_shows_every_phase(self):
        watcher = self.follow("get", "pods", "-w", "--no-headers", "-l", "app=watched")
        time.sleep(0.2)
        self.cluster.apply(sh("watched", "exit 0", restartPolicy="Never", labels={"app": "watched"}))
        self.cluster.wait(lambda: any("Completed" in line for line in watcher.lines), "Completed")
        self.assertTrue(any("Pending" in line for line in watcher.lines), watcher.lines)

    def test_wait_for_a_condition_and_for_deletion(self):
        # It takes its time to end: an old kubectl does not wait for what is gone already, but fails.
        self.cluster.apply(sh("awaited", "trap 'sleep 3; exit 0' TERM; while :; do sleep 0.1; done"))
        self.kubectl("wait", "--for=condition=Ready", "pod/awaited", "--timeout=300s")
        self.kubectl("delete", "pod", "awaited", "--wait=false")
        self.kubectl("wait", "--for=delete", "pod/awaited", "--timeout=300s")

    def test_that_do_not_fit_stay_pending_with_the_reason(self):
        big = sh("big", "sleep 1000")
        big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10000"}}
        self.cluster.apply(big)
        def reason():
            conditions = self.cluster.get("pod", "big")["status"].get("conditions", [])
            return [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        condition = self.cluster.wait(reason, "PodScheduled=False")[0]
        self.assertEqual(condition["reason"], "Unschedulable")
        self.assertIn("Insufficient cpu", condition["message"])

    def test_deletion_gives_the_grace_period(self):
        self.cluster.apply(sh("graceful", "trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done"))
        self.cluster.wait(lambda: "ready" in self.kubectl("logs", "graceful", check=False).stdout, "ready")
        follower = self.follow("logs", "-f", "graceful")
        self.cluster.wait(lambda: "ready" in follower.lines, "the follower")
        self.kubectl("delete", "pod", "graceful")
        self.cluster.wait(lambda: "got TERM" in follower.lines, "the last words")


class Deletion(Case):
    def owned(self, name):
        self.kubectl("create", "configmap", name)
        uid = self.cluster.get("configmap", name)["metadata"]["uid"]
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name + "-child",
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": True}]}})

    def exists(self, name):
        return self.kubectl("get", "configmap", name, check=False).returncode == 0

    def test_in_the_background_takes_dependents_along(self):
        self.owned("background")
        self.kubectl("delete", "configmap", "background", "--cascade=background")
        self.cluster.wait(lambda: not self.exists("background-child"), "the dependent to go")

    def test_in_the_foreground_takes_dependents_first(self):
        self.owned("foreground")
        self.kubectl("delete", "configmap", "foreground", "--cascade=foreground")
        self.assertFalse(self.exists("foreground-child"))
        self.assertFalse(self.exists("foreground"))

    def test_of_an_orphaning_kind_leaves_dependents(self):
        self.owned("orphaning")
        self.kubectl("delete", "configmap", "orphaning", "--cascade=orphan")
        self.cluster.wait(lambda: not self.exists("orphaning"), "the owner to go")
        child = self.cluster.get("configmap", "orphaning-child")
        self.assertNotIn("ownerReferences", child["metadata"])


def main():
    global TRAINYARD
    TRAINYARD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
