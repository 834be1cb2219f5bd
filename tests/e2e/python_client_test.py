"""The embedded cluster's objects as the official Python client sees them.

usage: python_client_test.py TRAINYARD [unittest arguments]     (KUBEBUILDER_ASSETS: also on the real server in there)
"""

import json
import os
import subprocess
import tempfile
import threading

from kubernetes import client, utils

import cases
from cases import also_on_a_real_server
from python_client import NOBODY, ApiException, PythonCase, certificate, config_map, connect_with, pod


@also_on_a_real_server
class Objects(PythonCase):
    def test_are_created_read_replaced_and_deleted(self):
        made = self.create("life", a="1")
        self.assertEqual((made.kind, made.api_version, made.data), ("ConfigMap", "v1", {"a": "1"}))
        self.assertTrue(made.metadata.uid and made.metadata.resource_version and made.metadata.creation_timestamp)
        made.data = {"b": "2"}
        replaced = self.core.replace_namespaced_config_map("life", self.namespace, made)
        self.assertEqual(replaced.metadata.uid, made.metadata.uid)
        self.assertNotEqual(replaced.metadata.resource_version, made.metadata.resource_version)
        self.assertEqual(self.read("life").data, {"b": "2"})
        self.assertEqual(self.core.delete_namespaced_config_map("life", self.namespace).status, "Success")
        status = self.fails(404, "NotFound", self.core.read_namespaced_config_map, "life", self.namespace)
        self.assertEqual((status["details"]["name"], status["details"]["kind"]), ("life", "configmaps"))

    def test_that_are_there_already_or_have_changed_since_are_conflicts(self):
        old = self.create("stale", a="1")
        self.fails(409, "AlreadyExists", self.create, "stale", a="2")
        self.core.patch_namespaced_config_map("stale", self.namespace, {"data": {"a": "2"}})
        old.data = {"a": "3"}
        status = self.fails(409, "Conflict", self.core.replace_namespaced_config_map, "stale", self.namespace, old)
        self.assertIn("the object has been modified", status["message"])
        self.assertEqual(self.read("stale").data, {"a": "2"})

    def test_with_wrong_values_are_refused_field_by_field(self):
        status = self.fails(422, "Invalid", self.create, "Not_A_Name")
        self.assertEqual([cause["field"] for cause in status["details"]["causes"]], ["metadata.name"])
        wrong = pod("wrong")
        wrong.spec.containers[0].name = "Not_A_Name"
        wrong.spec.restart_policy = "Sometimes"
        status = self.fails(422, "Invalid", self.core.create_namespaced_pod, self.namespace, wrong)
        fields = {cause["field"]: cause["reason"] for cause in status["details"]["causes"]}
        self.assertEqual(fields, {"spec.containers[0].name": "FieldValueInvalid", "spec.restartPolicy": "FieldValueNotSupported"})

    def test_patch_of_each_type(self):
        self.create("patched", a="1", b="1")
        patch = self.core.patch_namespaced_config_map
        patch("patched", self.namespace, [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}])
        patch("patched", self.namespace, {"data": {"c": "3"}})  # strategic: the client's choice for an object
        merge = self.patching("application/merge-patch+json").patch_namespaced_config_map
        merge("patched", self.namespace, {"data": {"b": None, "d": "4"}})
        apply = self.patching("application/apply-patch+yaml").patch_namespaced_config_map
        # As text: this client knows no way from an object to YAML.
        applied = apply("patched", self.namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: patched}, data: {e: '5'}}",
                        field_manager="tests")
        self.assertEqual(applied.data, {"c": "3", "d": "4", "e": "5"})
        self.assertIn(("tests", "Apply"), [(m.manager, m.operation) for m in applied.metadata.managed_fields])
        self.fails(422, "Invalid", patch, "patched", self.namespace, [{"op": "test", "path": "/data/c", "value": "no"}])

    def test_strategic_patch_merges_lists_by_their_keys_and_merge_patch_replaces_them(self):
        two = pod("two", **NOBODY)
        two.spec.containers.append(client.V1Container(name="side", image="none"))
        self.core.create_namespaced_pod(self.namespace, two)
        change = {"spec": {"containers": [{"name": "side", "image": "other"}]}}
        changed = self.core.patch_namespaced_pod("two", self.namespace, change)
        self.assertEqual({c.name: c.image for c in changed.spec.containers}, {"main": "none", "side": "other"})
        merge = self.patching("application/merge-patch+json").patch_namespaced_pod
        self.fails(422, "Invalid", merge, "two", self.namespace, change)  # a pod's containers stay as many

    def test_names_are_made_up_on_demand(self):
        names = set()
        for _ in range(3):
            made = self.core.create_namespaced_config_map(
                self.namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="made-up-")))
            self.assertRegex(made.metadata.name, r"^made-up-[a-z0-9]{5}$")
            names.add(made.metadata.name)
        self.assertEqual(len(names), 3)

    def test_dry_run_changes_nothing(self):
        made = self.core.create_namespaced_config_map(self.namespace, config_map("dry"), dry_run="All")
        self.assertTrue(made.metadata.uid)
        self.fails(404, "NotFound", self.core.read_namespaced_config_map, "dry", self.namespace)

    def test_lists_come_in_pages_of_one_moment(self):
        for i in range(7):
            self.create("page-%d" % i, labels={"app": "pages"})
        first = self.core.list_namespaced_config_map(self.namespace, label_selector="app=pages", limit=3)
        self.create("page-0-later", labels={"app": "pages"})
        self.core.delete_namespaced_config_map("page-6", self.namespace)
        names, page, versions = [], first, []
        while True:
            names += [item.metadata.name for item in page.items]
            versions.append(page.metadata.resource_version)
            if not page.metadata._continue:
                break
            page = self.core.list_namespaced_config_map(self.namespace, label_selector="app=pages", limit=3,
                                                        _continue=page.metadata._continue)
        self.assertEqual(names, ["page-%d" % i for i in range(7)])
        self.assertEqual(len(set(versions)), 1)
        self.assertEqual(len(versions), 3)
        self.fails(400, "BadRequest", self.core.list_namespaced_config_map, self.namespace, _continue="nonsense")

    def test_selectors(self):
        for name, color, size in (("sel-a", "red", "1"), ("sel-b", "blue", "1"), ("sel-c", "red", "2")):
            self.create(name, labels={"color": color, "size": size, "test": "selectors"})

        def select(**kwargs):
            return [item.metadata.name for item in self.core.list_namespaced_config_map(self.namespace, **kwargs).items]
        self.assertEqual(select(label_selector="color=red,test"), ["sel-a", "sel-c"])
        self.assertEqual(select(label_selector="test,color!=red"), ["sel-b"])
        self.assertEqual(select(label_selector="test in (selectors),size notin (2, 3)"), ["sel-a", "sel-b"])
        self.assertEqual(select(label_selector="test,!color"), [])
        self.assertEqual(select(field_selector="metadata.name=sel-b"), ["sel-b"])
        self.fails(400, "BadRequest", select, label_selector="a in b in c")
        self.fails(400, "BadRequest", select, field_selector="data.color=red")

    def test_pods_are_selected_by_node_and_phase(self):
        self.core.create_namespaced_pod(self.namespace, pod("placed", node_name="no-such-node", labels={"app": "fields"}))
        self.core.create_namespaced_pod(self.namespace, pod("unplaced", labels={"app": "fields"}, **NOBODY))

        def select(field_selector):
            return [item.metadata.name for item in self.core.list_namespaced_pod(
                self.namespace, label_selector="app=fields", field_selector=field_selector).items]
        self.assertEqual(select("spec.nodeName=no-such-node"), ["placed"])
        self.assertEqual(select("spec.nodeName="), ["unplaced"])
        self.assertEqual(select("status.phase=Pending,spec.schedulerName=nobody"), ["unplaced"])
        self.assertEqual(select("status.phase!=Pending"), [])

    def test_all_that_a_selector_matches_are_deleted_together(self):
        for i in range(3):
            self.create("many-%d" % i, labels={"app": "many" if i else "other"})
        self.core.delete_collection_namespaced_config_map(self.namespace, label_selector="app=many")
        left = self.core.list_namespaced_config_map(self.namespace, label_selector="app in (many, other)").items
        self.assertEqual([item.metadata.name for item in left], ["many-0"])

    def test_deletion_has_preconditions(self):
        made = self.create("guarded")
        for wrong in (client.V1Preconditions(uid="1"), client.V1Preconditions(resource_version="1")):
            self.fails(409, "Conflict", self.core.delete_namespaced_config_map, "guarded", self.namespace,
                       body=client.V1DeleteOptions(preconditions=wrong))
        right = client.V1Preconditions(uid=made.metadata.uid, resource_version=made.metadata.resource_version)
        self.core.delete_namespaced_config_map("guarded", self.namespace, body=client.V1DeleteOptions(preconditions=right))
        self.fails(404, "NotFound", self.core.read_namespaced_config_map, "guarded", self.namespace)

    def test_deletion_waits_for_the_finalizers(self):
        self.create("held", finalizers=["example.com/hold"])
        self.core.delete_namespaced_config_map("held", self.namespace)
        held = self.read("held")
        self.assertTrue(held.metadata.deletion_timestamp)
        held.data = {"still": "writable"}
        held.metadata.finalizers = None
        self.core.replace_namespaced_config_map("held", self.namespace, held)
        self.fails(404, "NotFound", self.core.read_namespaced_config_map, "held", self.namespace)

    def test_deletion_says_what_becomes_of_dependents(self):
        for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
            name = policy.lower()
            self.create(name, finalizers=["example.com/hold"])
            self.core.delete_namespaced_config_map(name, self.namespace, propagation_policy=policy)
            self.assertTrue(self.read(name).metadata.deletion_timestamp)
            if not self.cluster.runs_pods:  # nobody takes it away again
                self.assertIn(finalizer, self.read(name).metadata.finalizers)
        self.fails(422, "Invalid", self.core.delete_namespaced_config_map, "orphan", self.namespace, propagation_policy="Perhaps")

    def test_namespaces_must_be_there(self):
        self.fails(404, "NotFound", self.core.create_namespaced_config_map, "no-such-namespace", config_map("lost"))
        self.fails(422, "Invalid", self.core.create_namespace,
                   client.V1Namespace(metadata=client.V1ObjectMeta(name="not.a.name")))

    def test_other_kinds(self):
        secret = self.core.create_namespaced_secret(self.namespace, client.V1Secret(
            metadata=client.V1ObjectMeta(name="secret"), string_data={"a": "1"}))
        self.assertEqual((secret.data, secret.type), ({"a": "MQ=="}, "Opaque"))
        service = self.core.create_namespaced_service(self.namespace, client.V1Service(
            metadata=client.V1ObjectMeta(name="service"), spec=client.V1ServiceSpec(
                selector={"app": "x"}, ports=[client.V1ServicePort(port=80)])))
        self.assertEqual((service.spec.type, service.spec.ports[0].protocol, service.spec.ports[0].target_port),
                         ("ClusterIP", "TCP", 80))
        self.assertTrue(service.spec.cluster_ip)
        event = self.core.create_namespaced_event(self.namespace, client.CoreV1Event(
            metadata=client.V1ObjectMeta(generate_name="event-"), reason="Tested", message="by the tests", type="Normal",
            involved_object=client.V1ObjectReference(kind="Pod", name="x", namespace=self.namespace)))
        listed = self.core.list_namespaced_event(self.namespace, field_selector="reason=Tested,involvedObject.name=x").items
        self.assertEqual([item.metadata.name for item in listed], [event.metadata.name])
        node = self.core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name=self.namespace)))
        self.addCleanup(self.core.delete_node, node.metadata.name)
        self.core.patch_node(node.metadata.name, {"spec": {"unschedulable": True}})
        self.assertTrue(self.core.read_node(node.metadata.name).spec.unschedulable)

    def test_of_two_who_want_a_lease_one_gets_it(self):
        leases = client.CoordinationV1Api(self.api)
        lease = leases.create_namespaced_lease(self.namespace, client.V1Lease(
            metadata=client.V1ObjectMeta(name="leader"), spec=client.V1LeaseSpec(lease_duration_seconds=15)))
        results = []

        def want(name):
            mine = client.V1Lease(metadata=lease.metadata, spec=client.V1LeaseSpec(holder_identity=name, lease_duration_seconds=15))
            try:
                leases.replace_namespaced_lease("leader", self.namespace, mine)
                results.append(name)
            except ApiException as error:
                results.append(error.status)
        threads = [threading.Thread(target=want, args=("candidate-%d" % i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [result for result in results if result != 409]
        self.assertEqual((len(winners), len(results)), (1, 4), results)
        self.assertEqual(leases.read_namespaced_lease("leader", self.namespace).spec.holder_identity, winners[0])

    def test_status_is_written_apart_from_the_rest(self):
        self.core.create_namespaced_pod(self.namespace, pod("apart", **NOBODY))
        self.core.patch_namespaced_pod_status("apart", self.namespace, {
            "metadata": {"labels": {"by": "status"}}, "status": {"phase": "Running", "podIP": "127.0.0.9"},
            "spec": {"nodeName": "ignored"}})
        written = self.core.read_namespaced_pod("apart", self.namespace)
        self.assertEqual((written.status.phase, written.status.pod_ip, written.spec.node_name), ("Running", "127.0.0.9", None))
        self.core.patch_namespaced_pod("apart", self.namespace, {"status": {"phase": "Failed"}})
        self.assertEqual(self.core.read_namespaced_pod("apart", self.namespace).status.phase, "Running")

    def test_a_pod_is_bound_once(self):
        self.core.create_namespaced_pod(self.namespace, pod("bound", **NOBODY))
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name="bound"),
                                   target=client.V1ObjectReference(kind="Node", name="no-such-node"))
        self.core.create_namespaced_pod_binding("bound", self.namespace, binding, _preload_content=False)
        bound = self.core.read_namespaced_pod("bound", self.namespace)
        self.assertEqual(bound.spec.node_name, "no-such-node")
        self.assertEqual([(c.type, c.status) for c in bound.status.conditions], [("PodScheduled", "True")])
        self.fails(409, "Conflict", self.core.create_namespaced_pod_binding, "bound", self.namespace, binding)

    def test_a_pod_that_was_never_placed_is_deleted_at_once(self):
        self.core.create_namespaced_pod(self.namespace, pod("fresh", **NOBODY))
        self.core.delete_namespaced_pod("fresh", self.namespace)
        self.fails(404, "NotFound", self.core.read_namespaced_pod, "fresh", self.namespace)

    def test_eviction_is_deletion(self):
        self.core.create_namespaced_pod(self.namespace, pod("evicted", **NOBODY))
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="evicted", namespace=self.namespace))
        self.core.create_namespaced_pod_eviction("evicted", self.namespace, eviction)
        self.fails(404, "NotFound", self.core.read_namespaced_pod, "evicted", self.namespace)

    def test_versions_and_discovery(self):
        self.assertRegex(client.VersionApi(self.api).get_code().git_version, r"^v\d+\.\d+")
        self.assertEqual(client.CoreApi(self.api).get_api_versions().versions, ["v1"])
        groups = {group.name for group in client.ApisApi(self.api).get_api_versions().groups}
        self.assertLessEqual({"apiextensions.k8s.io", "coordination.k8s.io"}, groups)
        resources = {r.name: r for r in self.core.get_api_resources().resources}
        self.assertEqual((resources["pods"].kind, resources["pods"].namespaced, resources["nodes"].namespaced), ("Pod", True, False))
        self.assertIn("watch", resources["configmaps"].verbs)
        self.assertIn("pods/log", resources)

    def test_who_may_do_what(self):
        review = client.AuthorizationV1Api(self.api).create_self_subject_access_review(client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(
                verb="create", resource="pods", namespace=self.namespace))))
        self.assertTrue(review.status.allowed)

    def test_created_from_a_file_of_several(self):
        objects = [config_map("from-yaml", a="1"), pod("from-yaml", **NOBODY),
                   client.V1Service(metadata=client.V1ObjectMeta(name="from-yaml"),
                                    spec=client.V1ServiceSpec(cluster_ip="None", selector={"app": "x"}))]
        objects[0].api_version, objects[0].kind = "v1", "ConfigMap"
        objects[1].api_version, objects[1].kind = "v1", "Pod"
        objects[2].api_version, objects[2].kind = "v1", "Service"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("---\n".join(json.dumps(self.api.sanitize_for_serialization(o)) + "\n" for o in objects))
            file.flush()
            utils.create_from_yaml(self.api, file.name, namespace=self.namespace)
            with self.assertRaises(utils.FailToCreateError) as raised:
                utils.create_from_yaml(self.api, file.name, namespace=self.namespace)
        self.assertEqual([error.status for error in raised.exception.api_exceptions], [409, 409, 409])
        self.assertEqual(self.core.read_namespaced_service("from-yaml", self.namespace).spec.cluster_ip, "None")


@also_on_a_real_server
class Access(PythonCase):
    def user(self, **user):
        access = self.cluster.access()
        api = connect_with(access["server"], access["ca"], **user)
        self.addCleanup(api.close)
        return client.CoreV1Api(api)

    def test_with_the_token_alone(self):
        self.user(token=self.cluster.access()["token"]).list_namespace()

    def test_with_the_certificate_alone(self):
        access = self.cluster.access()
        self.user(**certificate(access["certificate"], access["key"])).list_namespace()

    def test_with_a_wrong_token(self):
        self.fails(401, "Unauthorized", self.user(token=self.cluster.access()["token"][:-1] + "x").list_namespace)

    def test_with_nothing(self):
        self.fails(401, "Unauthorized", self.user().list_namespace)

    def test_with_a_certificate_of_another_authority(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-days", "2",
                            "-subj", "/O=system:masters/CN=trainyard-admin"], cwd=folder, check=True, capture_output=True)
            with open(os.path.join(folder, "crt"), "rb") as crt, open(os.path.join(folder, "key"), "rb") as key:
                stranger = self.user(**certificate(crt.read(), key.read()))
            # Refused with an answer, or before there can be one.
            with self.assertRaises((ApiException, Exception)) as raised:
                stranger.list_namespace()
        if isinstance(raised.exception, ApiException) and raised.exception.status:
            self.assertEqual(raised.exception.status, 401)
        else:
            self.assertIn("SSL", str(raised.exception).upper())

    def test_to_a_server_that_somebody_else_vouches_for(self):
        access = self.cluster.access()
        api = connect_with(access["server"], access["certificate"], token=access["token"])
        self.addCleanup(api.close)
        with self.assertRaises(Exception) as raised:
            client.CoreV1Api(api).list_namespace()
        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(raised.exception))


if __name__ == "__main__":
    cases.main()
