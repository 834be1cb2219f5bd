"""The embedded cluster's pods and its controllers as the official Python client sees them.

usage: python_pods_test.py TRAINYARD [unittest arguments]
"""

import sys

from kubernetes import client, watch

import cases
from cases import eventually
from python_client import ApiException, PythonCase, config_map, pod


class Pods(PythonCase):
    """What only a cluster with a node does."""

    def run_pod(self, name, script, **spec):
        self.core.create_namespaced_pod(self.namespace, pod(name, ("/bin/sh", "-c", script), **spec))

    def phase(self, name):
        return self.core.read_namespaced_pod(name, self.namespace).status.phase

    def logs(self, name, **kwargs):
        return self.core.read_namespaced_pod_log(name, self.namespace, **kwargs)

    def gone(self, read, name):
        try:
            read(name, self.namespace)
            return False
        except ApiException as error:
            self.assertEqual(error.status, 404)
            return True

    def test_phases_are_watched_to_the_end(self):
        version = self.core.list_namespaced_pod(self.namespace).metadata.resource_version
        self.run_pod("phases", "exit 7", restart_policy="Never")
        phases, watcher = [], watch.Watch()
        for event in watcher.stream(self.core.list_namespaced_pod, self.namespace, resource_version=version,
                                    field_selector="metadata.name=phases", _request_timeout=30):
            phase = event["object"].status.phase
            if phase not in phases:
                phases.append(phase)
            if phase in ("Succeeded", "Failed"):
                last = event["object"]
                watcher.stop()
        self.assertEqual((phases[0], phases[-1]), ("Pending", "Failed"))
        self.assertLessEqual(set(phases), {"Pending", "Running", "Failed"})
        self.assertEqual(last.status.container_statuses[0].state.terminated.exit_code, 7)

    def test_speak_with_the_api_server_from_inside(self):
        self.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": "robot"}})
        script = "\n".join((
            "from kubernetes import client, config",
            "config.load_incluster_config()",
            "names = [m.metadata.name for m in client.CoreV1Api().list_namespaced_config_map('%s').items]" % self.namespace,
            "print(names)"))
        self.core.create_namespaced_pod(self.namespace, pod("inside", (sys.executable, "-c", script), restart_policy="Never",
                                                            service_account_name="robot"))
        eventually(lambda: self.phase("inside") in ("Succeeded", "Failed"), "the pod to end")
        self.assertIn("kube-root-ca.crt", self.logs("inside"))
        self.assertEqual(self.phase("inside"), "Succeeded")

    def test_say_anything_at_their_end(self):
        self.run_pod("bytes", r"printf 'a\377b' >/dev/termination-log; exit 3", restart_policy="Never")
        eventually(lambda: self.phase("bytes") == "Failed", "the pod to fail")
        ended = self.core.read_namespaced_pod("bytes", self.namespace).status.container_statuses[0].state.terminated
        self.assertEqual((ended.exit_code, ended.message), (3, "a\ufffdb"))

    def test_of_many_containers_end_each_by_itself(self):
        containers = [client.V1Container(name="c%d" % i, image="none", command=["true"]) for i in range(10)]
        for number in range(5):
            name = "many-%d" % number
            self.core.create_namespaced_pod(self.namespace, client.V1Pod(
                metadata=client.V1ObjectMeta(name=name), spec=client.V1PodSpec(containers=containers, restart_policy="Never")))
        for number in range(5):
            name = "many-%d" % number
            eventually(lambda: self.phase(name) in ("Succeeded", "Failed"), "pod %s to end" % name)
            statuses = self.core.read_namespaced_pod(name, self.namespace).status.container_statuses
            self.assertEqual([s.state.terminated.exit_code for s in statuses], [0] * 10)

    def test_logs_are_read_and_followed(self):
        self.run_pod("logs", "for i in 1 2 3; do echo line $i; sleep 0.05; done; sleep 1000")
        eventually(lambda: self.phase("logs") == "Running", "the pod to run")
        lines, watcher = [], watch.Watch()
        for line in watcher.stream(self.core.read_namespaced_pod_log, "logs", self.namespace, _request_timeout=30):
            lines.append(line)
            if len(lines) == 3:
                watcher.stop()
        self.assertEqual(lines, ["line 1", "line 2", "line 3"])
        self.assertEqual(self.logs("logs", tail_lines=1), "line 3\n")
        self.assertEqual(self.logs("logs", limit_bytes=4), "line")
        self.assertRegex(self.logs("logs", timestamps=True, tail_lines=1), r"^\d{4}-\d\d-\d\dT\S+Z line 3\n$")
        self.fails(404, "NotFound", self.logs, "no-such-pod")
        self.fails(400, "BadRequest", self.logs, "logs", container="no-such-container")

    def test_following_ends_with_the_pod(self):
        self.run_pod("ends", "echo first; sleep 0.3; echo last", restart_policy="Never")
        eventually(lambda: self.phase("ends") != "Pending", "the pod to start")
        response = self.core.read_namespaced_pod_log("ends", self.namespace, follow=True, _preload_content=False, _request_timeout=30)
        self.assertEqual(b"".join(response.stream()), b"first\nlast\n")

    def test_restart_counts_and_previous_logs(self):
        self.run_pod("again", "echo run; sleep 0.1; exit 1", restart_policy="OnFailure")

        def restarts():
            statuses = self.core.read_namespaced_pod("again", self.namespace).status.container_statuses
            return statuses[0].restart_count if statuses else 0
        eventually(lambda: restarts() >= 1, "a restart")
        self.assertIn("run", self.logs("again", previous=True))
        self.core.delete_namespaced_pod("again", self.namespace, grace_period_seconds=0)

    def test_environment_and_downward_fields(self):
        self.core.create_namespaced_config_map(self.namespace, config_map("settings", size="5"))
        wanted = pod("env", ("/bin/sh", "-c", "echo $PLAIN $NAME $SIZE"), restart_policy="Never")
        wanted.spec.containers[0].env = [
            client.V1EnvVar(name="PLAIN", value="plain"),
            client.V1EnvVar(name="NAME", value_from=client.V1EnvVarSource(field_ref=client.V1ObjectFieldSelector(
                field_path="metadata.name"))),
            client.V1EnvVar(name="SIZE", value_from=client.V1EnvVarSource(config_map_key_ref=client.V1ConfigMapKeySelector(
                name="settings", key="size")))]
        self.core.create_namespaced_pod(self.namespace, wanted)
        eventually(lambda: self.phase("env") == "Succeeded", "the pod to end")
        self.assertEqual(self.logs("env"), "plain env 5\n")

    def test_deletion_gives_a_pod_time_and_then_none(self):
        self.run_pod("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done")
        eventually(lambda: self.logs("deaf") == "up\n" if self.phase("deaf") == "Running" else False, "the pod to run")
        deleted = self.core.delete_namespaced_pod("deaf", self.namespace, grace_period_seconds=1)
        self.assertTrue(deleted.metadata.deletion_timestamp)
        eventually(lambda: self.gone(self.core.read_namespaced_pod, "deaf"), "the pod to go")

    def owned(self, name):
        made = self.create(name)
        child = config_map(name + "-child")
        child.metadata.owner_references = [client.V1OwnerReference(api_version="v1", kind="ConfigMap", name=name,
                                                                   uid=made.metadata.uid, block_owner_deletion=True)]
        self.core.create_namespaced_config_map(self.namespace, child)
        return self.core.read_namespaced_config_map

    def test_dependents_go_in_the_background(self):
        read = self.owned("background")
        self.core.delete_namespaced_config_map("background", self.namespace, propagation_policy="Background")
        self.assertTrue(self.gone(read, "background"))
        eventually(lambda: self.gone(read, "background-child"), "the dependent to go")

    def test_dependents_go_before_their_owner_in_the_foreground(self):
        read = self.owned("foreground")
        self.core.delete_namespaced_config_map("foreground", self.namespace, propagation_policy="Foreground")
        eventually(lambda: self.gone(read, "foreground"), "the owner to go")
        self.assertTrue(self.gone(read, "foreground-child"))

    def test_dependents_stay_as_orphans(self):
        read = self.owned("orphaning")
        self.core.delete_namespaced_config_map("orphaning", self.namespace, propagation_policy="Orphan")
        eventually(lambda: self.gone(read, "orphaning"), "the owner to go")
        self.assertIsNone(self.read("orphaning-child").metadata.owner_references)

    def test_a_namespace_takes_everything_along(self):
        name = self.namespace + "-other"
        self.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
        self.core.create_namespaced_config_map(name, config_map("one"))
        self.core.create_namespaced_pod(name, pod("one"))
        self.core.delete_namespace(name)

        def gone():
            try:
                self.core.read_namespace(name)
            except ApiException as error:
                return error.status == 404
        eventually(gone, "the namespace to go")
        self.assertEqual(self.core.list_pod_for_all_namespaces(field_selector="metadata.namespace=" + name).items, [])


if __name__ == "__main__":
    cases.main()
