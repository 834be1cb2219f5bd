#include <utility>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operator/autoscaler.h"

namespace trainyard::ops {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::shared_ptr<const kube::CompactNode> Node(std::string_view name, std::string_view spec = "{}") {
  return std::make_shared<const kube::CompactNode>(
      kube::ParseNode(StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"disk":")", name,
                             R"("}},"spec":)", spec,
                             R"(,"status":{"allocatable":{"cpu":"4","nvidia.com/gpu":"2","pods":"10"},)"
                             R"("conditions":[{"type":"Ready","status":"True"}]}})"))
          .value());
}

struct PodParts {
  std::string uid;
  std::string node = "";
  bool leaves = false;
  std::string selector = "{}";
};
std::shared_ptr<const reconcile::LoadPod> Pod(const PodParts& parts) {
  kube::CompactPod pod =
      kube::ParsePod(
          StrCat(R"({"metadata":{"name":"p-)", parts.uid, R"(","namespace":"d","uid":")", parts.uid, "\"",
                 parts.leaves ? R"(,"deletionTimestamp":"2024-05-01T10:00:00Z")" : "",
                 R"(},"spec":{"nodeName":")", parts.node, R"(","nodeSelector":)", parts.selector,
                 R"(,"containers":[{"resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}})"))
          .value();
  return std::make_shared<const reconcile::LoadPod>(
      reconcile::LoadPod{.meta = std::move(pod.meta),
                         .node = pod.node,
                         .requests = std::move(pod.requests),
                         .node_selector = std::move(pod.node_selector)});
}

// A job with one elastic role of pods with a cpu each, which has so many.
job::JobView Elastic(int size) {
  job::JobView view{.name = "mnist", .ns = "d", .uid = "job"};
  view.spec.roles.push_back(
      {.name = "t", .slug = "t", .replicas = size, .size = job::SizePolicy::kAuto, .least = 1, .most = 9});
  view.status.roles["t"].size = size;
  return view;
}
void AddPod(job::JobView& view, const PodParts& parts) {
  job::PodView pod{.name = parts.uid, .uid = parts.uid, .role = "t", .node = parts.node};
  pod.index = static_cast<int>(view.pods.size());
  pod.main_runs = true;
  if (parts.leaves) pod.deletion = job::Deletion{};
  view.pods.push_back(std::move(pod));
}
const std::map<std::string, PodRequests> kRequests = {{"job", {{"t", {{"cpu", 1000}}}}}};

TEST(ObserveScaling, CountsAsManyAsWereDecidedAndTakesTheOthersForLeaving) {
  job::JobView view = Elastic(2);
  std::vector<std::shared_ptr<const reconcile::LoadPod>> load;
  for (const char* uid : {"a", "b", "c"}) {  // the third is one too many, and has not been told so yet
    AddPod(view, {.uid = uid, .node = "n1"});
    load.push_back(Pod({.uid = uid, .node = "n1"}));
  }
  load.push_back(Pod({.uid = "theirs", .node = "n1", .leaves = true}));
  const ScalingScene scene = ObserveScaling({view}, kRequests, load, {Node("n1")});
  EXPECT_EQ(scene.cluster.requested.Get("cpu"), 2000);
  EXPECT_EQ(scene.cluster.nodes[0].free.Get("cpu"), 0);
  EXPECT_EQ(scene.cluster.nodes[0].leaving.Get("cpu"), 2000);
  ASSERT_THAT(scene.roles, SizeIs(1));
  EXPECT_THAT(scene.roles[0].pods, ElementsAre("n1", "n1"));
  EXPECT_FALSE(scene.roles[0].settled);
}

TEST(ObserveScaling, TakesALabelThatAPodWantsForSomethingThatFewNodesHave) {
  const auto waiting = Pod({.uid = "w", .selector = R"({"disk":"n2"})"});
  const ScalingScene scene = ObserveScaling({}, {}, {waiting}, {Node("n1"), Node("n2")});
  ASSERT_THAT(scene.waiting, SizeIs(1));
  const std::string label = StrCat(kNodeLabel, "disk=n2");
  EXPECT_EQ(scene.waiting[0].pods[0].Get(label), 1);
  EXPECT_EQ(scene.cluster.nodes[0].free.Get(label), 0);
  EXPECT_GT(scene.cluster.nodes[1].free.Get(label), 0);
}

TEST(ObserveScaling, KnowsWhichNodesTakeWhom) {
  const auto tainted = [](std::string_view key) {
    return StrCat(R"({"taints":[{"key":")", key, R"(","effect":"NoSchedule"}]})");
  };
  const ScalingScene scene = ObserveScaling(
      {}, {}, {},
      {Node("free"), Node("gpus", tainted("nvidia.com/gpu")), Node("theirs", tainted("example.com/mine")),
       Node("cordoned", R"({"unschedulable":true})")});
  std::vector<std::pair<std::string, std::string>> nodes;
  for (const job::scale::Node& node : scene.cluster.nodes) nodes.emplace_back(node.name, node.only_for);
  EXPECT_THAT(nodes, ElementsAre(std::pair("free", ""), std::pair("gpus", "nvidia.com/gpu")));
  EXPECT_EQ(scene.cluster.total.Get("cpu"), 8000);
}

}  // namespace
}  // namespace trainyard::ops
