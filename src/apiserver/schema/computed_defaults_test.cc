#include "apiserver/schema/computed_defaults.h"

#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

const KindInfo& KindOf(const Document& object) {
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    if (kind.kind == StringAt(object, {"kind"})) return kind;
  }
  TY_CHECK(false, "the test's object has no kind");
}

Document Completed(Document object) {
  const KindInfo& kind = KindOf(object);
  EXPECT_TRUE(ApplyDefaults(*kind.schema, object));
  ApplyComputedDefaults(kind, object);
  return object;
}

Document Created(std::string_view text) {
  Document object = Completed(Json(text));
  PrepareForCreate(KindOf(object), object);
  return object;
}

Document PodOf(std::string_view spec) {
  return Created(StrCat(R"({"kind":"Pod","metadata":{"name":"p"},"spec":)", spec, "}"));
}
Document ServiceOf(std::string_view spec) {
  return Created(StrCat(R"({"kind":"Service","metadata":{"name":"s"},"spec":)", spec, "}"));
}
std::string At(const Document& object, Path path) {
  const Document* value = Find(object, path);
  return value == nullptr ? "" : PrintJson(*value);
}

TEST(ApplyComputedDefaults, PullsAnImageOfTheTagLatestAlways) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"busybox", "Always"},
      {"busybox:latest", "Always"},
      {"busybox:1.2", "IfNotPresent"},
      {"reg:5000/busybox", "Always"},
      {"reg:5000/a/b:latest", "Always"},
      {"reg:5000/a/b:v1", "IfNotPresent"},
      {"a@sha256:00", "IfNotPresent"},
      {"", "IfNotPresent"},
  };
  for (const auto& [image, policy] : cases) {
    const Document pod = PodOf(StrCat(R"({"containers":[{"name":"c","image":")", image, R"("}]})"));
    EXPECT_EQ(StringAt(ArrayAt(pod, {"spec", "containers"})->at(0), {"imagePullPolicy"}), policy) << image;
  }
}

TEST(ApplyComputedDefaults, RequestsWhatIsLimited) {
  const Document pod = PodOf(
      R"({"containers":[{"name":"c","resources":{"limits":{"cpu":2,"memory":"1024Ki"},"requests":{"cpu":"500m"}}}]})");
  EXPECT_EQ(At(ArrayAt(pod, {"spec", "containers"})->at(0), {"resources"}),
            R"({"limits":{"cpu":"2","memory":"1Mi"},"requests":{"cpu":"500m","memory":"1Mi"}})");
}

TEST(ApplyComputedDefaults, GivesAPodOfTheHostsNetworkItsHostPorts) {
  const Document pod = PodOf(
      R"({"hostNetwork":true,"containers":[{"name":"c","ports":[{"containerPort":80},{"containerPort":81,"hostPort":82}]}]})");
  EXPECT_EQ(
      At(ArrayAt(pod, {"spec", "containers"})->at(0), {"ports"}),
      R"([{"containerPort":80,"protocol":"TCP","hostPort":80},{"containerPort":81,"hostPort":82,"protocol":"TCP"}])");
}

TEST(ApplyComputedDefaults, ToleratesANodesTroubleForAWhile) {
  EXPECT_EQ(ArrayAt(PodOf("{}"), {"spec", "tolerations"})->size(), 2U);
  EXPECT_EQ(ArrayAt(PodOf(R"({"tolerations":[{"operator":"Exists"}]})"), {"spec", "tolerations"})->size(),
            1U);
  EXPECT_EQ(ArrayAt(PodOf(R"({"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists"}]})"),
                    {"spec", "tolerations"})
                ->size(),
            2U);
}

TEST(ApplyComputedDefaults, SaysTheServiceAccountInBothFields) {
  EXPECT_EQ(At(PodOf(R"({"serviceAccount":"a"})"), {"spec", "serviceAccountName"}), "\"a\"");
  EXPECT_EQ(At(PodOf(R"({"serviceAccountName":"a"})"), {"spec", "serviceAccount"}), "\"a\"");
  EXPECT_EQ(At(PodOf("{}"), {"spec", "serviceAccount"}), "");
}

TEST(ApplyComputedDefaults, MakesAVolumeWithoutASourceAnEmptyFolder) {
  EXPECT_EQ(
      At(PodOf(R"({"volumes":[{"name":"a"},{"name":"b","hostPath":{"path":"/"}}]})"), {"spec", "volumes"}),
      R"([{"name":"a","emptyDir":{}},{"name":"b","hostPath":{"path":"/","type":""}}])");
}

TEST(ApplyComputedDefaults, CompletesAService) {
  const Document plain =
      ServiceOf(R"({"ports":[{"port":80}],"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}})");
  EXPECT_EQ(At(plain, {"spec", "ports"}), R"([{"port":80,"protocol":"TCP","targetPort":80}])");
  EXPECT_EQ(At(plain, {"spec", "internalTrafficPolicy"}), "\"Cluster\"");
  EXPECT_EQ(At(plain, {"spec", "externalTrafficPolicy"}), "");
  EXPECT_EQ(At(plain, {"spec", "sessionAffinityConfig"}), "");
  EXPECT_EQ(At(plain, {"spec", "ipFamilies"}), R"(["IPv4"])");
  EXPECT_EQ(At(plain, {"status"}), R"({"loadBalancer":{}})");

  const Document headless =
      ServiceOf(R"({"clusterIP":"None","selector":{"a":"b"},"sessionAffinity":"ClientIP"})");
  EXPECT_EQ(At(headless, {"spec", "clusterIPs"}), R"(["None"])");
  EXPECT_EQ(At(headless, {"spec", "ipFamilyPolicy"}), "\"SingleStack\"");
  EXPECT_EQ(At(headless, {"spec", "sessionAffinityConfig"}), R"({"clientIP":{"timeoutSeconds":10800}})");
  EXPECT_EQ(At(ServiceOf(R"({"clusterIP":"None"})"), {"spec", "ipFamilyPolicy"}), "\"RequireDualStack\"");
  EXPECT_EQ(At(ServiceOf(R"({"type":"NodePort"})"), {"spec", "externalTrafficPolicy"}), "\"Cluster\"");
  EXPECT_EQ(At(ServiceOf(R"({"type":"ExternalName","externalName":"a.b"})"), {"spec", "ipFamilies"}), "");
}

TEST(ApplyComputedDefaults, PutsTheTextsOfASecretIntoItsData) {
  const Document secret =
      Created(R"({"kind":"Secret","stringData":{"a":"hi","b":"new"},"data":{"b":"b2xk","c":"eA=="}})");
  EXPECT_EQ(At(secret, {"data"}), R"({"b":"bmV3","c":"eA==","a":"aGk="})");
  EXPECT_EQ(At(secret, {"stringData"}), "");
  EXPECT_EQ(At(secret, {"type"}), "\"Opaque\"");
}

TEST(ApplyComputedDefaults, CompletesNamespacesNodesAndDefinitions) {
  const Document space = Created(R"({"kind":"Namespace","metadata":{"name":"n"}})");
  EXPECT_EQ(At(space, {"metadata", "labels"}), R"({"kubernetes.io/metadata.name":"n"})");
  EXPECT_EQ(At(space, {"spec"}), R"({"finalizers":["kubernetes"]})");
  EXPECT_EQ(At(space, {"status"}), R"({"phase":"Active"})");
  EXPECT_EQ(At(Created(R"({"kind":"Node","status":{"capacity":{"cpu":4}}})"), {"status", "allocatable"}),
            R"({"cpu":"4"})");
  const Document definition = Created(
      R"({"kind":"CustomResourceDefinition","spec":{"names":{"kind":"CronTab"},"versions":[{"name":"v1","storage":true},{"name":"v2"}]}})");
  EXPECT_EQ(At(definition, {"spec", "names"}),
            R"({"kind":"CronTab","singular":"crontab","listKind":"CronTabList"})");
  EXPECT_EQ(At(definition, {"status", "storedVersions"}), R"(["v1"])");
}

TEST(ApplyComputedDefaults, TwiceIsTheSameAsOnce) {
  for (
      const std::string_view text :
      {R"({"kind":"Pod","spec":{"hostNetwork":true,"serviceAccount":"a","volumes":[{"name":"v"}],"containers":[{"name":"c","image":"b","ports":[{"containerPort":1}],"resources":{"limits":{"cpu":"1500m"}}}]}})",
       R"({"kind":"Service","spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","sessionAffinity":"ClientIP","ports":[{"port":1}]}})",
       R"({"kind":"Secret","stringData":{"a":"b"}})", R"({"kind":"Namespace","metadata":{"name":"x"}})",
       R"({"kind":"Node","status":{"capacity":{"cpu":1}}})",
       R"({"kind":"CustomResourceDefinition","spec":{"names":{"kind":"A"}}})"}) {
    const Document once = Completed(Json(text));
    EXPECT_EQ(Completed(once), once) << text;
  }
}

TEST(ApplyComputedDefaults, SurvivesObjectsOfTheWrongShape) {
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    for (
        const std::string_view text :
        {"null", "[]", "3", R"({"spec":3,"status":[],"metadata":"x","data":1,"stringData":"y"})",
         R"({"spec":{"containers":[1,{"resources":{"limits":5},"ports":[2,{"containerPort":"x"}]}],"volumes":[null],"tolerations":{},"ports":[[]],"names":[],"versions":[7]}})"}) {
      Document object = Json(text);
      ApplyComputedDefaults(kind, object);
      PrepareForCreate(kind, object);
      PrepareForUpdate(kind, Json(text), object);
    }
  }
  SUCCEED();
}

TEST(PrepareForCreate, BeginsAPodAsPending) {
  const Document pod =
      Created(R"({"kind":"Pod","spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}})");
  EXPECT_EQ(At(pod, {"status"}), R"({"phase":"Pending","qosClass":"BestEffort"})");
  EXPECT_EQ(At(pod, {"spec", "priority"}), "0");
  EXPECT_EQ(At(pod, {"spec", "preemptionPolicy"}), "\"PreemptLowerPriority\"");
}

TEST(PrepareForUpdate, KeepsWhatTheServerGave) {
  const Document before =
      Json(R"({"kind":"Service","spec":{"type":"NodePort","clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],
      "ports":[{"port":80,"protocol":"TCP","nodePort":30001},{"port":81,"protocol":"TCP","nodePort":30002}]}})");
  Document after = Json(
      R"({"kind":"Service","spec":{"type":"NodePort","ports":[{"port":81},{"port":80,"nodePort":30009},{"port":82}]}})");
  PrepareForUpdate(KindOf(before), before, after);
  EXPECT_EQ(
      PrintJson(*Find(after, {"spec"})),
      R"({"type":"NodePort","ports":[{"port":81,"nodePort":30002},{"port":80,"nodePort":30009},{"port":82}],"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"]})");

  Document pod = Json(R"({"kind":"Pod","spec":{}})");
  PrepareForUpdate(KindOf(pod), Json(R"({"spec":{"priority":5,"preemptionPolicy":"Never"}})"), pod);
  EXPECT_EQ(At(pod, {"spec"}), R"({"priority":5,"preemptionPolicy":"Never"})");
}

TEST(QosClassOf, TellsHowFirmAPodsResourcesAre) {
  const auto qos = [](std::string_view resources) {
    return std::string(
        QosClassOf(PodOf(StrCat(R"({"containers":[{"name":"c","resources":)", resources, "}]}"))));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m"}})"), "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"nvidia.com/gpu":"1"}})"), "BestEffort");
}

TEST(Canonicalize, WritesQuantitiesAndTimesInOneWay) {
  Document lease = Json(
      R"({"metadata":{"creationTimestamp":"2024-01-01T01:00:00+01:00"},"spec":{"renewTime":"2024-01-01T00:00:00.000001+00:00"}})");
  Canonicalize(*BuiltInKinds().Find("coordination.k8s.io", "v1", "Lease")->schema, lease);
  EXPECT_EQ(
      PrintJson(lease),
      R"({"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"renewTime":"2024-01-01T00:00:00.000001Z"}})");
  const Document pod = PodOf(R"({"overhead":{"cpu":0.1,"memory":"2048Ki"}})");
  EXPECT_EQ(At(pod, {"spec", "overhead"}), R"({"cpu":"100m","memory":"2Mi"})");
}

}  // namespace
}  // namespace trainyard::apiserver
