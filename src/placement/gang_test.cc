#include "placement/gang.h"

#include <map>

#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::placement {
namespace {

// A pod of 1 cpu; an empty gang: none.
PodPtr Member(std::string_view name, std::string_view gang, int priority = 0, int second = 0) {
  auto pod =
      ParseDemand(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":"u-)", name,
                         R"(","creationTimestamp":"2024-01-01T00:00:0)", second, R"(Z","labels":{)",
                         gang.empty() ? "" : StrCat(R"("scheduling.x-k8s.io/pod-group":")", gang, R"(")"),
                         R"(}},"spec":{"priority":)", priority,
                         R"(,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}})"));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return std::make_shared<const PodDemand>(*std::move(pod));
}

std::vector<PodPtr> Members(std::string_view gang, int count, int priority = 0) {
  std::vector<PodPtr> pods;
  for (int i = 0; i < count; ++i) pods.push_back(Member(StrCat(gang, "-", i), gang, priority));
  return pods;
}

ClusterRoom Cpus(int cpus, const std::vector<PodPtr>& pods = {}) {
  auto node = kube::ParseNode(StrCat(R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":")", cpus,
                                     R"(","pods":"100"},"conditions":[{"type":"Ready","status":"True"}]}})"));
  EXPECT_TRUE(node.ok()) << node.status();
  ClusterRoom cluster;
  cluster["n"].node = std::make_shared<const kube::CompactNode>(*std::move(node));
  for (const PodPtr& pod : pods) cluster["n"].Put(pod);
  return cluster;
}

struct Groups {
  std::map<std::string, std::shared_ptr<const PodGroup>> known;
  void Add(const std::string& name, int minimum, int second = 0) {
    auto group = ParsePodGroup(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":"g-)",
                                      name, R"(","creationTimestamp":"2024-01-01T00:00:0)", second,
                                      R"(Z"},"spec":{"minMember":)", minimum, "}}"));
    EXPECT_TRUE(group.ok()) << group.status();
    known[StrCat("ns/", name)] = std::make_shared<const PodGroup>(*std::move(group));
  }
  FindPodGroup Find() const {
    return [this](const kube::ObjectKey& key) {
      const auto found = known.find(key.Str());
      return found == known.end() ? nullptr : found->second;
    };
  }
};

std::vector<std::string> Placed(const Turn& turn) {
  std::vector<std::string> names;
  for (const Binding& binding : turn.bindings) names.push_back(binding.pod->meta.name);
  return names;
}

std::vector<PodPtr> Together(std::vector<PodPtr> one, const std::vector<PodPtr>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

TEST(PlaceGang, PlacesNoneOfAGangThatDoesNotFitAndSaysTheNumbers) {
  const GangPlacement placement = PlaceGang({.minimum = 40, .waiting = Members("g", 40)}, Cpus(6));
  EXPECT_TRUE(placement.placed.empty());
  EXPECT_EQ(placement.why, "gang of 40 needs 40 cpu; 6 are free");
}

TEST(PlaceGang, PlacesAllOfAGangThatFits) {
  const GangPlacement placement = PlaceGang({.minimum = 6, .waiting = Members("g", 6)}, Cpus(6));
  EXPECT_EQ(placement.placed.size(), 6U);
  EXPECT_EQ(placement.why, "");
}

TEST(PlaceGang, CountsMembersThatHaveANode) {
  const std::vector<PodPtr> all = Members("g", 4);
  const GangPlacement placement =
      PlaceGang({.minimum = 4, .held = 3, .waiting = {all[3]}}, Cpus(4, {all[0], all[1], all[2]}));
  EXPECT_EQ(placement.placed.size(), 1U);
}

TEST(PlaceGang, SaysHowManyOfARunningGangHaveANode) {
  const std::vector<PodPtr> all = Members("g", 4);
  const GangPlacement placement =
      PlaceGang({.minimum = 4, .held = 2, .waiting = {all[2], all[3]}}, Cpus(3, {all[0], all[1]}));
  EXPECT_EQ(placement.why, "gang of 4, of which 2 have a node, needs 2 cpu; 1 is free");
}

TEST(PlaceGang, WaitsUntilTheMinimumExists) {
  const GangPlacement placement = PlaceGang({.minimum = 4, .waiting = Members("g", 3)}, Cpus(6));
  EXPECT_EQ(placement.why, "gang of 4 waits until 4 of its pods exist");
}

TEST(PlaceGang, SaysWhatElseKeepsAGangFromStarting) {
  ClusterRoom cluster = Cpus(3);
  cluster["m"] = cluster["n"];  // each takes one pod of 2 cpus, and 6 cpus are free together
  auto other = kube::CompactNode(*cluster["n"].node);
  other.meta.name = "m";
  cluster["m"].node = std::make_shared<const kube::CompactNode>(other);
  std::vector<PodPtr> pods;
  for (const PodPtr& pod : Members("g", 3)) {
    PodDemand wide = *pod;
    Add(wide.requests, pod->requests, 1);
    pods.push_back(std::make_shared<const PodDemand>(wide));
  }
  const GangPlacement placement = PlaceGang({.minimum = 3, .waiting = pods}, cluster);
  EXPECT_TRUE(placement.why.starts_with("gang of 3 needs 3 places; 2 fit: 0/2 nodes are available"))
      << placement.why;
}

TEST(PlaceGang, FindsWhoMustGoOnlyIfTheWholeGangFitsThen) {
  std::vector<PodPtr> named;
  for (int i = 0; i < 4; ++i) named.push_back(Member(StrCat("low-", i), ""));
  const ClusterRoom cluster = Cpus(6, named);
  EXPECT_EQ(PlaceGang({.minimum = 6, .waiting = Members("g", 6, 100)}, cluster).preemptions.size(), 4U);
  EXPECT_TRUE(PlaceGang({.minimum = 7, .waiting = Members("g", 7, 100)}, cluster).preemptions.empty());
  EXPECT_TRUE(PlaceGang({.minimum = 6, .waiting = Members("g", 6, 0)}, cluster).preemptions.empty());
}

TEST(PlanTurn, StartsOneOfTwoGangsAndTheOlderOneFirst) {
  Groups groups;
  groups.Add("old", 4, 1);
  groups.Add("new", 4, 2);
  const Turn turn = PlanTurn(Together(Members("new", 4), Members("old", 4)), groups.Find(), Cpus(6));
  const std::vector<std::string> expected{"old-0", "old-1", "old-2", "old-3"};
  EXPECT_EQ(Placed(turn), expected);
  ASSERT_EQ(turn.unplaced.size(), 4U);
  EXPECT_EQ(turn.unplaced[0].why, "gang of 4 needs 4 cpu; 2 are free");
}

TEST(PlanTurn, LetsAGangBehindOneThatDoesNotFitStart) {
  Groups groups;
  groups.Add("old", 8, 1);
  groups.Add("new", 4, 2);
  const Turn turn = PlanTurn(Together(Members("old", 8), Members("new", 4)), groups.Find(), Cpus(6));
  EXPECT_EQ(turn.bindings.size(), 4U);
  EXPECT_EQ(turn.bindings[0].pod->meta.labels.Get(kPodGroupLabel), "new");
}

TEST(PlanTurn, PlacesMembersBeyondTheMinimumAsFarAsThereIsRoom) {
  Groups groups;
  groups.Add("g", 2);
  const Turn turn = PlanTurn(Members("g", 5), groups.Find(), Cpus(3));
  EXPECT_EQ(turn.bindings.size(), 3U);
  ASSERT_EQ(turn.unplaced.size(), 2U);
  EXPECT_TRUE(turn.unplaced[0].why.starts_with("0/1 nodes are available")) << turn.unplaced[0].why;
}

TEST(PlanTurn, PlacesPodsWithoutAGangOneByOne) {
  const std::vector<PodPtr> pods{Member("later", "", 0, 2), Member("first", "", 0, 1),
                                 Member("urgent", "", 9, 3)};
  const Turn turn = PlanTurn(pods, Groups().Find(), Cpus(2));
  const std::vector<std::string> expected{"urgent", "first"};
  EXPECT_EQ(Placed(turn), expected);
  EXPECT_EQ(turn.unplaced.size(), 1U);
}

TEST(PlanTurn, KeepsPodsWaitingWhosePodGroupDoesNotExist) {
  const Turn turn = PlanTurn(Members("g", 2), Groups().Find(), Cpus(6));
  EXPECT_TRUE(turn.bindings.empty());
  ASSERT_EQ(turn.unplaced.size(), 2U);
  EXPECT_EQ(turn.unplaced[0].why, "waits for its PodGroup ns/g, which does not exist");
}

}  // namespace
}  // namespace trainyard::placement
