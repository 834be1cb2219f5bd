#include "controllers/node_health.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'714'557'600);  // 2024-05-01T10:00:00Z
SteadyTime At(int seconds) { return SteadyTime() + absl::Seconds(seconds); }

Document ParsedJson(std::string_view json) { return ParseJson(json).value(); }
ObservedNode Node(std::string_view json) { return ObserveNode(std::string(json)).value(); }

TEST(NodeHealth, CountsOnlyNewSigns) {
  NodeHealth health{.heard = At(0)};
  const NodeTimes times{.grace = absl::Seconds(10), .startup_grace = absl::Seconds(20)};
  EXPECT_TRUE(NoteLease(health, "t1", At(3)));
  EXPECT_FALSE(NoteLease(health, "t1", At(5))) << "the same renewal seen again is no sign of life";
  EXPECT_EQ(LostAt(health, times, true), At(13));
  EXPECT_TRUE(NoteHeartbeat(health, "h1", At(6)));
  EXPECT_EQ(LostAt(health, times, true), At(16));
  EXPECT_EQ(LostAt(health, times, false), At(26)) << "a node that starts has more time";
  EXPECT_TRUE(NoteLease(health, "t0", At(7))) << "a clock that was set back is a sign of life all the same";
}

// Whether a node that is silent from the first pass on is lost after passes at these times.
bool IsLostAfter(const std::vector<absl::Duration>& gaps) {
  const NodeTimes times{.grace = absl::Seconds(16)};
  WatchedTime watched;
  SteadyTime clock = At(1000);
  NotePass(watched, PassInterval(times), clock);
  const NodeHealth health{.heard = watched.now};
  for (const absl::Duration gap : gaps) NotePass(watched, PassInterval(times), clock = clock + gap);
  return watched.now >= LostAt(health, times, true);
}

TEST(WatchedTime, LosesASilentNodeOnlyAfterItsGraceWithTheJudgeOnSchedule) {
  using Gaps = std::vector<absl::Duration>;
  EXPECT_FALSE(IsLostAfter(Gaps(15, absl::Seconds(1))));
  EXPECT_TRUE(IsLostAfter(Gaps(16, absl::Seconds(1))));
  EXPECT_TRUE(IsLostAfter(Gaps(160, absl::Milliseconds(100)))) << "early passes count in full";
  EXPECT_FALSE(IsLostAfter({absl::Hours(1)})) << "the machine was suspended";
  EXPECT_FALSE(IsLostAfter(Gaps(15, absl::Seconds(1.5)))) << "many passes were a little late";
  EXPECT_TRUE(IsLostAfter(Gaps(16, absl::Seconds(10)))) << "a judge that is always late decides in the end";
}

TEST(WatchedTime, SaysHowLateAPassIs) {
  WatchedTime watched;
  EXPECT_EQ(NotePass(watched, absl::Seconds(1), At(5)), absl::ZeroDuration()) << "nobody expected the first";
  EXPECT_EQ(NotePass(watched, absl::Seconds(1), At(6)), absl::ZeroDuration());
  EXPECT_EQ(NotePass(watched, absl::Seconds(1), At(10)), absl::Seconds(3));
}

TEST(MarkUnknown, SaysThatNothingIsKnownOfTheNode) {
  Document node = ParsedJson(R"({"status":{"conditions":[
      {"type":"MemoryPressure","status":"False","reason":"Fine","message":"m",
       "lastTransitionTime":"2020-01-01T00:00:00Z"},
      {"type":"Ready","status":"True","reason":"KubeletReady","message":"m","lastHeartbeatTime":"h",
       "lastTransitionTime":"2020-01-01T00:00:00Z"},
      {"type":"Other","status":"True"}]}})");
  EXPECT_TRUE(MarkUnknown(node, kNow));
  const Array& conditions = *ArrayAt(node, {"status", "conditions"});
  ASSERT_EQ(conditions.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(StringAt(conditions[i], {"status"}), "Unknown");
    EXPECT_EQ(StringAt(conditions[i], {"reason"}), "NodeStatusUnknown");
    EXPECT_EQ(StringAt(conditions[i], {"lastTransitionTime"}), "2024-05-01T10:00:00Z");
  }
  EXPECT_EQ(StringAt(conditions[1], {"lastHeartbeatTime"}), "h") << "it is not ours to say";
  EXPECT_EQ(StringAt(conditions[2], {"status"}), "True");
  EXPECT_FALSE(MarkUnknown(node, kNow + absl::Hours(1)));
}

TEST(MarkUnknown, SaysThatANodeHasNeverSpoken) {
  Document node = ParsedJson(R"({"status":{}})");
  EXPECT_TRUE(MarkUnknown(node, kNow));
  EXPECT_EQ(StringAt(ArrayAt(node, {"status", "conditions"})->at(0), {"reason"}), "NodeStatusNeverUpdated");
}

std::vector<std::string> Taints(const ObservedNode& node) {
  std::vector<std::string> texts;
  for (const kube::Taint& taint : WantedTaints(node)) {
    texts.push_back(StrCat(taint.key.view(), ":", taint.effect.view()));
  }
  return texts;
}

TEST(WantedTaints, FollowFromConditions) {
  const auto node = [](std::string_view ready, std::string_view more = "", std::string_view spec = "{}") {
    return Node(StrCat(R"({"spec":)", spec, R"(,"status":{"conditions":[{"type":"Ready","status":")", ready,
                       R"("})", more, "]}}"));
  };
  EXPECT_THAT(Taints(node("True")), IsEmpty());
  EXPECT_THAT(Taints(node("False")), ElementsAre("node.kubernetes.io/not-ready:NoSchedule",
                                                 "node.kubernetes.io/not-ready:NoExecute"));
  EXPECT_THAT(Taints(node("Unknown")), ElementsAre("node.kubernetes.io/unreachable:NoSchedule",
                                                   "node.kubernetes.io/unreachable:NoExecute"));
  EXPECT_THAT(Taints(node("True", R"(,{"type":"DiskPressure","status":"True"})")),
              ElementsAre("node.kubernetes.io/disk-pressure:NoSchedule"));
  EXPECT_THAT(Taints(node("True", R"(,{"type":"DiskPressure","status":"False"})")), IsEmpty());
  EXPECT_THAT(Taints(node("True", "", R"({"unschedulable":true})")),
              ElementsAre("node.kubernetes.io/unschedulable:NoSchedule"));
  EXPECT_THAT(Taints(Node("{}")), IsEmpty()) << "a node that has said nothing yet is not lost";
}

TEST(CorrectTaints, ChangesOnlyWhatIsOurs) {
  Document document = ParsedJson(R"({
      "spec":{"taints":[{"key":"mine","effect":"NoExecute"},
                        {"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"t"},
                        {"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"}]},
      "status":{"conditions":[{"type":"Ready","status":"False"}]}})");
  const ObservedNode before = Node(PrintJson(document));
  EXPECT_TRUE(NeedsTaints(before));
  CorrectTaints(document, WantedTaints(before), kNow);
  EXPECT_EQ(*ArrayAt(document, {"spec", "taints"}), ParsedJson(R"([{"key":"mine","effect":"NoExecute"},
                       {"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"},
                       {"key":"node.kubernetes.io/not-ready","effect":"NoExecute",
                        "timeAdded":"2024-05-01T10:00:00Z"}])")
                                                        .get_array());
  EXPECT_FALSE(NeedsTaints(Node(PrintJson(document))));
}

TEST(CorrectTaints, RemovesAllThatARecoveredNodeHas) {
  Document document = ParsedJson(R"({
      "spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}]},
      "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_TRUE(NeedsTaints(Node(PrintJson(document))));
  CorrectTaints(document, {}, kNow);
  EXPECT_EQ(Find(document, {"spec", "taints"}), nullptr);
  EXPECT_FALSE(NeedsTaints(Node(PrintJson(document))));
}

kube::Taint Taint(std::string_view key, std::string_view effect = "NoExecute", std::string_view value = "") {
  return {.key = kube::SharedText(key), .value = kube::SharedText(value), .effect = kube::SharedText(effect)};
}
std::vector<Toleration> Tolerations(std::string_view json) {
  return ObservePod(StrCat(R"({"spec":{"tolerations":)", json, "}}")).value().tolerations;
}

TEST(StaysFor, IsAsLongAsEveryTaintIsTolerated) {
  struct Case {
    const char* that;
    const char* tolerations;
    std::vector<kube::Taint> taints;
    std::optional<absl::Duration> stays;
  };
  const Case cases[] = {
      {"without taints it stays", "[]", {}, std::nullopt},
      {"what is not tolerated ends it at once", "[]", {Taint("x")}, absl::ZeroDuration()},
      {"only NoExecute ends anything", "[]", {Taint("x", "NoSchedule")}, std::nullopt},
      {"it stays for as long as it says",
       R"([{"key":"x","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}])",
       {Taint("x")},
       absl::Seconds(300)},
      {"for ever if it says no time", R"([{"key":"x","operator":"Exists"}])", {Taint("x")}, std::nullopt},
      {"the shortest time counts",
       R"([{"key":"x","operator":"Exists","tolerationSeconds":30},{"key":"y","operator":"Exists","tolerationSeconds":20}])",
       {Taint("x"), Taint("y")},
       absl::Seconds(20)},
      {"one taint that is not tolerated is enough",
       R"([{"key":"x","operator":"Exists"}])",
       {Taint("x"), Taint("y")},
       absl::ZeroDuration()},
      {"another value is not tolerated",
       R"([{"key":"x","operator":"Equal","value":"a"}])",
       {Taint("x", "NoExecute", "b")},
       absl::ZeroDuration()},
      {"the same value is", R"([{"key":"x","value":"a"}])", {Taint("x", "NoExecute", "a")}, std::nullopt},
      {"another effect is not tolerated",
       R"([{"key":"x","operator":"Exists","effect":"NoSchedule"}])",
       {Taint("x")},
       absl::ZeroDuration()},
      {"no key is every key", R"([{"operator":"Exists"}])", {Taint("x"), Taint("y")}, std::nullopt},
      {"a negative time is none",
       R"([{"operator":"Exists","tolerationSeconds":-5}])",
       {Taint("x")},
       absl::ZeroDuration()},
  };
  for (const Case& c : cases) EXPECT_EQ(StaysFor(Tolerations(c.tolerations), c.taints), c.stays) << c.that;
}

TEST(MarkPodNotReady, ChangesPodsThatAreReadyOnly) {
  Document pod = ParsedJson(R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_TRUE(MarkPodNotReady(pod, "n1", kNow));
  const Document& ready = ArrayAt(pod, {"status", "conditions"})->at(0);
  EXPECT_EQ(StringAt(ready, {"status"}), "False");
  EXPECT_EQ(StringAt(ready, {"reason"}), "NodeNotReady");
  EXPECT_FALSE(MarkPodNotReady(pod, "n1", kNow));
  Document other = ParsedJson(R"({"status":{}})");
  EXPECT_FALSE(MarkPodNotReady(other, "n1", kNow));
}

}  // namespace
}  // namespace trainyard::controllers
