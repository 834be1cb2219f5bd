#include "controllers/node_lifecycle.h"

#include "controllers/control_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const kube::Resource kPods = kube::Resource::Pods();
const kube::Resource kNodes = kube::Resource::Nodes();
const kube::Resource kLeases = kube::Resource::Leases();

constexpr NodeTimes kTimes{
    .grace = absl::Seconds(10), .startup_grace = absl::Seconds(20), .orphan_grace = absl::Seconds(30)};

class NodeLifecycleTest : public ::testing::Test {
 protected:
  void MakeNode(const std::string& name) {
    world_.Create(kNodes, "", StrCat(R"({"metadata":{"name":")", name, R"("}})"));
    world_.Create(kLeases, "kube-node-lease", StrCat(R"({"metadata":{"name":")", name, R"("}})"));
    Report(name, "True");
    Renew(name);
    world_.Settle();
  }
  void Renew(const std::string& name) {
    Document lease = *world_.Find(kLeases, {"kube-node-lease", name});
    MakeObjectAt(lease, {"spec"})["renewTime"] = PrintMicroTime(world_.clock().Now());
    world_.Update(kLeases, {"kube-node-lease", name}, lease);
  }
  // The node says how it is.
  void Report(const std::string& name, std::string_view ready) {
    Document node = *world_.Find(kNodes, {"", name});
    MakeObjectAt(node, {"status"})["conditions"] =
        Array{Object{{"type", "Ready"},
                     {"status", ready},
                     {"reason", "KubeletReady"},
                     {"lastHeartbeatTime", PrintTime(world_.clock().Now())},
                     {"lastTransitionTime", PrintTime(world_.clock().Now())}}};
    world_.Update(kNodes, {"", name}, node, "status");
  }
  std::string Ready(const std::string& name) {
    return ConditionOf(*world_.Find(kNodes, {"", name}), "Ready");
  }
  static std::string ConditionOf(const Document& object, std::string_view type) {
    if (const Array* conditions = ArrayAt(object, {"status", "conditions"})) {
      for (const Document& condition : *conditions) {
        if (StringAt(condition, {"type"}) != type) continue;
        return StrCat(StringAt(condition, {"status"}), " ", StringAt(condition, {"reason"}));
      }
    }
    return "";
  }
  std::vector<std::string> Taints(const std::string& name) {
    std::vector<std::string> texts;
    const Document node = *world_.Find(kNodes, {"", name});
    if (const Array* taints = ArrayAt(node, {"spec", "taints"})) {
      for (const Document& taint : *taints) {
        texts.push_back(StrCat(StringAt(taint, {"key"}), ":", StringAt(taint, {"effect"})));
      }
    }
    return texts;
  }
  void MakePod(const std::string& name, const std::string& node, int toleration = 30,
               std::string_view phase = "Running") {
    world_.Create(kPods, "default",
                  StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"nodeName":")", node,
                         R"(","containers":[{"name":"c","image":"i"}],"tolerations":[
                            {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
                             "tolerationSeconds":)",
                         toleration,
                         R"(},{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
                             "tolerationSeconds":)",
                         toleration, "}]}}"));
    Document pod = *world_.Find(kPods, {"default", name});
    pod.get_object()["status"] = Object{{"phase", phase},
                                        {"podIP", "127.1.0.1"},
                                        {"conditions", Array{Object{{"type", "Ready"}, {"status", "True"}}}}};
    world_.Update(kPods, {"default", name}, pod, "status");
  }
  // Being deleted, gone, or none of both.
  std::string PodState(const std::string& name) {
    const auto pod = world_.Find(kPods, {"default", name});
    return !pod ? "gone" : IsBeingDeleted(*pod) ? "ending" : "there";
  }
  std::function<void()> Renewing(const std::string& name) {
    return [this, name] { Renew(name); };
  }
  // A machine so busy that each pass of the controllers is late.
  void BeBusy(int passes, absl::Duration gap) {
    for (int i = 0; i < passes; ++i) {
      world_.clock().Advance(gap);
      world_.Settle();
    }
  }
  void Lose(const std::string& name) {
    world_.Wait(absl::Seconds(15));
    ASSERT_EQ(Ready(name), "Unknown NodeStatusUnknown");
  }

  ControlledServer world_{{.nodes = kTimes}};
  const std::vector<std::string> kUnreachable = {"node.kubernetes.io/unreachable:NoSchedule",
                                                 "node.kubernetes.io/unreachable:NoExecute"};
};

TEST_F(NodeLifecycleTest, ANodeThatRenewsItsLeaseStaysReady) {
  MakeNode("n1");
  world_.Wait(absl::Minutes(5), Renewing("n1"));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  EXPECT_THAT(Taints("n1"), IsEmpty());
}

TEST_F(NodeLifecycleTest, ANodeThatReportsItsStatusStaysReady) {
  MakeNode("n1");
  world_.Wait(absl::Minutes(5), [&] { Report("n1", "True"); });
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
}

TEST_F(NodeLifecycleTest, AHealthyNodeCostsNoRequests) {
  MakeNode("n1");
  MakePod("p1", "n1");
  world_.Settle();
  world_.transport().requests().clear();
  world_.Wait(absl::Minutes(5), Renewing("n1"));
  EXPECT_THAT(world_.transport().requests(), IsEmpty());
}

TEST_F(NodeLifecycleTest, ASilentNodeIsUnknownAfterItsGraceAndNotBefore) {
  MakeNode("n1");
  MakePod("p1", "n1");
  world_.Wait(absl::Seconds(9));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  world_.Wait(absl::Seconds(2));
  EXPECT_EQ(Ready("n1"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(Taints("n1"), kUnreachable);
  EXPECT_EQ(ConditionOf(*world_.Find(kPods, {"default", "p1"}), "Ready"), "False NodeNotReady");
  EXPECT_THAT(world_.Events("default"), Contains("NodeNotReady Node/n1"));
}

TEST_F(NodeLifecycleTest, ANodeThatNeverReportedHasMoreTime) {
  world_.Create(kNodes, "", R"({"metadata":{"name":"n1"}})");
  world_.Wait(absl::Seconds(19));
  EXPECT_EQ(Ready("n1"), "");
  world_.Wait(absl::Seconds(2));
  EXPECT_EQ(Ready("n1"), "Unknown NodeStatusNeverUpdated");
  EXPECT_EQ(Taints("n1"), kUnreachable);
}

TEST_F(NodeLifecycleTest, TheNodesOwnClockDoesNotMatter) {
  MakeNode("n1");
  // It is years behind, and runs ten times too slow.
  int ticks = 0;
  world_.Wait(absl::Minutes(2), [&] {
    Document lease = *world_.Find(kLeases, {"kube-node-lease", "n1"});
    MakeObjectAt(lease, {"spec"})["renewTime"] =
        PrintMicroTime(absl::FromUnixSeconds(1000) + absl::Milliseconds(100) * ++ticks);
    world_.Update(kLeases, {"kube-node-lease", "n1"}, lease);
  });
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  // Ours jumps ahead.
  world_.clock().SetWall(world_.clock().Now() + absl::Hours(24));
  Renew("n1");
  world_.Wait(absl::Seconds(5));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
}

TEST_F(NodeLifecycleTest, ANodeThatComesBackLosesItsTaintsAndKeepsItsPods) {
  MakeNode("n1");
  MakePod("p1", "n1");
  Lose("n1");
  Report("n1", "True");
  world_.Wait(absl::Minutes(2), Renewing("n1"));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  EXPECT_THAT(Taints("n1"), IsEmpty());
  EXPECT_EQ(PodState("p1"), "there") << "its toleration was not over";
}

TEST_F(NodeLifecycleTest, PodsLeaveALostNodeWhenTheirTolerationIsOver) {
  MakeNode("n1");
  MakePod("short", "n1", 20);
  MakePod("long", "n1", 60);
  MakePod("finished", "n1", 20, "Succeeded");
  Lose("n1");
  EXPECT_EQ(PodState("short"), "there");
  world_.Wait(absl::Seconds(20));
  EXPECT_EQ(PodState("short"), "ending") << "it stays so while the node is away";
  EXPECT_EQ(ConditionOf(*world_.Find(kPods, {"default", "short"}), "DisruptionTarget"),
            "True DeletionByTaintManager");
  EXPECT_EQ(PodState("long"), "there");
  world_.Wait(absl::Minutes(10));
  EXPECT_EQ(PodState("short"), "ending");
  EXPECT_EQ(PodState("long"), "ending");
  EXPECT_EQ(PodState("finished"), "there");
  EXPECT_THAT(world_.Events("default"), Contains("TaintManagerEviction Pod/short"));
}

TEST_F(NodeLifecycleTest, PodsLeaveANodeThatSaysItIsNotReady) {
  MakeNode("n1");
  MakePod("p1", "n1", 20);
  const auto not_ready = [&] {
    Report("n1", "False");
    Renew("n1");
  };
  not_ready();
  world_.Wait(absl::Seconds(5), not_ready);
  EXPECT_THAT(Taints("n1"), ElementsAre("node.kubernetes.io/not-ready:NoSchedule",
                                        "node.kubernetes.io/not-ready:NoExecute"));
  EXPECT_EQ(PodState("p1"), "there");
  world_.Wait(absl::Seconds(20), not_ready);
  EXPECT_EQ(PodState("p1"), "ending");
}

TEST_F(NodeLifecycleTest, PodsLeaveANodeThatAUserTaints) {
  MakeNode("n1");
  MakePod("p1", "n1");
  Document node = *world_.Find(kNodes, {"", "n1"});
  node.at("spec").get_object()["taints"] = Array{Object{{"key", "mine"}, {"effect", "NoExecute"}}};
  world_.Update(kNodes, {"", "n1"}, node);
  world_.Settle();
  EXPECT_EQ(PodState("p1"), "ending");
}

TEST_F(NodeLifecycleTest, ACordonedNodeTakesNoNewPods) {
  MakeNode("n1");
  Document node = *world_.Find(kNodes, {"", "n1"});
  node.at("spec").get_object()["unschedulable"] = true;
  world_.Update(kNodes, {"", "n1"}, node);
  world_.Settle();
  EXPECT_THAT(Taints("n1"), ElementsAre("node.kubernetes.io/unschedulable:NoSchedule"));
}

TEST_F(NodeLifecycleTest, AControllerThatStartsGivesEveryNodeAFullGrace) {
  MakeNode("n1");
  world_.StopControllers();
  world_.clock().Advance(absl::Hours(1));
  world_.StartControllers();
  world_.Wait(absl::Seconds(9));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  world_.Wait(absl::Seconds(2));
  EXPECT_EQ(Ready("n1"), "Unknown NodeStatusUnknown");
}

TEST_F(NodeLifecycleTest, AControllerThatSleptBlamesNobodyForIt) {
  MakeNode("n1");
  MakePod("p1", "n1", 20);
  world_.Settle();
  world_.clock().Advance(absl::Minutes(10));
  world_.Wait(absl::Seconds(9));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  world_.Wait(absl::Seconds(2));
  ASSERT_EQ(Ready("n1"), "Unknown NodeStatusUnknown");
  // Neither does a pod's toleration run out while we sleep.
  world_.clock().Advance(absl::Minutes(10));
  world_.Wait(absl::Seconds(10));
  EXPECT_EQ(PodState("p1"), "there");
  world_.Wait(absl::Seconds(15));
  EXPECT_EQ(PodState("p1"), "ending");
}

TEST_F(NodeLifecycleTest, ABusyMachineLosesNoNode) {
  for (const char* node : {"n1", "n2", "n3"}) MakeNode(node);
  for (int beat = 0; beat < 5; ++beat) {
    BeBusy(4, absl::Seconds(4));  // no pass is later than a quarter of the grace, but all of them are
    for (const char* node : {"n1", "n2", "n3"}) Renew(node);
  }
  for (const char* node : {"n1", "n2", "n3"}) EXPECT_EQ(Ready(node), "True KubeletReady") << node;
}

TEST_F(NodeLifecycleTest, ANodeThatDiesOnABusyMachineIsUnknownInTheEnd) {
  MakeNode("n1");
  BeBusy(20, absl::Seconds(7));
  EXPECT_EQ(Ready("n1"), "Unknown NodeStatusUnknown");
}

TEST_F(NodeLifecycleTest, AHeartbeatThatWaitsForTheDiskIsHeard) {
  MakeNode("n1");
  // The disk is slow: the heartbeat is stored no earlier than the judge's own write.
  world_.transport().SetIntercept(
      [&](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.method != "GET" && request.target.find("/leases/n1") == std::string::npos) Renew("n1");
        return std::nullopt;
      });
  world_.Wait(absl::Minutes(1));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
}

TEST_F(NodeLifecycleTest, ANodeIsNotSaidToBeLostWhileNothingCanBeStored) {
  MakeNode("n1");
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.target.find("/namespaces/kube-system/leases/") == std::string::npos) return std::nullopt;
        return absl::UnavailableError("the disk is full");
      });
  world_.Wait(absl::Minutes(1));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
}

TEST_F(NodeLifecycleTest, AWatchThatFailsIsNoSilenceOfTheNode) {
  MakeNode("n1");
  world_.StopControllers();
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.target.find("/leases?") == std::string::npos) return std::nullopt;
        return absl::UnavailableError("down");
      });
  world_.StartControllers();
  world_.Wait(absl::Minutes(2), Renewing("n1"));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
}

TEST_F(NodeLifecycleTest, ANodeIsNotSaidToBeLostWhileItCannotBeLookedFor) {
  MakeNode("n1");
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.target.find("/leases/n1") == std::string::npos) return std::nullopt;
        return absl::UnavailableError("down");
      });
  world_.Wait(absl::Minutes(2));
  EXPECT_EQ(Ready("n1"), "True KubeletReady");
  world_.transport().SetIntercept(nullptr);
  world_.Wait(absl::Minutes(1));
  EXPECT_EQ(Ready("n1"), "Unknown NodeStatusUnknown");
}

TEST_F(NodeLifecycleTest, PodsOfANodeThatIsGoneAreRemovedAfterAWhile) {
  MakeNode("n1");
  MakePod("p1", "n1", 3600);
  world_.Settle();
  world_.Delete(kNodes, {"", "n1"});
  world_.Wait(absl::Seconds(29));
  EXPECT_EQ(PodState("p1"), "there");
  world_.Wait(absl::Seconds(2));
  EXPECT_EQ(PodState("p1"), "gone");
}

TEST_F(NodeLifecycleTest, ANodeThatIsMadeAnewKeepsItsPods) {
  MakeNode("n1");
  MakePod("p1", "n1", 3600);
  world_.Settle();
  world_.Delete(kNodes, {"", "n1"});
  world_.Wait(absl::Seconds(20));
  world_.Create(kNodes, "", R"({"metadata":{"name":"n1"}})");
  Report("n1", "True");
  world_.Wait(absl::Minutes(2), Renewing("n1"));
  EXPECT_EQ(PodState("p1"), "there");
}

TEST_F(NodeLifecycleTest, PodsThatEndOnANodeOutOfServiceAreGone) {
  MakeNode("n1");
  MakePod("ending", "n1", 3600);
  MakePod("stays", "n1", 3600);
  Lose("n1");
  world_.Delete(kPods, {"default", "ending"});
  world_.Wait(absl::Minutes(1));
  EXPECT_EQ(PodState("ending"), "ending");
  Document node = *world_.Find(kNodes, {"", "n1"});
  node.at("spec").at("taints").get_array().emplace_back(
      Object{{"key", "node.kubernetes.io/out-of-service"}, {"value", "x"}, {"effect", "NoSchedule"}});
  world_.Update(kNodes, {"", "n1"}, node);
  world_.Settle();
  EXPECT_EQ(PodState("ending"), "gone");
  EXPECT_EQ(PodState("stays"), "there");
}

}  // namespace
}  // namespace trainyard::controllers
