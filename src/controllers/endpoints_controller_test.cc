#include "controllers/endpoints_controller.h"

#include "controllers/control_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const kube::Resource kEndpointPods = kube::Resource::Pods();
const kube::Resource kServices = kube::Resource::Services();
const kube::Resource kEndpoints = kube::Resource::Endpoints();

class EndpointsControllerTest : public ::testing::Test {
 protected:
  EndpointsControllerTest() { world_.Settle(); }

  void MakePod(const std::string& name, const std::string& ip, std::string_view app = "web") {
    world_.Create(kEndpointPods, "default",
                  StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"app":")", app,
                         R"("}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})"));
    if (!ip.empty()) SetStatus(name, ip, true);
  }
  void SetStatus(const std::string& name, const std::string& ip, bool ready) {
    Document pod = *world_.Find(kEndpointPods, {"default", name});
    pod.get_object()["status"] =
        Object{{"phase", "Running"},
               {"podIP", ip},
               {"conditions", Array{Object{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}};
    world_.Update(kEndpointPods, {"default", name}, pod, "status");
  }
  void MakeService(std::string_view spec = R"({"selector":{"app":"web"},"ports":[{"port":80}]})") {
    world_.Create(kServices, "default", StrCat(R"({"metadata":{"name":"web"},"spec":)", spec, "}"));
  }
  // The addresses of the service; "" behind them: those that are not ready.
  std::vector<std::string> Addresses(std::string_view list = "addresses") {
    std::vector<std::string> ips;
    const auto endpoints = world_.Find(kEndpoints, {"default", "web"});
    if (!endpoints || ArrayAt(*endpoints, {"subsets"}) == nullptr) return ips;
    for (const Document& subset : *ArrayAt(*endpoints, {"subsets"})) {
      if (ArrayAt(subset, {list}) == nullptr) continue;
      for (const Document& address : *ArrayAt(subset, {list})) ips.emplace_back(StringAt(address, {"ip"}));
    }
    return ips;
  }
  std::string Version() { return std::string(VersionOf(*world_.Find(kEndpoints, {"default", "web"}))); }

  ControlledServer world_;
};

TEST_F(EndpointsControllerTest, FollowPods) {
  MakeService();
  MakePod("p1", "127.1.0.1");
  MakePod("p2", "127.1.0.2");
  MakePod("p3", "127.1.0.3", "other");
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.1", "127.1.0.2"));
  SetStatus("p1", "127.1.0.1", false);
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.2"));
  EXPECT_THAT(Addresses("notReadyAddresses"), ElementsAre("127.1.0.1"));
  world_.Delete(kEndpointPods, {"default", "p2"});
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), IsEmpty()) << "a pod that is being deleted gets no more connections";
  EXPECT_TRUE(world_.Exists(kEndpointPods, {"default", "p2"}));
}

TEST_F(EndpointsControllerTest, FollowTheSelector) {
  MakePod("p1", "127.1.0.1");
  MakePod("p2", "127.1.0.2", "other");
  MakeService();
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.1"));
  Document service = *world_.Find(kServices, {"default", "web"});
  service.at("spec").get_object()["selector"] = Object{{"app", "other"}};
  world_.Update(kServices, {"default", "web"}, service);
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.2"));
  Document pod = *world_.Find(kEndpointPods, {"default", "p1"});
  pod.at("metadata").get_object()["labels"] = Object{{"app", "other"}};
  world_.Update(kEndpointPods, {"default", "p1"}, pod);
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.1", "127.1.0.2"));
}

TEST_F(EndpointsControllerTest, AreWrittenOnlyOnChange) {
  MakeService();
  MakePod("p1", "127.1.0.1");
  world_.Wait(absl::Seconds(1));
  const std::string version = Version();
  Document pod = *world_.Find(kEndpointPods, {"default", "p1"});
  pod.at("metadata").get_object()["annotations"] = Object{{"a", "b"}};
  world_.Update(kEndpointPods, {"default", "p1"}, pod);
  world_.StopControllers();
  world_.StartControllers();
  world_.Wait(absl::Seconds(10));  // not so long that a pod of a node that is not there is removed
  EXPECT_EQ(Version(), version);
}

TEST_F(EndpointsControllerTest, AreGatheredWhenManyPodsChange) {
  MakeService();
  world_.Wait(absl::Seconds(1));
  for (int i = 1; i <= 200; ++i) {
    MakePod(StrCat("p", i), StrCat("127.1.0.", i));
    world_.Settle();
  }
  world_.transport().requests().clear();
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), SizeIs(200));
  EXPECT_LT(world_.transport().requests().size(), 10u);
}

TEST_F(EndpointsControllerTest, AreRepairedWhenSomebodyChangesThem) {
  MakeService();
  MakePod("p1", "127.1.0.1");
  world_.Wait(absl::Seconds(1));
  world_.Delete(kEndpoints, {"default", "web"});
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.1.0.1"));
}

TEST_F(EndpointsControllerTest, EndWithTheService) {
  MakeService();
  world_.Wait(absl::Seconds(1));
  ASSERT_TRUE(world_.Exists(kEndpoints, {"default", "web"}));
  world_.Delete(kServices, {"default", "web"});
  world_.Wait(absl::Seconds(1));
  EXPECT_FALSE(world_.Exists(kEndpoints, {"default", "web"}));
}

TEST_F(EndpointsControllerTest, EndWithAServiceThatEndedWhileNobodyLooked) {
  MakeService();
  world_.Wait(absl::Seconds(1));
  world_.StopControllers();
  world_.Delete(kServices, {"default", "web"});
  world_.Create(kEndpoints, "default", R"({"metadata":{"name":"made-by-a-user"}})");
  world_.StartControllers();
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(world_.Names(kEndpoints, "default"), ElementsAre("made-by-a-user"));
}

TEST_F(EndpointsControllerTest, OfAServiceWithoutSelectorAreLeftAlone) {
  MakeService(R"({"ports":[{"port":80}]})");
  world_.Create(
      kEndpoints, "default",
      R"({"metadata":{"name":"web"},"subsets":[{"addresses":[{"ip":"127.5.0.1"}],"ports":[{"port":80}]}]})");
  world_.Wait(absl::Minutes(1));
  EXPECT_THAT(Addresses(), ElementsAre("127.5.0.1"));
  world_.Delete(kServices, {"default", "web"});
  world_.Wait(absl::Seconds(1));
  EXPECT_THAT(Addresses(), IsEmpty()) << "but end with it";
}

}  // namespace
}  // namespace trainyard::controllers
