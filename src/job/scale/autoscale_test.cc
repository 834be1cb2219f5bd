#include "job/scale/autoscale.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::job::scale {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kCpu = 1000;  // one, in thousandths

// Nodes of four cpus, and roles on them.
class Scene {
 public:
  explicit Scene(int nodes, std::int64_t cpu = 4 * kCpu) {
    for (int i = 0; i < nodes; ++i) {
      cluster.nodes.push_back({.name = "node-" + std::to_string(i), .free = {{"cpu", cpu}}});
      cluster.total.Add("cpu", cpu);
    }
  }
  // A pod that runs; its node, or nothing if none has room.
  std::string Bind(const Resources& pod) {
    cluster.requested.Add(pod);
    for (Node& node : cluster.nodes) {
      if (!node.free.Holds(pod)) continue;
      node.free.Add(pod, -1);
      return node.name;
    }
    return "";
  }
  ElasticRole& Add(const std::string& job, int least, int most, int now) {
    ElasticRole role{.job = job, .role = "trainer", .least = least, .most = most, .now = now};
    role.each = {{"cpu", kCpu}};
    for (int i = 0; i < now; ++i) role.pods.push_back(Bind(role.each));
    role.settled = std::ranges::none_of(role.pods, &std::string::empty);
    role.waits = std::ranges::all_of(role.pods, &std::string::empty);
    roles.push_back(std::move(role));
    return roles.back();
  }
  std::vector<std::string> Plan() const {
    std::vector<std::string> out;
    for (const Change& change : PlanScaling(cluster, roles, waiting, limits)) {
      out.push_back(change.job + ": " + std::to_string(change.from) + " -> " + std::to_string(change.to) +
                    ", " + change.why);
    }
    return out;
  }

  Cluster cluster;
  std::vector<ElasticRole> roles;
  std::vector<WaitingPods> waiting;
  Limits limits{.max_load = 1};
};

TEST(PlanScaling, GrowsWhileThereIsRoom) {
  Scene scene(2);
  scene.Add("a", 1, 5, 1);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 1 -> 5, the cluster has room"));
  scene.roles[0].most = 20;
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 1 -> 8, the cluster has room"));
}

TEST(PlanScaling, LeavesThePartOfTheCpuThatIsNotToBeUsed) {
  Scene scene(25);
  scene.limits.max_load = 0.97;
  scene.Add("a", 1, 100, 1);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 1 -> 97, the cluster has room"));
}

TEST(PlanScaling, RaisesTheLeastFulfilledFirst) {
  Scene scene(2);
  scene.Add("a", 1, 5, 3);  // half
  scene.Add("b", 1, 5, 1);  // not at all
  EXPECT_THAT(scene.Plan(),
              ElementsAre("a: 3 -> 4, the cluster has room", "b: 1 -> 4, the cluster has room"));
}

TEST(PlanScaling, LowersTheMostFulfilledWhenTooMuchIsAskedFor) {
  Scene scene(2);
  scene.Add("a", 1, 4, 4);          // wholly
  scene.Add("b", 1, 7, 4);          // half
  scene.Bind({{"cpu", 2 * kCpu}});  // somebody else's
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 4 -> 2, more cpu is asked for than there is to give"));
}

TEST(PlanScaling, NeverGoesBelowTheLeast) {
  Scene scene(1);
  scene.Add("a", 3, 4, 4);
  scene.Bind({{"cpu", 4 * kCpu}});
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 4 -> 3, more cpu is asked for than there is to give"));
}

TEST(PlanScaling, MakesRoomForAJobThatWaits) {
  Scene scene(2);
  scene.Add("a", 2, 8, 8);
  scene.Add("b", 2, 8, 2);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 8 -> 6, more cpu is asked for than there is to give"));
}

TEST(PlanScaling, MakesRoomOnANodeWhereTheWholeWouldBeEnough) {
  Scene scene(2);
  scene.Add("a", 1, 8, 6);
  scene.waiting.push_back({.job = "big", .pods = {{{"cpu", 3 * kCpu}}}});  // node-1 has but two free
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 6 -> 5, big waits for room"));
}

TEST(PlanScaling, DoesNotShrinkForWhatWouldNotFitAnyway) {
  Scene scene(2);
  scene.Add("a", 1, 8, 6);
  scene.waiting.push_back({.job = "huge", .pods = {{{"cpu", 100 * kCpu}}}});
  scene.cluster.requested.Add("cpu", 100 * kCpu);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 6 -> 8, the cluster has room")) << "nor is it kept from growing";
}

TEST(PlanScaling, LowersOnlyWhoHasWhatIsMissing) {
  Scene scene(2);
  scene.cluster.nodes[0].free.Add("gpu", 2 * kCpu);
  scene.cluster.total.Add("gpu", 2 * kCpu);
  scene.Add("cpu-only", 1, 2, 2);
  ElasticRole& gpu = scene.Add("with-gpu", 1, 4, 1);
  gpu.each.Add("gpu", kCpu);
  gpu.now = 2;
  gpu.pods = {"node-0", "node-0"};
  scene.cluster.nodes[0].free.Add("gpu", -2 * kCpu);
  scene.cluster.requested.Add("gpu", 2 * kCpu);
  scene.waiting.push_back({.job = "new", .pods = {{{"gpu", kCpu}}}});
  scene.cluster.requested.Add("gpu", kCpu);
  EXPECT_THAT(scene.Plan(), ElementsAre("with-gpu: 2 -> 1, more gpu is asked for than there is to give"));
}

TEST(PlanScaling, WaitsForTheLastChangeToSettle) {
  Scene scene(2);
  scene.Add("a", 1, 8, 3).settled = false;
  EXPECT_THAT(scene.Plan(), IsEmpty());
}

TEST(PlanScaling, TakesBackPodsThatFindNoNode) {
  Scene scene(1);
  ElasticRole& role = scene.Add("a", 1, 8, 3);
  scene.Bind({{"cpu", kCpu}});
  role.now = 5;  // it was to grow, and somebody else was faster
  role.pods.resize(5);
  role.settled = false;
  scene.cluster.requested.Add("cpu", 2 * kCpu);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 5 -> 3, the pods beyond find no node"));
}

TEST(PlanScaling, KeepsRoomForPodsThatAreOnTheirWay) {
  Scene scene(1);
  ElasticRole& role = scene.Add("a", 1, 8, 1);
  role.now = 3;
  role.pods.resize(3);
  role.settled = false;
  scene.cluster.requested.Add("cpu", 2 * kCpu);
  scene.Add("b", 1, 8, 1);
  EXPECT_THAT(scene.Plan(), IsEmpty()) << "the two that are free are taken";
}

TEST(PlanScaling, TakesTheRoomOfThoseWhoLeaveForGiven) {
  Scene scene(1);
  scene.Add("a", 1, 4, 2).settled = false;  // two have just been told to go, and take their time
  scene.cluster.nodes[0].free.Add("cpu", -2 * kCpu);
  scene.cluster.nodes[0].leaving.Add("cpu", 2 * kCpu);
  scene.waiting.push_back({.job = "new", .pods = {{{"cpu", 2 * kCpu}}}});
  scene.cluster.requested.Add("cpu", 2 * kCpu);
  EXPECT_THAT(scene.Plan(), IsEmpty()) << "it has given way already";
}

TEST(PlanScaling, DoesNotGrowIntoRoomThatIsNotFreeYet) {
  Scene scene(1);
  scene.Add("a", 1, 4, 2);
  scene.cluster.nodes[0].free.Add("cpu", -2 * kCpu);
  scene.cluster.nodes[0].leaving.Add("cpu", 2 * kCpu);
  EXPECT_THAT(scene.Plan(), IsEmpty());
}

TEST(PlanScaling, GrowsBesideAPodThatWaitsForSomethingElseThanRoom) {
  Scene scene(2);
  scene.Add("a", 1, 8, 2);
  scene.waiting.push_back({.job = "odd", .pods = {{{"cpu", kCpu}}}});
  scene.cluster.requested.Add("cpu", kCpu);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 2 -> 7, the cluster has room"))
      << "what is free is the pod's first";
}

TEST(PlanScaling, DoesNotShrinkForARoleThatFitsNowhereThoughItsJobHasBegun) {
  Scene scene(2);
  scene.Add("a", 1, 8, 6);
  ElasticRole& giant = scene.Add("giant", 1, 3, 0);
  giant.now = 1;
  giant.pods = {""};
  giant.each = {{"cpu", 100 * kCpu}};
  giant.settled = giant.waits = false;
  scene.cluster.requested.Add("cpu", 100 * kCpu);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 6 -> 8, the cluster has room"));
}

TEST(PlanScaling, MakesRoomForARoleThatHasNotItsLeast) {
  Scene scene(2);
  scene.Add("a", 1, 8, 7);
  ElasticRole& role = scene.Add("b", 2, 4, 1);
  role.now = 2;
  role.pods.resize(2);
  role.settled = false;
  scene.cluster.requested.Add("cpu", kCpu);
  scene.limits.max_load = 1.2;  // there is enough of everything, but nowhere to go
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 7 -> 6, b waits for room"));
}

TEST(PlanScaling, SendsOnlyWhoAsksForItToANodeThatIsKeptForIt) {
  Scene scene(2);
  scene.cluster.nodes[1].only_for = "gpu";
  scene.cluster.nodes[1].free.Add("gpu", 2 * kCpu);
  scene.cluster.total.Add("gpu", 2 * kCpu);
  scene.Add("a", 1, 8, 1);
  ElasticRole& gpu = scene.Add("b", 1, 8, 1);
  gpu.each.Add("gpu", kCpu);
  gpu.pods = {"node-1"};
  scene.cluster.nodes[1].free.Add("gpu", -kCpu);
  scene.cluster.requested.Add("gpu", kCpu);
  EXPECT_THAT(scene.Plan(),
              ElementsAre("a: 1 -> 3, the cluster has room", "b: 1 -> 2, the cluster has room"));
}

TEST(Resources, HaveNoSumThatDoesNotFit) {
  Resources sum{{"cpu", std::numeric_limits<std::int64_t>::max()}};
  sum.Add(sum);
  sum.Add(sum, 3);
  EXPECT_EQ(sum.Get("cpu"), std::numeric_limits<std::int64_t>::max());
  sum.Add(sum, -5);
  EXPECT_LE(sum.Get("cpu"), 0);
}

TEST(PlanScaling, LeavesARoleAloneThatCannotChange) {
  Scene scene(2);
  scene.Add("a", 2, 2, 2);
  EXPECT_EQ(Fulfilment(scene.roles[0]), 1);
  EXPECT_THAT(scene.Plan(), IsEmpty());
}

TEST(PlanScaling, DoesNotUseANodeTwice) {
  // Nodes of one and a half: the free amounts must fall with each pod that is planned.
  Scene scene(4, 1500);
  scene.Add("a", 1, 100, 1);
  EXPECT_THAT(scene.Plan(), ElementsAre("a: 1 -> 4, the cluster has room"));
}

// What holds of any cluster: bounds, no overload of our making, and a plan that has come true is followed by
// none.
RC_GTEST_PROP(PlanScalingProperties, HoldForAnyCluster, ()) {
  Scene scene(*rc::gen::inRange(1, 5));
  scene.limits.max_load = *rc::gen::element(0.8, 0.97, 1.0);
  const int jobs = *rc::gen::inRange(1, 5);
  for (int i = 0; i < jobs; ++i) {
    const int least = *rc::gen::inRange(1, 4);
    const int most = least + *rc::gen::inRange(0, 6);
    scene.Add("job-" + std::to_string(i), least, most, *rc::gen::inRange(least, most + 1));
  }
  if (*rc::gen::arbitrary<bool>()) scene.Bind({{"cpu", *rc::gen::inRange(1, 6) * kCpu}});
  const bool over_before = !FindOverload(scene.cluster, scene.limits).empty();
  const auto changes = PlanScaling(scene.cluster, scene.roles, scene.waiting, scene.limits);
  RC_ASSERT(changes == PlanScaling(scene.cluster, scene.roles, scene.waiting, scene.limits));
  Cluster after = scene.cluster;
  for (const Change& change : changes) {
    const auto role = std::ranges::find(scene.roles, change.job, &ElasticRole::job);
    RC_ASSERT(change.to != change.from);
    RC_ASSERT(change.to >= role->least);
    RC_ASSERT(change.to <= role->most);
    RC_ASSERT(!change.why.empty());
    if (!role->settled && !role->waits) RC_ASSERT(change.to < change.from);
    after.requested.Add(role->each, change.to - change.from);
  }
  const bool over_after = !FindOverload(after, scene.limits).empty();
  RC_ASSERT((over_before || !over_after));
}

// Decided, done and decided again: it comes to rest, and does not go up and down.
RC_GTEST_PROP(PlanScalingProperties, ComeToRest, ()) {
  const int nodes = *rc::gen::inRange(1, 5);
  struct Job {
    int least, most, now;
  };
  std::vector<Job> jobs;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    const int least = *rc::gen::inRange(1, 3);
    jobs.push_back({least, least + *rc::gen::inRange(0, 6), least});
  }
  for (int round = 0; round < 10; ++round) {
    Scene scene(nodes);
    scene.limits.max_load = 0.97;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      scene.Add("job-" + std::to_string(i), jobs[i].least, jobs[i].most, jobs[i].now);
    const auto changes = PlanScaling(scene.cluster, scene.roles, scene.waiting, scene.limits);
    if (changes.empty()) return;
    for (const Change& change : changes) {
      const auto role = std::ranges::find(scene.roles, change.job, &ElasticRole::job);
      jobs[static_cast<std::size_t>(role - scene.roles.begin())].now = change.to;
    }
  }
  RC_FAIL("it does not come to rest");
}

}  // namespace
}  // namespace trainyard::job::scale
