#include "operator/gatekeeper.h"

#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::ops {
namespace {

using placement::PodPtr;

// A pod of 1 cpu, which waits behind a gate unless it has a node.
PodPtr GatedPod(const std::string& name, const std::string& node = "", bool gated = true) {
  auto pod = placement::ParseDemand(StrCat(
      R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":")", name, R"("},"spec":{"nodeName":")",
      node, R"(",)", gated && node.empty() ? R"("schedulingGates":[{"name":"trainyard.dev/gang"}],)" : "",
      R"("containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}})"));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return std::make_shared<const placement::PodDemand>(*std::move(pod));
}

std::vector<std::shared_ptr<const kube::CompactNode>> NodeOf(int cpus, const std::string& taints = "[]") {
  auto node = kube::ParseNode(StrCat(R"({"metadata":{"name":"n"},"spec":{"taints":)", taints,
                                     R"(},"status":{"allocatable":{"cpu":")", cpus,
                                     R"(","pods":"100"},"conditions":[{"type":"Ready","status":"True"}]}})"));
  EXPECT_TRUE(node.ok()) << node.status();
  return {std::make_shared<const kube::CompactNode>(*std::move(node))};
}

struct GateScene {
  std::vector<WaitingGang> gangs;
  std::vector<PodPtr> pods;

  void Add(const std::string& job, int size, int second, bool admitted = false) {
    WaitingGang gang{
        .job = job, .created = absl::FromUnixSeconds(second), .minimum = size, .admitted = admitted};
    for (int i = 0; i < size; ++i) {
      pods.push_back(GatedPod(StrCat(job, "-", i)));
      gang.members.push_back(pods.back()->meta.uid);
    }
    gangs.push_back(std::move(gang));
  }
};

TEST(DecideGates, KeepsAGangBackThatDoesNotFitAndSaysWhy) {
  GateScene scene;
  scene.Add("big", 40, 1);
  const auto decided = DecideGates(scene.gangs, scene.pods, NodeOf(6));
  EXPECT_FALSE(decided.at("big").admitted);
  EXPECT_EQ(decided.at("big").waits, "gang of 40 needs 40 cpu; 6 are free");
}

TEST(DecideGates, AdmitsTheOldestOfTwoGangsOfWhichOneFits) {
  GateScene scene;
  scene.Add("new", 4, 2);
  scene.Add("old", 4, 1);
  const auto decided = DecideGates(scene.gangs, scene.pods, NodeOf(6));
  EXPECT_TRUE(decided.at("old").admitted);
  EXPECT_FALSE(decided.at("new").admitted);
  EXPECT_EQ(decided.at("new").waits, "gang of 4 needs 4 cpu; 2 are free");
}

TEST(DecideGates, AdmitsAYoungerGangThatFitsWhereTheOlderDoesNot) {
  GateScene scene;
  scene.Add("old", 8, 1);
  scene.Add("new", 4, 2);
  const auto decided = DecideGates(scene.gangs, scene.pods, NodeOf(6));
  EXPECT_FALSE(decided.at("old").admitted);
  EXPECT_TRUE(decided.at("new").admitted);
}

TEST(DecideGates, KeepsRoomForAGangWhoseGatesAreBeingLifted) {
  GateScene scene;
  scene.Add("old", 4, 1);
  scene.Add("new", 4, 2, /*admitted=*/true);
  const auto decided = DecideGates(scene.gangs, scene.pods, NodeOf(6));
  EXPECT_TRUE(decided.at("new").admitted);
  EXPECT_FALSE(decided.at("old").admitted);
}

TEST(DecideGates, KeepsRoomForPodsThatASchedulerMayPlaceNow) {
  GateScene scene;
  scene.Add("gang", 4, 1);
  scene.pods.push_back(GatedPod("runs", "n"));
  scene.pods.push_back(GatedPod("comes", "", /*gated=*/false));
  scene.pods.push_back(GatedPod("comes-too", "", /*gated=*/false));
  EXPECT_EQ(DecideGates(scene.gangs, scene.pods, NodeOf(6)).at("gang").waits,
            "gang of 4 needs 4 cpu; 3 are free");
  EXPECT_TRUE(DecideGates(scene.gangs, scene.pods, NodeOf(7)).at("gang").admitted);
}

TEST(DecideGates, CountsNoNodeThatThePodsDoNotTolerate) {
  GateScene scene;
  scene.Add("gang", 2, 1);
  const auto decided =
      DecideGates(scene.gangs, scene.pods, NodeOf(6, R"([{"key":"k","value":"v","effect":"NoSchedule"}])"));
  EXPECT_FALSE(decided.at("gang").admitted);
}

TEST(DefaultGangScheduler, IsThatOfTheEmbeddedClusterOrGates) {
  EXPECT_EQ(DefaultGangScheduler(R"({"gitVersion":"v1.31.0+trainyard.1.0"})"),
            job::GangScheduler::kCoscheduling);
  EXPECT_EQ(DefaultGangScheduler(R"({"gitVersion":"v1.31.0"})"), job::GangScheduler::kGates);
  EXPECT_EQ(DefaultGangScheduler(""), job::GangScheduler::kGates);
}

}  // namespace
}  // namespace trainyard::ops
