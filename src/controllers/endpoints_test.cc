#include "controllers/endpoints.h"

#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

kube::CompactService Service(std::string_view spec) {
  return ObserveService(
             StrCat(R"({"metadata":{"name":"s","namespace":"a","labels":{"team":"x"}},"spec":)", spec, "}"))
      .value();
}

struct PodSpec {
  std::string name;
  std::string ip;
  bool ready = true;
  std::string phase = "Running";
  bool ending = false;
  std::string more;  // of its spec
};
PodPtr Pod(const PodSpec& spec) {
  auto pod = ObservePod(StrCat(
      R"({"metadata":{"name":")", spec.name, R"(","namespace":"a","uid":"uid-)", spec.name, "\"",
      spec.ending ? R"(,"deletionTimestamp":"2024-05-01T10:00:00Z")" : "", R"(},"spec":{"nodeName":"n1")",
      spec.more, R"(},"status":{"phase":")", spec.phase, R"(","podIP":")", spec.ip,
      R"(","conditions":[{"type":"Ready","status":")", spec.ready ? "True" : "False", R"("}]}})"));
  return std::make_shared<const ObservedPod>(*std::move(pod));
}

std::string Address(std::string_view pod, std::string_view ip, std::string_view more = "") {
  return StrCat(R"({"ip":")", ip, R"(","nodeName":"n1","targetRef":{"kind":"Pod","namespace":"a","name":")",
                pod, R"(","uid":"uid-)", pod, "\"}", more, "}");
}

Array ParsedEndpoints(std::string_view json) { return ParseJson(json).value().get_array(); }

TEST(PlanSubsets, PutsReadyPodsWhereClientsGo) {
  const auto service = Service(R"({"selector":{"a":"b"},"ports":[{"port":80,"targetPort":8080}]})");
  EXPECT_EQ(
      PlanSubsets(service, {Pod({.name = "p2", .ip = "127.1.0.2"}), Pod({.name = "p1", .ip = "127.1.0.1"}),
                            Pod({.name = "p3", .ip = "127.1.0.3", .ready = false})}),
      ParsedEndpoints(StrCat(R"([{"addresses":[)", Address("p1", "127.1.0.1"), ",",
                             Address("p2", "127.1.0.2"), R"(],"notReadyAddresses":[)",
                             Address("p3", "127.1.0.3"), R"(],"ports":[{"port":8080,"protocol":"TCP"}]}])")));
}

TEST(PlanSubsets, LeavesOutPodsThatEndOrHaveNoAddress) {
  const auto service = Service(R"({"selector":{"a":"b"},"ports":[{"port":80}]})");
  const std::vector<PodPtr> pods = {Pod({.name = "p1", .ip = ""}),
                                    Pod({.name = "p2", .ip = "127.1.0.2", .phase = "Succeeded"}),
                                    Pod({.name = "p3", .ip = "127.1.0.3", .phase = "Failed"}),
                                    Pod({.name = "p4", .ip = "127.1.0.4", .ending = true})};
  EXPECT_EQ(PlanSubsets(service, pods), Array());
}

TEST(PlanSubsets, ListsPodsThatAreNotReadyIfTheServiceSaysSo) {
  const auto service =
      Service(R"({"selector":{"a":"b"},"publishNotReadyAddresses":true,"ports":[{"port":80}]})");
  EXPECT_EQ(
      PlanSubsets(service, {Pod({.name = "p1", .ip = "127.1.0.1", .ready = false}),
                            Pod({.name = "p2", .ip = "127.1.0.2", .ending = true})}),
      ParsedEndpoints(StrCat(R"([{"addresses":[)", Address("p1", "127.1.0.1"), ",",
                             Address("p2", "127.1.0.2"), R"(],"ports":[{"port":80,"protocol":"TCP"}]}])")));
}

TEST(PlanSubsets, FindsNamedPortsInEachPod) {
  const auto service = Service(
      R"({"selector":{"a":"b"},"ports":[{"name":"web","port":80,"targetPort":"http"},
                                        {"name":"dns","port":53,"targetPort":"http","protocol":"UDP"}]})");
  const auto ports = [](int number) {
    return StrCat(R"(,"containers":[{"ports":[{"name":"x","containerPort":1}]},
                                    {"ports":[{"name":"http","containerPort":)",
                  number, R"(,"protocol":"TCP"}]}])");
  };
  EXPECT_EQ(PlanSubsets(service, {Pod({.name = "p1", .ip = "127.1.0.1", .more = ports(8081)}),
                                  Pod({.name = "p2", .ip = "127.1.0.2", .more = ports(8080)}),
                                  Pod({.name = "p3", .ip = "127.1.0.3"})}),
            ParsedEndpoints(StrCat(
                R"([{"addresses":[)", Address("p2", "127.1.0.2"),
                R"(],"ports":[{"name":"web","port":8080,"protocol":"TCP"}]},{"addresses":[)",
                Address("p1", "127.1.0.1"), R"(],"ports":[{"name":"web","port":8081,"protocol":"TCP"}]}])")));
}

TEST(PlanSubsets, GivesNamesToPodsOfItsSubdomain) {
  const auto service = Service(R"({"selector":{"a":"b"},"clusterIP":"None","ports":[{"port":80}]})");
  const PodPtr named = Pod({.name = "p1", .ip = "127.1.0.1", .more = R"(,"hostname":"h","subdomain":"s")"});
  const PodPtr other = Pod({.name = "p2", .ip = "127.1.0.2", .more = R"(,"hostname":"h","subdomain":"t")"});
  EXPECT_EQ(
      PlanSubsets(service, {named, other}),
      ParsedEndpoints(StrCat(R"([{"addresses":[)", Address("p1", "127.1.0.1", R"(,"hostname":"h")"), ",",
                             Address("p2", "127.1.0.2"), R"(],"ports":[{"port":80,"protocol":"TCP"}]}])")));
}

TEST(PlanSubsets, NeedsNoPortsForAServiceWithoutAddress) {
  const PodPtr pod = Pod({.name = "p1", .ip = "127.1.0.1"});
  EXPECT_EQ(PlanSubsets(Service(R"({"selector":{"a":"b"},"clusterIP":"None"})"), {pod}),
            ParsedEndpoints(StrCat(R"([{"addresses":[)", Address("p1", "127.1.0.1"), "]}]")));
  EXPECT_EQ(PlanSubsets(Service(R"({"selector":{"a":"b"},"clusterIP":"127.96.0.20"})"), {pod}), Array());
}

TEST(PlanEndpoints, WritesOnlyWhatChanges) {
  const auto service = Service(R"({"selector":{"a":"b"},"clusterIP":"None","ports":[{"port":80}]})");
  const std::vector<PodPtr> pods = {Pod({.name = "p1", .ip = "127.1.0.1"})};
  const auto made = PlanEndpoints(service, pods, std::nullopt);
  ASSERT_TRUE(made && std::holds_alternative<Create>(*made));
  const Document object = std::get<Create>(*made).object;
  EXPECT_EQ(*ObjectAt(object, {"metadata", "labels"}),
            (Object{{"team", "x"},
                    {"service.kubernetes.io/headless", ""},
                    {"endpoints.kubernetes.io/managed-by", "endpoint-controller"}}));
  EXPECT_EQ(PlanEndpoints(service, pods, object), std::nullopt);
  const auto changed = PlanEndpoints(service, {}, object);
  ASSERT_TRUE(changed && std::holds_alternative<Replace>(*changed));
  EXPECT_EQ(*ArrayAt(std::get<Replace>(*changed).object, {"subsets"}), Array());
}

TEST(PlanEndpoints, LeavesServicesWithoutSelectorToUsers) {
  EXPECT_EQ(PlanEndpoints(Service(R"({"ports":[{"port":80}]})"), {}, std::nullopt), std::nullopt);
  EXPECT_EQ(PlanEndpoints(Service(R"({"selector":{},"ports":[{"port":80}]})"), {}, std::nullopt),
            std::nullopt);
}

TEST(MatterToEndpoints, IsFalseForWhatEndpointsDoNotShow) {
  const PodPtr pod = Pod({.name = "p1", .ip = "127.1.0.1"});
  ObservedPod other = *pod;
  other.meta.resource_version = "2";
  EXPECT_FALSE(MatterToEndpoints(pod.get(), &other));
  other.ready = false;
  EXPECT_TRUE(MatterToEndpoints(pod.get(), &other));
  EXPECT_TRUE(MatterToEndpoints(nullptr, pod.get()));
  EXPECT_TRUE(MatterToEndpoints(pod.get(), nullptr));
  other = *pod;
  other.meta.labels = kube::TextMap({{kube::SharedText("a"), kube::SharedText("b")}});
  EXPECT_TRUE(MatterToEndpoints(pod.get(), &other));
}

}  // namespace
}  // namespace trainyard::controllers
