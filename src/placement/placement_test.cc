#include "placement/placement.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::placement {
namespace {

std::shared_ptr<const PodDemand> Pod(std::string_view name, std::string_view spec,
                                     std::string_view labels = "{}") {
  auto pod = ParseDemand(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":"u-)", name,
                                R"(","labels":)", labels, R"(},"spec":)", spec, "}"));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return std::make_shared<const PodDemand>(*std::move(pod));
}

std::shared_ptr<const PodDemand> Asks(std::string_view name, std::string_view resource,
                                      std::string_view amount, int priority = 0) {
  return Pod(name,
             StrCat(R"({"priority":)", priority, R"(,"containers":[{"name":"c","resources":{"requests":{")",
                    resource, R"(":")", amount, R"("}}}]})"));
}

NodeRoom Node(std::string_view name, std::string_view more = "", std::string_view labels = "{}",
              std::string_view ready = "True") {
  auto node = kube::ParseNode(
      StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, R"(},"spec":{)", more,
             R"(},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"3","nvidia.com/gpu":"1"},
                                     "conditions":[{"type":"Ready","status":")",
             ready, R"("}]}})"));
  EXPECT_TRUE(node.ok()) << node.status();
  return {.node = std::make_shared<const kube::CompactNode>(*std::move(node))};
}

ClusterRoom Cluster(std::vector<NodeRoom> rooms) {
  ClusterRoom cluster;
  for (NodeRoom& room : rooms) cluster[room.name()] = std::move(room);
  return cluster;
}

NodeRoom With(NodeRoom room, std::vector<std::shared_ptr<const PodDemand>> pods) {
  for (auto& pod : pods) room.Put(std::move(pod));
  return room;
}

std::string Why(const PodDemand& pod, const ClusterRoom& cluster) {
  const Placement placement = PlacePod(pod, cluster);
  return placement.node.empty() ? PrintUnschedulable(pod, placement) : placement.node;
}

TEST(Place, TakesTheNodeThatIsUsedLeast) {
  const ClusterRoom cluster = Cluster({With(Node("a"), {Asks("x", "cpu", "2")}), Node("b")});
  EXPECT_EQ(PlacePod(*Asks("p", "cpu", "1"), cluster).node, "b");
}

TEST(Place, SaysWhatIsMissingOnEachNode) {
  const ClusterRoom cluster =
      Cluster({With(Node("a"), {Asks("x", "cpu", "3")}), Node("b", R"("unschedulable":true)")});
  EXPECT_EQ(Why(*Asks("p", "cpu", "2"), cluster),
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
            "a: Insufficient cpu (asks for 2, 1 of 4 is free); b: node(s) were unschedulable");
}

TEST(Place, CountsWhatNoNodeHas) {
  EXPECT_EQ(Why(*Asks("p", "example.com/fpga", "1"), Cluster({Node("a")})),
            "0/1 nodes are available: 1 Insufficient example.com/fpga. a: Insufficient example.com/fpga "
            "(asks for 1, 0 of 0 is free)");
}

TEST(Place, GivesOutAnAcceleratorOnce) {
  const ClusterRoom cluster = Cluster({With(Node("a"), {Asks("x", "nvidia.com/gpu", "1")}), Node("b")});
  EXPECT_EQ(PlacePod(*Asks("p", "nvidia.com/gpu", "1"), cluster).node, "b");
}

TEST(Place, PutsNoMorePodsOnANodeThanItTakes) {
  const ClusterRoom cluster =
      Cluster({With(Node("a"), {Asks("x", "cpu", "0"), Asks("y", "cpu", "0"), Asks("z", "cpu", "0")})});
  EXPECT_EQ(Why(*Asks("p", "cpu", "0"), cluster),
            "0/1 nodes are available: 1 Too many pods. a: Too many pods (takes 3)");
}

TEST(Place, ObeysNodeSelectorsAndAffinity) {
  const ClusterRoom cluster =
      Cluster({Node("a", "", R"({"disk":"hdd","n":"1"})"), Node("b", "", R"({"disk":"ssd","n":"5"})")});
  EXPECT_EQ(PlacePod(*Pod("p", R"({"nodeSelector":{"disk":"ssd"}})"), cluster).node, "b");
  const auto affine = [](std::string_view expression) {
    return Pod(
        "p",
        StrCat(
            R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)",
            expression, "]}}}}"));
  };
  EXPECT_EQ(
      PlacePod(*affine(R"({"matchExpressions":[{"key":"n","operator":"Gt","values":["3"]}]})"), cluster).node,
      "b");
  EXPECT_EQ(PlacePod(*affine(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]}]})"),
                     cluster)
                .node,
            "a");
  EXPECT_EQ(PlacePod(*affine("{}"), cluster).node, "");
}

TEST(Place, PrefersWhatThePodPrefers) {
  const ClusterRoom cluster =
      Cluster({With(Node("a", "", R"({"fast":"yes"})"), {Asks("x", "cpu", "2")}), Node("b")});
  const auto pod =
      Pod("p", R"({"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
      {"weight":10,"preference":{"matchExpressions":[{"key":"fast","operator":"Exists"}]}}]}}})");
  EXPECT_EQ(PlacePod(*pod, cluster).node, "a");
}

TEST(Place, ObeysTaintsUnlessTheyAreTolerated) {
  const ClusterRoom cluster =
      Cluster({Node("a", R"("taints":[{"key":"gpu","value":"only","effect":"NoSchedule"}])")});
  EXPECT_EQ(Why(*Pod("p", "{}"), cluster),
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: only}. a: node(s) had "
            "untolerated taint {gpu: only}");
  EXPECT_EQ(
      PlacePod(*Pod("p", R"({"tolerations":[{"key":"gpu","operator":"Equal","value":"only"}]})"), cluster)
          .node,
      "a");
  EXPECT_EQ(PlacePod(*Pod("p", R"({"tolerations":[{"operator":"Exists"}]})"), cluster).node, "a");
  EXPECT_EQ(
      PlacePod(*Pod("p", R"({"tolerations":[{"key":"gpu","operator":"Equal","value":"other"}]})"), cluster)
          .node,
      "");
}

TEST(Place, AvoidsNodesThatAreNotReady) {
  EXPECT_EQ(PlacePod(*Pod("p", "{}"), Cluster({Node("a", "", "{}", "Unknown"), Node("b")})).node, "b");
}

TEST(Place, KeepsHostPortsApart) {
  const std::string_view spec =
      R"({"containers":[{"name":"c","ports":[{"containerPort":1,"hostPort":80}]}]})";
  const ClusterRoom cluster =
      Cluster({With(Node("a"), {Pod("x", spec)}), With(Node("b"), {Asks("y", "cpu", "3")})});
  EXPECT_EQ(PlacePod(*Pod("p", spec), cluster).node, "b");
}

TEST(Place, KeepsPodsTogetherAndApart) {
  const std::string_view zone_a = R"({"zone":"a"})";
  const std::string_view zone_b = R"({"zone":"b"})";
  const ClusterRoom cluster = Cluster({With(Node("a1", "", zone_a), {Pod("db", "{}", R"({"app":"db"})")}),
                                       Node("a2", "", zone_a), Node("b1", "", zone_b)});
  const auto term = [](std::string_view kind) {
    return StrCat(R"({"affinity":{")", kind, R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"labelSelector":{"matchLabels":{"app":"db"}},"topologyKey":"zone"}]}}})");
  };
  EXPECT_EQ(PlacePod(*Pod("p", term("podAffinity")), cluster).node, "a2");
  EXPECT_EQ(PlacePod(*Pod("p", term("podAntiAffinity")), cluster).node, "b1");
  const auto own =
      Pod("first", R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"zone"}]}}})",
          R"({"app":"web"})");
  EXPECT_NE(PlacePod(*own, cluster).node, "") << "the first of its kind may begin anywhere";
}

TEST(Place, KeepsAwayFromThoseWhoWantToBeAlone) {
  const auto loner =
      Pod("loner", R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"host"}]}}})");
  const ClusterRoom cluster = Cluster({With(Node("a", "", R"({"host":"a"})"), {loner}),
                                       With(Node("b", "", R"({"host":"b"})"), {Asks("x", "cpu", "3")})});
  EXPECT_EQ(PlacePod(*Pod("p", "{}", R"({"app":"web"})"), cluster).node, "b");
}

TEST(Place, PreemptsAsFewAndAsLowAsItCan) {
  const ClusterRoom cluster =
      Cluster({With(Node("a"), {Asks("low", "cpu", "2", 1), Asks("mid", "cpu", "2", 5)}),
               With(Node("b"), {Asks("high", "cpu", "4", 9)})});
  const Placement placement = PlacePod(*Asks("p", "cpu", "2", 7), cluster);
  EXPECT_EQ(placement.node, "");
  ASSERT_TRUE(placement.preemption);
  EXPECT_EQ(placement.preemption->node, "a");
  ASSERT_EQ(placement.preemption->victims.size(), 1U);
  EXPECT_EQ(placement.preemption->victims[0]->meta.name, "low");
}

TEST(Place, PreemptsNobodyWhenThatDoesNotHelp) {
  const ClusterRoom cluster = Cluster({With(Node("a"), {Asks("low", "cpu", "2", 1)})});
  EXPECT_FALSE(PlacePod(*Asks("p", "cpu", "9", 7), cluster).preemption);
  EXPECT_FALSE(PlacePod(*Asks("p", "cpu", "3", 1), cluster).preemption);
  const auto polite = Pod(
      "p",
      R"({"priority":7,"preemptionPolicy":"Never","containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]})");
  EXPECT_FALSE(PlacePod(*polite, cluster).preemption);
}

}  // namespace
}  // namespace trainyard::placement
