#include "apiserver/schema/kind_table.h"

#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ErrorOf(std::string_view text) {
  const auto table = KindTable::Parse({{"a.kinds", text}});
  return table.ok() ? "" : std::string(table.status().message());
}

TEST(KindTable, ReadsAllThatALineSays) {
  const auto table = KindTable::Parse({{"a.kinds", R"(# a comment
package p.q
group g.example v2
kind Thing plural=things short=th,tg category=all scope=cluster "A thing."
  "Of any kind."
  list []Part! @id,side "Parts."   # another
  names []string set in a|b
  sizes {}quantity atomic
  mode  string in X|Y := "X" "Mode."
  level int32 >= 0 <= 9 = 3
  code  string /^[a-z]+$/
  more  object
  self  Thing
type Part atomic "A part."
  id string!
  side string = "left"
type Special like Part keep
  extra bool nullable
)"}});
  ASSERT_TRUE(table.ok()) << table.status();
  const KindInfo* thing = table->Find("g.example", "v2", "Thing");
  ASSERT_NE(thing, nullptr);
  EXPECT_EQ(thing->ApiVersion(), "g.example/v2");
  EXPECT_EQ(thing->plural, "things");
  EXPECT_EQ(thing->singular, "thing");
  EXPECT_THAT(thing->short_names, ElementsAre("th", "tg"));
  EXPECT_THAT(thing->categories, ElementsAre("all"));
  EXPECT_FALSE(thing->namespaced);
  const Schema& schema = *thing->schema;
  EXPECT_EQ(schema.name, "p.q.Thing");
  EXPECT_EQ(schema.description, "A thing. Of any kind.");
  EXPECT_THAT(schema.required, ElementsAre("list"));
  const Schema& list = *schema.properties.at("list");
  EXPECT_EQ(list.list_type, ListType::kMap);
  EXPECT_THAT(list.list_keys, ElementsAre("id", "side"));
  EXPECT_EQ(list.merge_key, "id");
  EXPECT_FALSE(list.unique_keys);
  EXPECT_TRUE(list.items->atomic_map);
  EXPECT_EQ(list.items, table->FindType("Part"));
  const Schema& names = *schema.properties.at("names");
  EXPECT_EQ(names.list_type, ListType::kSet);
  EXPECT_TRUE(names.merge_primitives);
  EXPECT_EQ(names.items->one_of_values.size(), 2U);
  EXPECT_TRUE(schema.properties.at("sizes")->atomic_map);
  EXPECT_EQ(schema.properties.at("sizes")->additional->format, "quantity");
  EXPECT_TRUE(schema.properties.at("mode")->zero_is_missing);
  EXPECT_EQ(schema.properties.at("level")->maximum, 9);
  EXPECT_NE(schema.properties.at("code")->regex, nullptr);
  EXPECT_TRUE(schema.properties.at("more")->preserve_unknown);
  EXPECT_TRUE(schema.properties.at("self")->recursive);
  const SchemaPtr special = table->FindType("p.q.Special");
  EXPECT_TRUE(special->preserve_unknown);
  EXPECT_TRUE(special->properties.at("extra")->nullable);
  EXPECT_THAT(special->required, ElementsAre("id"));
}

TEST(KindTable, SaysInWhichLineAFileIsBroken) {
  struct Case {
    std::string_view text;
    std::string_view error;
  };
  const Case cases[] = {
      {"package p\ntype A\n  b Missing\n", "a.kinds:3: there is no type 'Missing'"},
      {"package p\ntype A\n  b string wrong\n", "a.kinds:3: 'wrong' is no attribute of a field"},
      {"package p\ntype A\n  b\n", "a.kinds:3: field 'b' has no type"},
      {"package p\ntype A\n  b string\n  b string\n", "a.kinds:4: field 'b' stands there twice"},
      {"package p\ntype A\n  b string = [\n", "a.kinds:3: '[' is not valid JSON"},
      {"package p\ntype A\n  b int32 = \"x\"\n", "a.kinds:3: field 'b': the default does not validate"},
      {"package p\ntype A\n  b string @k\n", "a.kinds:3: field 'b': only a list has keys"},
      {"package p\ntype A\n  b []A @k\n", "a.kinds:3: field 'b': its items have no field 'k'"},
      {"package p\ntype A\n  b string /(/\n", "a.kinds:3: the pattern is no valid regular expression"},
      {"package p\ntype A\n  b string \"text\" more\n", "a.kinds:3: 'more' stands behind the description"},
      {"package p\ntype A\n\tb string\n", "a.kinds:3: has a tab"},
      {"package p\ntype A huge\n", "a.kinds:2: 'huge' is no attribute of a type"},
      {"package p\ntype A\ntype A\n", "'p.A' is described a second time"},
      {"package p\nkind A\n", "a.kinds:2: a kind needs a 'group'"},
      {"type A\n", "a.kinds:1: a type needs a name and a package"},
      {"  a string\n", "a.kinds:1: a field stands before any type"},
      {"\"text\"\n", "a.kinds:1: describes nothing"},
      {"typo A\n", "a.kinds:1: 'typo' is none of package, group, type and kind"},
      {"package p\ntype A\npackage q\ntype A\npackage r\ntype B\n  a A\n",
       "a.kinds:7: more than one package has a type 'A'"},
  };
  for (const Case& each : cases) EXPECT_THAT(ErrorOf(each.text), HasSubstr(each.error)) << each.text;
}

TEST(BuiltInKinds, HasTheKindsThatTheServerServes) {
  const KindTable& table = BuiltInKinds();
  struct Case {
    std::string_view group, version, kind, plural;
    bool namespaced;
  };
  const Case cases[] = {
      {"", "v1", "Pod", "pods", true},
      {"", "v1", "Namespace", "namespaces", false},
      {"", "v1", "Service", "services", true},
      {"", "v1", "Endpoints", "endpoints", true},
      {"", "v1", "Event", "events", true},
      {"", "v1", "Node", "nodes", false},
      {"", "v1", "ConfigMap", "configmaps", true},
      {"", "v1", "Secret", "secrets", true},
      {"", "v1", "ServiceAccount", "serviceaccounts", true},
      {"coordination.k8s.io", "v1", "Lease", "leases", true},
      {"scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", true},
      {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false},
      {"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false},
      {"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false},
      {"", "v1", "Status", "", true},
      {"", "v1", "DeleteOptions", "", true},
      {"", "v1", "Binding", "", true},
      {"policy", "v1", "Eviction", "", true},
      {"autoscaling", "v1", "Scale", "", true},
  };
  for (const Case& each : cases) {
    const KindInfo* found = table.Find(each.group, each.version, each.kind);
    ASSERT_NE(found, nullptr) << each.kind;
    EXPECT_EQ(found->plural, each.plural);
    EXPECT_EQ(found->namespaced, each.namespaced);
  }
  EXPECT_EQ(table.Find("", "v2", "Pod"), nullptr);
  EXPECT_NE(table.FindType("PodTemplateSpec"), nullptr);
  EXPECT_EQ(table.FindType("NoSuchType"), nullptr);
}

TEST(BuiltInKinds, SayHowListsAreMerged) {
  const Schema& pod = *BuiltInKinds().Find("", "v1", "Pod")->schema;
  const auto at = [&](const std::vector<std::string>& path) -> const Schema& {
    return *FindSchema(pod, path);
  };
  EXPECT_EQ(at({"spec", "containers"}).merge_key, "name");
  EXPECT_EQ(at({"spec", "containers", "ports"}).merge_key, "containerPort");
  EXPECT_THAT(at({"spec", "containers", "ports"}).list_keys, ElementsAre("containerPort", "protocol"));
  EXPECT_EQ(at({"spec", "containers", "env"}).merge_key, "name");
  EXPECT_EQ(at({"spec", "containers", "command"}).merge_key, "");
  EXPECT_EQ(at({"spec", "containers", "command"}).list_type, ListType::kAtomic);
  EXPECT_TRUE(at({"spec", "volumes"}).retain_keys);
  EXPECT_TRUE(at({"metadata", "finalizers"}).merge_primitives);
  EXPECT_EQ(at({"metadata", "finalizers"}).list_type, ListType::kSet);
  EXPECT_EQ(at({"metadata", "ownerReferences"}).merge_key, "uid");
  EXPECT_EQ(at({"spec", "containers", "resources", "claims"}).merge_key, "");
  EXPECT_EQ(at({"spec", "containers", "resources", "claims"}).list_type, ListType::kMap);
  EXPECT_TRUE(at({"spec", "nodeSelector"}).atomic_map);
}

TEST(BuiltInKinds, DescribeEveryTypeAndField) {
  for (const auto& [name, schema] : BuiltInKinds().types()) {
    EXPECT_FALSE(schema->description.empty()) << name;
    for (const auto& [key, field] : schema->properties)
      EXPECT_FALSE(field->description.empty()) << name << "." << key;
  }
}

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":null},
    "spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
    "ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"web"},"periodSeconds":0},
    "resources":{"limits":{"cpu":1,"memory":"1Gi"}}}],"dnsPolicy":"",
    "volumes":[{"name":"v","configMap":{"name":"m"}},{"name":"w","rbd":{"anything":1}}]},"status":{}})";

TEST(BuiltInKinds, FillAPodWithItsDefaults) {
  const Schema& schema = *BuiltInKinds().Find("", "v1", "Pod")->schema;
  Document pod = Json(kPod);
  EXPECT_THAT(Prune(schema, pod), IsEmpty());
  EXPECT_TRUE(ApplyDefaults(schema, pod));
  EXPECT_THAT(Validate(schema, pod), IsEmpty());
  const Document expected = Json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
    "spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name","apiVersion":"v1"}}}],
      "ports":[{"containerPort":80,"protocol":"TCP"}],
      "livenessProbe":{"httpGet":{"port":"web","path":"/","scheme":"HTTP"},"periodSeconds":10,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3},
      "resources":{"limits":{"cpu":1,"memory":"1Gi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],
    "dnsPolicy":"ClusterFirst","restartPolicy":"Always","terminationGracePeriodSeconds":30,"securityContext":{},
    "schedulerName":"default-scheduler","enableServiceLinks":true,
    "volumes":[{"name":"v","configMap":{"name":"m","defaultMode":420}},{"name":"w","rbd":{"anything":1}}]},"status":{}})");
  EXPECT_EQ(pod, expected) << PrintJson(pod);
  Document again = pod;
  EXPECT_TRUE(ApplyDefaults(schema, again));
  EXPECT_EQ(again, pod);
  EXPECT_THAT(Prune(schema, again), IsEmpty());
}

TEST(BuiltInKinds, RefuseWhatIsWrongWithAPod) {
  const Schema& schema = *BuiltInKinds().Find("", "v1", "Pod")->schema;
  Document pod = Json(
      R"({"spec":{"containers":[{"nam":"c","resources":{"limits":{"cpu":"lots"}},"ports":[{"containerPort":"x"}]}],
                          "restartPolicy":"Sometimes"}})");
  EXPECT_THAT(Prune(schema, pod), ElementsAre("spec.containers[0].nam"));
  EXPECT_TRUE(ApplyDefaults(schema, pod));
  std::vector<std::string> fields;
  for (const kube::Cause& cause : Validate(schema, pod)) fields.push_back(cause.reason + " " + cause.field);
  EXPECT_THAT(fields, ElementsAre("FieldValueInvalid spec.containers[0].resources.limits.cpu",
                                  "FieldValueTypeInvalid spec.containers[0].ports[0].containerPort",
                                  "FieldValueRequired spec.containers[0].name",
                                  "FieldValueNotSupported spec.restartPolicy"));
}

}  // namespace
}  // namespace trainyard::apiserver
