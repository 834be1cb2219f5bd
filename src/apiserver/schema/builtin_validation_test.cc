#include "apiserver/schema/builtin_validation.h"

#include "apiserver/schema/computed_defaults.h"
#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const KindInfo& KindNamed(std::string_view name) {
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    if (kind.kind == name) return kind;
  }
  TY_CHECK(false, "there is no such kind");
}

Document Completed(std::string_view kind, Document object) {
  const KindInfo& info = KindNamed(kind);
  EXPECT_TRUE(ApplyDefaults(*info.schema, object));
  ApplyComputedDefaults(info, object);
  return object;
}

std::vector<std::string> Lines(const std::vector<kube::Cause>& causes) {
  std::vector<std::string> lines;
  for (const kube::Cause& cause : causes) lines.push_back(StrCat(cause.field, ": ", cause.message));
  return lines;
}

std::vector<std::string> Problems(std::string_view kind, std::string_view text) {
  return Lines(ValidateCreate(KindNamed(kind), Completed(kind, Json(text))));
}

std::string_view kMeta = R"("metadata":{"name":"x","namespace":"default"})";

std::vector<std::string> PodProblems(std::string_view spec) {
  return Problems("Pod", StrCat("{", kMeta, R"(,"spec":)", spec, "}"));
}
std::vector<std::string> ContainerProblems(std::string_view fields) {
  return PodProblems(
      StrCat(R"({"volumes":[{"name":"v"}],"containers":[{"name":"c","image":"i",)", fields, "}]}"));
}
std::vector<std::string> ServiceProblems(std::string_view spec) {
  return Problems("Service", StrCat("{", kMeta, R"(,"spec":)", spec, "}"));
}

TEST(ValidateCreate, FindsNothingWrongWithASoundPod) {
  EXPECT_THAT(
      PodProblems(R"({"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80,"name":"web"}],
      "env":[{"name":"A_B.c-d","value":"x"},{"name":"A_B.c-d","value":"y"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],
      "resources":{"limits":{"cpu":"1","nvidia.com/gpu":2}},"livenessProbe":{"httpGet":{"port":"web"}}}],
      "initContainers":[{"name":"i","image":"x"}],"volumes":[{"name":"v"},{"name":"w","hostPath":{"path":"/tmp"}}],
      "tolerations":[{"operator":"Exists"}],"nodeSelector":{"a":"b"}})"),
      IsEmpty());
}

TEST(ValidateCreate, ChecksNamesLabelsAndOwners) {
  const auto with = [](std::string_view kind, std::string_view metadata) {
    return Problems(kind,
                    StrCat(R"({"metadata":)", metadata,
                           R"(,"spec":{"containers":[{"name":"c","image":"i"}],"ports":[{"port":1}]}})"));
  };
  EXPECT_THAT(with("Pod", R"({"namespace":"default"})"),
              ElementsAre("metadata.name: Required value: name or generateName is required"));
  EXPECT_THAT(with("Pod", R"({"name":"x"})"), ElementsAre("metadata.namespace: Required value"));
  EXPECT_THAT(with("Pod", R"({"name":"A_b","namespace":"default"})"),
              ElementsAre(HasSubstr("metadata.name: Invalid value: \"A_b\": must be")));
  EXPECT_THAT(with("Pod", R"({"name":"a.b","namespace":"default","generateName":"a-"})"), IsEmpty());
  EXPECT_THAT(with("Pod", R"({"name":"x","namespace":"a.b"})"),
              ElementsAre(HasSubstr("metadata.namespace: Invalid value")));
  EXPECT_THAT(with("Service", R"({"name":"1a","namespace":"default"})"),
              ElementsAre(HasSubstr("metadata.name: Invalid value: \"1a\"")));
  EXPECT_THAT(with("Namespace", R"({"name":"a.b"})"),
              testing::Contains(HasSubstr("metadata.name: Invalid value: \"a.b\"")));
  EXPECT_THAT(with("Node", R"({"name":"a.b","namespace":"x"})"),
              ElementsAre("metadata.namespace: Forbidden: not allowed on this type"));
  EXPECT_THAT(with("Pod", R"({"name":"x","namespace":"d","labels":{"a b":"ok","c":"-"}})"),
              ElementsAre(HasSubstr("metadata.labels: Invalid value: \"a b\""),
                          HasSubstr("metadata.labels: Invalid value: \"-\"")));
  EXPECT_THAT(with("Pod", R"({"name":"x","namespace":"d","annotations":{"Example.com/A":"x"}})"), IsEmpty());
  EXPECT_THAT(with("Pod", StrCat(R"({"name":"x","namespace":"d","annotations":{"a":")",
                                 std::string(300'000, 'x'), R"("}})")),
              ElementsAre("metadata.annotations: Too long: must have at most 262144 bytes"));
  EXPECT_THAT(
      with(
          "Pod",
          R"({"name":"x","namespace":"d","ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},
                             {"apiVersion":"v1","kind":"A","name":"","uid":"2","controller":true}]})"),
      ElementsAre("metadata.ownerReferences[1].name: Required value",
                  HasSubstr("ownerReferences[1].controller: Invalid value: true")));
}

TEST(ValidateCreate, HoldsContainersToTheirRules) {
  struct Case {
    std::string_view fields;
    std::string_view problem;
  };
  const Case cases[] = {
      {R"("image":"")", "spec.containers[0].image: Required value"},
      {R"("image":" i")",
       "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace"},
      {R"("ports":[{"containerPort":70000}])",
       "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
       "inclusive"},
      {R"("ports":[{"containerPort":1,"name":"much-too-long-name"}])",
       "ports[0].name: Invalid value: \"much-too-long-name\": must be no more than 15"},
      {R"("ports":[{"containerPort":1,"name":"a"},{"containerPort":2,"name":"a"}])",
       "ports[1].name: Duplicate value: \"a\""},
      {R"("ports":[{"containerPort":1,"hostPort":5},{"containerPort":2,"hostPort":5}])",
       "ports[1].hostPort: Duplicate value"},
      {R"("env":[{"name":""}])", "env[0].name: Required value"},
      {R"("env":[{"name":"1a"}])", "env[0].name: Invalid value: \"1a\""},
      {R"("env":[{"name":"a","valueFrom":{}}])",
       "env[0].valueFrom: Invalid value: \"\": must specify one of"},
      {R"("env":[{"name":"a","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}])",
       "may not be specified when `value` is not empty"},
      {R"("env":[{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}])",
       "fieldPath: Unsupported value: \"spec.x\""},
      {R"("envFrom":[{}])", "envFrom[0]: Invalid value: \"\": must specify one of"},
      {R"("volumeMounts":[{"name":"other","mountPath":"/a"}])",
       "spec.containers[0].volumeMounts[0].name: Not found: \"other\""},
      {R"("volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"}])",
       "volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique"},
      {R"("volumeMounts":[{"name":"v","mountPath":"/a","subPath":"../x"}])",
       "subPath: Invalid value: \"../x\": must not contain '..'"},
      {R"("resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}})",
       "resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit"},
      {R"("resources":{"requests":{"cpu":"-1"}})",
       "resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"},
      {R"("resources":{"requests":{"a.b/c":"1"}})", "resources.limits: Required value: Limit must be set"},
      {R"("resources":{"requests":{"a.b/c":"1"},"limits":{"a.b/c":"2"}})", "must be equal to a.b/c limit"},
      {R"("resources":{"requests":{"weird":"1"}})", "must be a standard resource"},
      {R"("livenessProbe":{})",
       "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
      {R"("livenessProbe":{"exec":{"command":["a"]},"tcpSocket":{"port":1}})",
       "may not specify more than 1 handler type"},
      {R"("livenessProbe":{"exec":{"command":["a"]},"successThreshold":2})",
       "successThreshold: Invalid value: 2: must be 1"},
      {R"("readinessProbe":{"exec":{"command":["a"]},"periodSeconds":-1})",
       "periodSeconds: Invalid value: -1: must be greater than or equal to 0"},
      {R"("lifecycle":{"preStop":{}})", "lifecycle.preStop: Required value: must specify a handler type"},
  };
  for (const Case& each : cases)
    EXPECT_THAT(ContainerProblems(each.fields), ElementsAre(HasSubstr(each.problem))) << each.fields;
  EXPECT_THAT(PodProblems(R"({"containers":[]})"), ElementsAre("spec.containers: Required value"));
  EXPECT_THAT(PodProblems(R"({"containers":[{"name":"a","image":"i"},{"name":"a","image":"i"}]})"),
              ElementsAre("spec.containers[1].name: Duplicate value: \"a\""));
}

TEST(ValidateCreate, HoldsPodsToTheirRules) {
  struct Case {
    std::string_view fields;
    std::string_view problem;
  };
  const Case cases[] = {
      {R"("volumes":[{"name":"a"},{"name":"a"}])", "spec.volumes[1].name: Duplicate value: \"a\""},
      {R"("volumes":[{"name":"a","emptyDir":{},"hostPath":{"path":"/"}}])",
       "may not specify more than 1 volume type"},
      {R"("volumes":[{"name":"a","hostPath":{"path":"/a/../b"}}])",
       "hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"},
      {R"("volumes":[{"name":"a","configMap":{}}])", "configMap.name: Required value"},
      {R"("volumes":[{"name":"a","secret":{"secretName":"s","defaultMode":1000}}])",
       "defaultMode: Invalid value: 1000"},
      {R"("activeDeadlineSeconds":0)",
       "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"},
      {R"("nodeSelector":{"a b":"c"})", "spec.nodeSelector: Invalid value: \"a b\""},
      {R"("hostname":"A.b")", "spec.hostname: Invalid value"},
      {R"("tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":1}])",
       "effect must be 'NoExecute'"},
      {R"("hostAliases":[{"ip":"x"}])",
       "spec.hostAliases[0].ip: Invalid value: \"x\": must be a valid IP address"},
      {R"("dnsPolicy":"None")", "spec.dnsConfig.nameservers: Required value"},
      {R"("securityContext":{"runAsUser":-1})", "spec.securityContext.runAsUser: Invalid value: -1"},
      {R"("ephemeralContainers":[{"name":"e","image":"i"}])",
       "spec.ephemeralContainers: Forbidden: cannot be set on create"},
      {R"("initContainers":[{"name":"i","image":"i","startupProbe":{"exec":{"command":["x"]}}}])",
       "startupProbe: Forbidden: may not be set for init containers"},
      {R"("affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":""}]}})",
       "topologyKey: Required value"},
      {R"("topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}])",
       "maxSkew: Invalid value: 0: must be greater than zero"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(PodProblems(StrCat(R"({"containers":[{"name":"c","image":"i"}],)", each.fields, "}")),
                ElementsAre(HasSubstr(each.problem)))
        << each.fields;
  }
}

TEST(ValidateCreate, HoldsServicesToTheirRules) {
  struct Case {
    std::string_view spec;
    std::string_view problem;
  };
  const Case cases[] = {
      {R"({})", "spec.ports: Required value"},
      {R"({"ports":[{"port":0,"targetPort":1}]})", "spec.ports[0].port: Invalid value: 0"},
      {R"({"ports":[{"port":1,"name":"a"},{"port":2}]})", "spec.ports[1].name: Required value"},
      {R"({"ports":[{"port":1,"name":"a"},{"port":1,"name":"b"}]})",
       "spec.ports[1]: Duplicate value: {\"protocol\":\"TCP\",\"port\":1}"},
      {R"({"ports":[{"port":1,"nodePort":30000}]})",
       "nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
      {R"({"ports":[{"port":1}],"clusterIP":"x"})", "spec.clusterIPs[0]: Invalid value: \"x\""},
      {R"({"ports":[{"port":1}],"type":"NodePort","clusterIP":"None"})",
       "may not be set to 'None' for NodePort services"},
      {R"({"type":"ExternalName"})", "spec.externalName: Required value"},
      {R"({"ports":[{"port":1}],"externalTrafficPolicy":"Local"})",
       "spec.externalTrafficPolicy: Invalid value"},
      {R"({"ports":[{"port":1}],"selector":{"a":"b c"}})", "spec.selector: Invalid value: \"b c\""},
  };
  for (const Case& each : cases)
    EXPECT_THAT(ServiceProblems(each.spec), ElementsAre(HasSubstr(each.problem))) << each.spec;
  EXPECT_THAT(ServiceProblems(R"({"clusterIP":"None","selector":{"a":"b"}})"), IsEmpty());
}

TEST(ValidateCreate, HoldsTheOtherKindsToTheirRules) {
  struct Case {
    std::string_view kind;
    std::string_view fields;
    std::string_view problem;
  };
  const Case cases[] = {
      {"ConfigMap", R"("data":{"a/b":"x"})", "data[a/b]: Invalid value"},
      {"ConfigMap", R"("data":{"a":"x"},"binaryData":{"a":"YQ=="})",
       "duplicate of key present in binaryData"},
      {"Secret", R"("type":"kubernetes.io/ssh-auth")", "data[ssh-privatekey]: Required value"},
      {"Secret", R"("type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"x"})",
       "must be valid JSON"},
      {"Endpoints", R"("subsets":[{"addresses":[{"ip":"x"}]}])", "subsets[0].addresses[0].ip: Invalid value"},
      {"Event", R"("involvedObject":{"namespace":"other"})",
       "involvedObject.namespace: Invalid value: \"other\": does not match"},
      {"Lease", R"("spec":{"leaseDurationSeconds":0})",
       "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
  };
  for (const Case& each : cases)
    EXPECT_THAT(Problems(each.kind, StrCat("{", kMeta, ",", each.fields, "}")),
                ElementsAre(HasSubstr(each.problem)))
        << each.fields;
  EXPECT_THAT(
      Problems("ConfigMap", StrCat("{", kMeta, R"(,"data":{"a":")", std::string(1'100'000, 'x'), R"("}})")),
      ElementsAre(": Too long: must have at most 1048576 bytes"));
}

constexpr std::string_view kDefinition =
    R"({"metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object"}}}]}})";

TEST(ValidateCreate, HoldsDefinitionsToTheirRules) {
  const auto problems = [](const std::function<void(Document&, Object&, Object&)>& change) {
    Document definition = Json(kDefinition);
    change(definition, *ObjectAt(definition, {"spec"}),
           ArrayAt(definition, {"spec", "versions"})->at(0).get_object());
    return Lines(ValidateCreate(KindNamed("CustomResourceDefinition"),
                                Completed("CustomResourceDefinition", definition)));
  };
  EXPECT_THAT(problems([](Document&, Object&, Object&) {}), IsEmpty());
  EXPECT_THAT(problems([](Document& d, Object&, Object&) { MakeObjectAt(d, {"metadata"})["name"] = "x"; }),
              ElementsAre(HasSubstr("metadata.name: Invalid value: \"x\": must be spec.names.plural")));
  EXPECT_THAT(
      problems([](Document&, Object&, Object& version) { version["storage"] = false; }),
      ElementsAre("spec.versions: Invalid value: must have exactly one version marked as storage version"));
  EXPECT_THAT(problems([](Document&, Object&, Object& version) { version.erase("schema"); }),
              ElementsAre("spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"));
  EXPECT_THAT(problems([](Document&, Object&, Object& version) {
                version["schema"] =
                    Json(R"({"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array"}}}})");
              }),
              ElementsAre("spec.versions[0].schema.openAPIV3Schema.properties[a].items: Invalid value: is "
                          "required where type is array"));
  EXPECT_THAT(problems([](Document&, Object&, Object& version) {
                version["additionalPrinterColumns"] = Json(R"([{"name":"a","type":"x","jsonPath":".a"}])");
              }),
              ElementsAre(HasSubstr("additionalPrinterColumns[0].type: Invalid value: \"x\"")));
  EXPECT_THAT(problems([](Document&, Object& spec, Object&) { spec["preserveUnknownFields"] = true; }),
              ElementsAre(HasSubstr("spec.preserveUnknownFields: Invalid value: true")));
}

TEST(ValidateCreate, ChecksTheMetadataOfKindsThatAreNotBuiltIn) {
  const KindInfo kind{.group = "example.com", .version = "v1", .kind = "Foo"};
  EXPECT_THAT(Lines(ValidateCreate(kind, Json(R"({"metadata":{"name":"A","namespace":"d"}})"))),
              ElementsAre(HasSubstr("metadata.name")));
}

TEST(ValidateCreate, SurvivesObjectsOfTheWrongShape) {
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    for (
        const std::string_view text :
        {"null", "[]", R"({"metadata":[],"spec":"x","data":3,"subsets":[1]})",
         R"({"metadata":{"labels":[1],"ownerReferences":[null],"finalizers":[{}]},"spec":{"containers":[3,{"env":[1],"ports":[[]],"resources":7,"livenessProbe":2,"volumeMounts":[0]}],"volumes":[null,{"x":1}],"tolerations":[1],"affinity":[],"ports":[""],"versions":[1],"names":2}})"}) {
      EXPECT_LE(ValidateCreate(kind, Json(text)).size(), 16U);
      EXPECT_LE(ValidateUpdate(kind, Json(text), Json(text)).size(), 16U);
    }
  }
}

std::vector<std::string> UpdateProblems(std::string_view kind, Document before, std::string_view changes) {
  before = Completed(kind, std::move(before));
  Document after = before;
  // The changes are merged in, object by object.
  const std::function<void(Document&, const Document&)> merge = [&](Document& into, const Document& from) {
    if (!from.is_object() || !into.is_object()) {
      into = from;
      return;
    }
    for (const auto& member : from.get_object()) {
      if (member.value().is_null()) {
        Remove(into.get_object(), Key(member));
      } else {
        merge(into.get_object()[member.key()], member.value());
      }
    }
  };
  merge(after, Json(changes));
  return Lines(ValidateUpdate(KindNamed(kind), before, after));
}

TEST(ValidateUpdate, LetsOnlyAFewFieldsOfAPodChange) {
  const Document pod = Json(
      StrCat("{", kMeta, R"(,"spec":{"activeDeadlineSeconds":10,"containers":[{"name":"c","image":"i"}]}})"));
  const auto problems = [&](std::string_view changes) { return UpdateProblems("Pod", pod, changes); };
  EXPECT_THAT(problems("{}"), IsEmpty());
  EXPECT_THAT(problems(R"({"metadata":{"labels":{"a":"b"}},"spec":{"activeDeadlineSeconds":5}})"), IsEmpty());
  EXPECT_THAT(problems(R"({"spec":{"nodeSelector":{},"volumes":[],"hostname":""}})"), IsEmpty());
  EXPECT_THAT(problems(R"({"spec":{"activeDeadlineSeconds":11}})"),
              ElementsAre(HasSubstr("must be less than or equal to previous value")));
  EXPECT_THAT(problems(R"({"spec":{"activeDeadlineSeconds":null}})"),
              ElementsAre(HasSubstr("must not update from a positive integer to nil value")));
  EXPECT_THAT(
      problems(R"({"spec":{"restartPolicy":"Never"}})"),
      ElementsAre(testing::AllOf(HasSubstr("spec: Forbidden: pod updates may not change fields other than"),
                                 HasSubstr("`spec.restartPolicy` would change"))));
  EXPECT_THAT(problems(R"({"spec":{"nodeName":"n"}})"),
              ElementsAre(HasSubstr("`spec.nodeName` would change")));
  EXPECT_THAT(problems(R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}})"),
              ElementsAre("spec.containers: Forbidden: pod updates may not add or remove containers"));
  EXPECT_THAT(problems(R"({"spec":{"tolerations":[{"key":"x","operator":"Exists"}]}})"),
              ElementsAre(HasSubstr("existing toleration can not be modified")));
  EXPECT_THAT(problems(R"({"metadata":{"name":"y"}})"),
              ElementsAre("metadata.name: Invalid value: \"y\": field is immutable"));

  Document before = Completed("Pod", pod);
  Document after = before;
  ArrayAt(after, {"spec", "containers"})->at(0).get_object()["image"] = "other";
  ArrayAt(after, {"spec", "tolerations"})->push_back(Json(R"({"key":"k","operator":"Exists"})"));
  EXPECT_THAT(ValidateUpdate(KindNamed("Pod"), before, after), IsEmpty());
}

TEST(ValidateUpdate, KeepsWhatMustNotChange) {
  const Document service =
      Json(StrCat("{", kMeta, R"(,"spec":{"clusterIP":"10.0.0.1","ports":[{"port":1}]}})"));
  EXPECT_THAT(
      UpdateProblems("Service", service, R"({"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"]}})"),
      ElementsAre("spec.clusterIP: Invalid value: \"10.0.0.2\": may not change once set"));
  const Document secret = Json(StrCat("{", kMeta, R"(,"data":{"a":"YQ=="},"immutable":true})"));
  EXPECT_THAT(UpdateProblems("Secret", secret, R"({"data":{"b":"YQ=="}})"),
              ElementsAre("data: Forbidden: field is immutable when `immutable` is set"));
  EXPECT_THAT(UpdateProblems("Secret", secret, R"({"type":"other"})"),
              ElementsAre("type: Invalid value: \"other\": field is immutable"));
  const Document map = Json(StrCat("{", kMeta, R"(,"immutable":true})"));
  EXPECT_THAT(UpdateProblems("ConfigMap", map, R"({"immutable":null})"),
              ElementsAre(HasSubstr("immutable: Forbidden")));
  Document definition = Json(kDefinition);
  definition.get_object()["status"] = Json(R"({"storedVersions":["v1","v0"]})");
  EXPECT_THAT(UpdateProblems("CustomResourceDefinition", definition, R"({"spec":{"scope":"Cluster"}})"),
              ElementsAre("spec.scope: Invalid value: \"Cluster\": field is immutable",
                          "status.storedVersions[1]: Invalid value: \"v0\": must appear in spec.versions"));
}

TEST(ValidateUpdate, AddsNoFinalizerToWhatIsBeingDeleted) {
  const Document map = Json(
      R"({"metadata":{"name":"x","namespace":"d","deletionTimestamp":"2024-01-01T00:00:00Z","finalizers":["a/b"]}})");
  EXPECT_THAT(UpdateProblems("ConfigMap", map, R"({"metadata":{"finalizers":[]}})"), IsEmpty());
  EXPECT_THAT(UpdateProblems("ConfigMap", map, R"({"metadata":{"finalizers":["a/b","c/d"]}})"),
              ElementsAre(HasSubstr("metadata.finalizers: Forbidden: no new finalizers can be added")));
}

}  // namespace
}  // namespace trainyard::apiserver
