"""Watches, custom resources and discovery as the official Python client sees them.

usage: python_dynamic_test.py TRAINYARD [unittest arguments]     (KUBEBUILDER_ASSETS: also on the real server in there)
"""

import json
import threading

from kubernetes import client, dynamic, watch

import cases
from cases import also_on_a_real_server, eventually
from python_client import ApiException, PythonCase


@also_on_a_real_server
class Watches(PythonCase):
    def stream(self, count, resource_version=None, **kwargs):
        """So many events, as (type, name, data)."""
        events, watcher = [], watch.Watch()
        if resource_version is not None:
            kwargs["resource_version"] = resource_version
        for event in watcher.stream(self.core.list_namespaced_config_map, self.namespace, _request_timeout=30, **kwargs):
            events.append((event["type"], event["object"].metadata.name, event["object"].data or None))
            if len(events) == count:
                watcher.stop()
        return events

    def list_version(self):
        return self.core.list_namespaced_config_map(self.namespace).metadata.resource_version

    def change(self, name, **data):
        return self.core.patch_namespaced_config_map(name, self.namespace, {"data": data})

    def test_tell_everything_since_the_list(self):
        version = self.list_version()
        self.create("told", labels={"test": "told"}, a="1")
        self.change("told", a="2")
        self.core.delete_namespaced_config_map("told", self.namespace)
        expected = [("ADDED", "told", {"a": "1"}), ("MODIFIED", "told", {"a": "2"}), ("DELETED", "told", {"a": "2"})]
        self.assertEqual(self.stream(3, version, label_selector="test=told"), expected)

    def test_without_a_version_begin_with_what_is_there(self):
        self.create("there-1", labels={"test": "there"})
        self.create("there-2", labels={"test": "there"})
        events = self.stream(2, label_selector="test=there")
        self.assertEqual(sorted(events), [("ADDED", "there-1", None), ("ADDED", "there-2", None)])

    def test_resumed_at_any_event_tell_the_rest(self):
        start = self.list_version()
        versions = [self.create("resumed", labels={"test": "resumed"}, n="0").metadata.resource_version]
        versions += [self.change("resumed", n=str(i)).metadata.resource_version for i in range(1, 6)]
        whole = self.stream(6, start, label_selector="test=resumed")
        for i, version in enumerate(versions[:-1]):
            self.assertEqual(self.stream(5 - i, version, label_selector="test=resumed"), whole[i + 1:])

    def test_an_object_that_leaves_the_selection_is_told_as_deleted(self):
        version = self.list_version()
        self.create("leaves", labels={"test": "leaves"})
        self.core.patch_namespaced_config_map("leaves", self.namespace, {"metadata": {"labels": {"test": "left"}}})
        self.core.patch_namespaced_config_map("leaves", self.namespace, {"metadata": {"labels": {"test": "leaves"}}})
        types = [event[0] for event in self.stream(3, version, label_selector="test=leaves")]
        self.assertEqual(types, ["ADDED", "DELETED", "ADDED"])

    def test_one_object(self):
        version = self.list_version()
        self.create("not-me")
        self.create("only-me")
        self.assertEqual(self.stream(1, version, field_selector="metadata.name=only-me")[0][1], "only-me")

    def test_end_when_asked_to(self):
        self.assertEqual(self.stream(1, self.list_version(), timeout_seconds=1, label_selector="test=nothing"), [])

    def test_all_see_the_same_order(self):
        version = self.list_version()
        results = [None] * 8

        def follow(i):
            results[i] = self.stream(60, version, label_selector="test=order")
        followers = [threading.Thread(target=follow, args=(i,)) for i in range(len(results))]

        def write(writer):
            for i in range(20):
                self.create("order-%d-%d" % (writer, i), labels={"test": "order"})
        writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
        for thread in followers + writers:
            thread.start()
        for thread in followers + writers:
            thread.join()
        self.assertEqual(len({name for _, name, _ in results[0]}), 60)
        for result in results[1:]:
            self.assertEqual(result, results[0])


WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "spec": {
        "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "minimum": 0}, "color": {"type": "string", "default": "red"}}},
                "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}


@also_on_a_real_server
class CustomObjects(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.group = cls.namespace + ".example.com"
        definition = {**WIDGETS, "metadata": {"name": "widgets." + cls.group},
                      "spec": {**WIDGETS["spec"], "group": cls.group}}
        cls.definitions = client.ApiextensionsV1Api(cls.api)
        cls.definitions.create_custom_resource_definition(definition)

        def established():
            conditions = cls.definitions.read_custom_resource_definition("widgets." + cls.group).status.conditions
            return any(c.type == "Established" and c.status == "True" for c in conditions or [])
        eventually(established, "the definition to be established")
        cls.custom = client.CustomObjectsApi(cls.api)
        cls.where = (cls.group, "v1", cls.namespace, "widgets")
        eventually(lambda: cls.served(), "the resource to be served")

    @classmethod
    def served(cls):
        try:
            return cls.custom.list_namespaced_custom_object(*cls.where)
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    def widget(self, name, **spec):
        return {"apiVersion": self.group + "/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}

    def test_live_like_others(self):
        made = self.custom.create_namespaced_custom_object(*self.where, self.widget("life", size=1))
        self.assertEqual((made["spec"], made["metadata"]["generation"]), ({"size": 1, "color": "red"}, 1))
        patched = self.custom.patch_namespaced_custom_object(*self.where, "life", {"spec": {"color": None, "size": 2}})
        self.assertEqual((patched["spec"], patched["metadata"]["generation"]), ({"size": 2, "color": "red"}, 2))
        made["spec"]["size"] = 3
        self.fails(409, "Conflict", self.custom.replace_namespaced_custom_object, *self.where, "life", made)
        patched["spec"]["size"] = 3
        self.custom.replace_namespaced_custom_object(*self.where, "life", patched)
        names = [w["metadata"]["name"] for w in self.custom.list_cluster_custom_object(self.group, "v1", "widgets")["items"]]
        self.assertIn("life", names)
        self.custom.delete_namespaced_custom_object(*self.where, "life")
        self.fails(404, "NotFound", self.custom.get_namespaced_custom_object, *self.where, "life")

    def test_are_validated(self):
        status = self.fails(422, "Invalid", self.custom.create_namespaced_custom_object, *self.where, self.widget("bad", size=-1))
        self.assertIn("spec.size", [cause["field"] for cause in status["details"]["causes"]])
        status = self.fails(422, "Invalid", self.custom.create_namespaced_custom_object, *self.where, self.widget("bad", color="red"))
        self.assertEqual([cause["reason"] for cause in status["details"]["causes"]], ["FieldValueRequired"])

    def test_have_status_and_scale(self):
        self.custom.create_namespaced_custom_object(*self.where, {**self.widget("scaled", size=1), "status": {"size": 9}})
        self.assertNotIn("status", self.custom.get_namespaced_custom_object(*self.where, "scaled"))
        self.custom.patch_namespaced_custom_object_status(*self.where, "scaled", {"status": {"size": 1}, "spec": {"size": 9}})
        self.custom.patch_namespaced_custom_object_scale(*self.where, "scaled", {"spec": {"replicas": 4}})
        scale = self.custom.get_namespaced_custom_object_scale(*self.where, "scaled")
        self.assertEqual((scale["kind"], scale["spec"]["replicas"], scale["status"]["replicas"]), ("Scale", 4, 1))
        self.assertEqual(self.custom.get_namespaced_custom_object(*self.where, "scaled")["spec"]["size"], 4)

    def test_are_watched(self):
        version = self.custom.list_namespaced_custom_object(*self.where)["metadata"]["resourceVersion"]
        self.custom.create_namespaced_custom_object(*self.where, self.widget("watched", size=1))
        self.custom.delete_namespaced_custom_object(*self.where, "watched")
        events, watcher = [], watch.Watch()
        for event in watcher.stream(self.custom.list_namespaced_custom_object, *self.where, resource_version=version,
                                    field_selector="metadata.name=watched", _request_timeout=30):
            events.append((event["type"], event["object"]["metadata"]["name"]))
            if len(events) == 2:
                watcher.stop()
        self.assertEqual(events, [("ADDED", "watched"), ("DELETED", "watched")])

    def test_definitions_that_make_no_sense_are_refused(self):
        broken = json.loads(json.dumps({**WIDGETS, "metadata": {"name": "others." + self.group}}))
        broken["spec"]["group"] = self.group
        status = self.fails(422, "Invalid", self.definitions.create_custom_resource_definition, broken)
        self.assertIn("metadata.name", [cause["field"] for cause in status["details"]["causes"]])


@also_on_a_real_server
class Dynamic(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dynamic = dynamic.DynamicClient(cls.api)
        cls.maps = cls.dynamic.resources.get(api_version="v1", kind="ConfigMap")

    def body(self, name, **data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

    def test_finds_resources_by_what_they_are(self):
        self.assertEqual((self.maps.name, self.maps.namespaced), ("configmaps", True))
        self.assertEqual(self.dynamic.resources.get(api_version="coordination.k8s.io/v1", kind="Lease").name, "leases")
        self.assertEqual(self.dynamic.resources.get(kind="CustomResourceDefinition").group, "apiextensions.k8s.io")
        with self.assertRaises(dynamic.exceptions.ResourceNotFoundError):
            self.dynamic.resources.get(api_version="v1", kind="NoSuchKind")

    def test_finds_kinds_that_come_later(self):
        group = "later-" + self.namespace + ".example.com"
        definitions = self.dynamic.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        definitions.create(body={**WIDGETS, "metadata": {"name": "widgets." + group}, "spec": {**WIDGETS["spec"], "group": group}})

        def found():
            try:
                self.dynamic.resources.invalidate_cache()
                return self.dynamic.resources.get(api_version=group + "/v1", kind="Widget")
            except dynamic.exceptions.ResourceNotFoundError:
                return None
        widgets = eventually(found, "the new kind")
        made = widgets.create(namespace=self.namespace, body={"apiVersion": group + "/v1", "kind": "Widget",
                                                              "metadata": {"name": "one"}, "spec": {"size": 1}})
        self.assertEqual(made.spec.color, "red")
        definitions.delete(name="widgets." + group)

    def test_objects_live(self):
        self.maps.create(body=self.body("life", a="1"), namespace=self.namespace)
        self.maps.patch(body={"metadata": {"name": "life"}, "data": {"b": "2"}}, namespace=self.namespace,
                        content_type="application/merge-patch+json")
        got = self.maps.get(name="life", namespace=self.namespace)
        self.assertEqual(dict(got.data), {"a": "1", "b": "2"})
        self.assertIn("life", [item.metadata.name for item in self.maps.get(namespace=self.namespace).items])
        self.maps.delete(name="life", namespace=self.namespace)
        with self.assertRaises(dynamic.exceptions.NotFoundError) as raised:
            self.maps.get(name="life", namespace=self.namespace)
        self.assert_status(raised.exception.body, 404, "NotFound")

    def test_server_side_apply_knows_whose_field_is_whose(self):
        def apply(manager, **kwargs):
            force = {"force_conflicts": True} if kwargs.pop("force", False) else {}
            # As text: this client knows no way from an object to YAML.
            return self.maps.server_side_apply(body=json.dumps(self.body("ssa", **kwargs)), name="ssa", namespace=self.namespace,
                                               field_manager=manager, **force)
        apply("one", a="1", b="1")
        with self.assertRaises(dynamic.exceptions.ConflictError) as raised:
            apply("two", a="2")
        status = self.assert_status(raised.exception.body, 409, "Conflict")
        self.assertEqual([(cause["reason"], cause["field"]) for cause in status["details"]["causes"]],
                         [("FieldManagerConflict", ".data.a")])
        apply("two", a="2", force=True)
        self.assertEqual(dict(apply("one").data), {"a": "2"}, "one's b has gone with one's last word, two's a has not")

    def test_watches(self):
        version = self.maps.get(namespace=self.namespace).metadata.resourceVersion
        self.maps.create(body=self.body("seen"), namespace=self.namespace)
        for event in self.maps.watch(namespace=self.namespace, field_selector="metadata.name=seen", resource_version=version,
                                     timeout=300):
            self.assertEqual((event["type"], event["object"].metadata.name), ("ADDED", "seen"))
            break


if __name__ == "__main__":
    cases.main()
