#include "controllers/scheduler/scheduler.h"

#include <functional>
#include <optional>
#include <string>

#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"

namespace trainyard::scheduler {
namespace {

using ::testing::HasSubstr;

// The scheduler on an API server without nodes: what a test says of them is all that there is.
class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() {
    events_.Start();
    scheduler_.Start();
  }
  ~SchedulerTest() override {
    scheduler_.Stop();
    events_.Stop();
  }

  void MakeNode(const std::string& name, int cpus) {
    const std::string amounts = StrCat(R"({"cpu":")", cpus, R"(","pods":"10"})");
    Must(api_.Create(kube::Resource::Nodes(), "", StrCat(R"({"metadata":{"name":")", name, R"("}})")));
    Must(api_.Patch(kube::Resource::Nodes(), {.name = name},
                    StrCat(R"({"status":{"capacity":)", amounts, R"(,"allocatable":)", amounts,
                           R"(,"conditions":[{"type":"Ready","status":"True"}]}})"),
                    {.type = kube::PatchType::kMerge}, "status"));
  }
  void MakePod(const std::string& name, int cpus, int priority = 0, const std::string& scheduler = "",
               const std::string& group = "") {
    const std::string labels =
        group.empty() ? "" : StrCat(R"(,"labels":{"scheduling.x-k8s.io/pod-group":")", group, R"("})");
    Must(api_.Create(
        kube::Resource::Pods(), "default",
        StrCat(R"({"metadata":{"name":")", name, R"(")", labels, R"(},"spec":{"priority":)", priority,
               scheduler.empty() ? "" : StrCat(R"(,"schedulerName":")", scheduler, R"(")"),
               R"(,"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":")", cpus,
               R"("}}}]}})")));
  }
  // A PodGroup, and as many pods of 1 cpu: "a-0", "a-1" and so on.
  void MakeGang(const std::string& name, int size, int priority = 0) {
    Must(api_.Create(kube::Resource::PodGroups(), "default",
                     StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"minMember":)", size, "}}")));
    for (int i = 0; i < size; ++i) MakePod(StrCat(name, "-", i), 1, priority, "", name);
  }
  int CountPlaced(const std::string& gang, int size) {
    int count = 0;
    for (int i = 0; i < size; ++i) {
      const std::string node = NodeOf(StrCat(gang, "-", i));
      count += node.empty() || node == "gone" ? 0 : 1;
    }
    return count;
  }
  std::optional<Document> Pod(const std::string& name) {
    const auto found = api_.Get(kube::Resource::Pods(), {.ns = "default", .name = name});
    return found.ok() ? std::optional(ParseJson(*found).value()) : std::nullopt;
  }
  std::string NodeOf(const std::string& name) {
    const auto pod = Pod(name);
    return pod ? std::string(StringAt(*pod, {"spec", "nodeName"})) : "gone";
  }
  // What the pod is told of why it waits.
  std::string WhyNot(const std::string& name) {
    const auto pod = Pod(name);
    const Array* conditions = pod ? ArrayAt(*pod, {"status", "conditions"}) : nullptr;
    if (conditions == nullptr) return "";
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"type"}) == "PodScheduled")
        return std::string(StringAt(condition, {"message"}));
    }
    return "";
  }
  void Delete(const std::string& name) {
    Must(api_.Delete(kube::Resource::Pods(), {.ns = "default", .name = name}, {.grace_seconds = 0}));
  }
  // Looked at whenever a pod has changed.
  bool Eventually(const std::function<bool()>& condition) {
    const auto changes = api_.Watch(kube::Resource::Pods(), "default", {});
    while (changes.ok() && !condition()) {
      if (!(*changes)->Next(absl::Seconds(30)).ok()) return false;
    }
    return changes.ok();
  }

  template <typename T>
  static void Must(const T& done) {
    if constexpr (std::is_same_v<T, absl::Status>) {
      ASSERT_TRUE(done.ok()) << done;
    } else {
      ASSERT_TRUE(done.ok()) << done.status();
    }
  }

  Clock& clock_ = Clock::System();
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  const std::unique_ptr<apiserver::ApiServer> server_ =
      apiserver::ApiServer::Start({.store = store_.get()}).value();
  apiserver::DirectTransport transport_{*server_, "test"};
  kube::Api api_{transport_, clock_, IdSource(1)};
  kube::EventRecorder events_{api_, clock_, IdSource(2), {.component = "default-scheduler"}};
  Scheduler scheduler_{api_, clock_, IdSource(3), events_};
};

TEST_F(SchedulerTest, PutsAPodWhereItFits) {
  MakeNode("small", 1);
  MakeNode("large", 8);
  MakePod("wide", 4);
  EXPECT_TRUE(Eventually([this] { return NodeOf("wide") == "large"; }));
}

TEST_F(SchedulerTest, SaysWhyAPodWaitsAndPlacesItWhenThatIsOver) {
  MakePod("waits", 2);
  ASSERT_TRUE(Eventually([this] { return !WhyNot("waits").empty(); }));
  EXPECT_THAT(WhyNot("waits"), HasSubstr("no nodes available"));
  MakeNode("n1", 1);
  ASSERT_TRUE(Eventually([this] { return WhyNot("waits").find("Insufficient cpu") != std::string::npos; }));
  EXPECT_THAT(WhyNot("waits"), HasSubstr("n1: Insufficient cpu"));
  MakeNode("n2", 2);
  EXPECT_TRUE(Eventually([this] { return NodeOf("waits") == "n2"; }));
}

TEST_F(SchedulerTest, NeverPutsMoreOnANodeThanItHas) {
  MakeNode("n1", 3);
  for (int i = 0; i < 6; ++i) MakePod(StrCat("p", i), 1);
  const auto placed = [this] {
    int count = 0;
    for (int i = 0; i < 6; ++i) count += NodeOf(StrCat("p", i)) == "n1" ? 1 : 0;
    return count;
  };
  const auto told = [this] {
    int count = 0;
    for (int i = 0; i < 6; ++i) count += WhyNot(StrCat("p", i)).empty() ? 0 : 1;
    return count;
  };
  ASSERT_TRUE(Eventually([&] { return placed() == 3 && told() == 3; }));
  for (int i = 0; i < 6; ++i) {
    if (NodeOf(StrCat("p", i)) != "n1") continue;
    Delete(StrCat("p", i));
    break;
  }
  EXPECT_TRUE(Eventually([&] { return placed() == 3; })) << "the room of one that went is given to the next";
}

TEST_F(SchedulerTest, LeavesPodsOfOtherSchedulersAlone) {
  MakeNode("n1", 4);
  MakePod("theirs", 1, 0, "another");
  MakePod("ours", 1);
  ASSERT_TRUE(Eventually([this] { return NodeOf("ours") == "n1"; }));
  EXPECT_EQ(NodeOf("theirs"), "");
  EXPECT_EQ(WhyNot("theirs"), "");
}

TEST_F(SchedulerTest, MakesRoomForWhatIsMoreImportant) {
  MakeNode("n1", 2);
  MakePod("little", 2, 1);
  ASSERT_TRUE(Eventually([this] { return NodeOf("little") == "n1"; }));
  MakePod("great", 2, 100);
  // A pod on a node ends when its node says so; here the test is the node.
  ASSERT_TRUE(Eventually([this] {
    const auto pod = Pod("little");
    return pod && !StringAt(*pod, {"metadata", "deletionTimestamp"}).empty();
  }));
  EXPECT_EQ(NodeOf("great"), "");
  Delete("little");
  EXPECT_TRUE(Eventually([this] { return NodeOf("great") == "n1"; }));
}

TEST_F(SchedulerTest, PutsNoPodOfAGangAnywhereUntilAllFit) {
  MakeNode("n1", 6);
  MakeGang("big", 8);
  const auto told = [this] {
    for (int i = 0; i < 8; ++i) {
      if (WhyNot(StrCat("big-", i)) != "gang of 8 needs 8 cpu; 6 are free") return false;
    }
    return true;
  };
  ASSERT_TRUE(Eventually(told));
  EXPECT_EQ(CountPlaced("big", 8), 0);
  MakeGang("small", 4);  // behind it, and fits
  ASSERT_TRUE(Eventually([this] { return CountPlaced("small", 4) == 4; }));
  EXPECT_EQ(CountPlaced("big", 8), 0);
  MakeNode("n2", 6);
  ASSERT_TRUE(Eventually([this] { return CountPlaced("big", 8) > 0; }));
  EXPECT_TRUE(Eventually([this] { return CountPlaced("big", 8) == 8; }));
}

TEST_F(SchedulerTest, ReplacesOneMemberOfAGangThatRuns) {
  MakeNode("n1", 4);
  MakeGang("gang", 4);
  ASSERT_TRUE(Eventually([this] { return CountPlaced("gang", 4) == 4; }));
  Delete("gang-1");
  MakePod("gang-1", 1, 0, "", "gang");
  EXPECT_TRUE(Eventually([this] { return CountPlaced("gang", 4) == 4; }));
}

TEST_F(SchedulerTest, WaitsForThePodGroupThatAPodNames) {
  MakeNode("n1", 4);
  MakePod("early", 1, 0, "", "late");
  ASSERT_TRUE(Eventually([this] { return !WhyNot("early").empty(); }));
  EXPECT_THAT(WhyNot("early"), HasSubstr("PodGroup default/late"));
  Must(api_.Create(kube::Resource::PodGroups(), "default",
                   R"({"metadata":{"name":"late"},"spec":{"minMember":1}})"));
  EXPECT_TRUE(Eventually([this] { return NodeOf("early") == "n1"; }));
}

}  // namespace
}  // namespace trainyard::scheduler
