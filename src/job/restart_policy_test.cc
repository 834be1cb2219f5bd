#include "job/restart_policy.h"

#include "gtest/gtest.h"

namespace trainyard::job {
namespace {

constexpr PodFailure Exit(int code) { return {.cause = FailureCause::kProgram, .exit_code = code}; }

struct RestartRow {
  RestartPolicy policy;
  PodFailure failure;
  RestartVerdict verdict;
  bool counts;
};

TEST(DecideRestart, FollowsTheTable) {
  using enum RestartPolicy;
  using enum FailureCause;
  using enum RestartVerdict;
  const RestartRow rows[] = {
      {kAlways, Exit(1), kMakeAgain, true},
      {kAlways, Exit(137), kMakeAgain, true},
      {kAlways, {.cause = kDisruption}, kMakeAgain, false},
      {kAlways, {.cause = kNodeLost}, kMakeAgain, false},
      {kAlways, {.cause = kDeadline}, kMakeAgain, true},
      {kOnFailure, Exit(1), kMakeAgain, true},
      {kOnFailure, {.cause = kDisruption}, kMakeAgain, false},
      {kOnFailure, {.cause = kRejected}, kMakeAgain, false},
      {kOnFailure, {.cause = kUnknown}, kMakeAgain, true},
      {kNever, Exit(1), kGiveUp, true},
      {kNever, Exit(137), kGiveUp, true},
      {kNever, {.cause = kDisruption}, kGiveUp, true},
      {kNever, {.cause = kNodeLost}, kGiveUp, true},
      {kExitCode, Exit(1), kGiveUp, true},
      {kExitCode, Exit(127), kGiveUp, true},
      {kExitCode, Exit(128), kMakeAgain, true},
      {kExitCode, Exit(130), kMakeAgain, true},
      {kExitCode, Exit(137), kMakeAgain, true},
      {kExitCode, Exit(143), kMakeAgain, true},
      {kExitCode, Exit(255), kMakeAgain, true},
      {kExitCode, {.cause = kDisruption}, kMakeAgain, false},
      {kExitCode, {.cause = kDisruption, .exit_code = 1}, kMakeAgain, false},
      {kExitCode, {.cause = kNodeLost}, kMakeAgain, false},
      {kExitCode, {.cause = kRejected}, kMakeAgain, false},
      {kExitCode, {.cause = kDeadline}, kGiveUp, true},
      {kExitCode, {.cause = kUnknown}, kMakeAgain, true},
  };
  for (const RestartRow& row : rows) {
    const RestartDecision decision = DecideRestart(TfRestartRules(row.policy), row.failure, 0);
    const std::string what = std::string(Print(row.failure.cause)) + " " +
                             std::to_string(row.failure.exit_code.value_or(-1)) + " under " +
                             std::string(Print(row.policy));
    EXPECT_EQ(decision.verdict, row.verdict) << what;
    EXPECT_TRUE(row.verdict != kMakeAgain || decision.counts == row.counts) << what;
    EXPECT_EQ(decision.why.empty(), row.verdict == kMakeAgain) << what;
    EXPECT_EQ(decision.wait, absl::ZeroDuration()) << "the first time is at once: " << what;
  }
}

TEST(DecideRestart, FollowsTheTableOfAiTrainingJobs) {
  using enum RestartPolicy;
  using enum FailureCause;
  // After: an exit code that is listed, one that is not, none, a lost node, a lost accelerator, an eviction.
  const std::pair<RestartPolicy, std::string_view> rows[] = {
      {kNever, "------"},      {kAlways, "++++++"},   {kOnFailure, "+++--+"},
      {kOnNodeFail, "---+++"}, {kExitCode, "+----+"}, {kOnNodeFailWithExitCode, "+--+++"},
  };
  const PodFailure failures[] = {Exit(137),
                                 Exit(1),
                                 {.cause = kUnknown},
                                 {.cause = kNodeLost},
                                 {.cause = kAccelerator},
                                 {.cause = kDisruption}};
  const ExitCodes codes = ExitCodes::Parse("137, 128").value();
  for (const auto& [policy, expected] : rows) {
    for (std::size_t i = 0; i < std::size(failures); ++i) {
      const RestartDecision decision = DecideRestart(AiRestartRules(policy, codes), failures[i], 0);
      const bool again = decision.verdict == RestartVerdict::kMakeAgain;
      EXPECT_EQ(again ? '+' : '-', expected[i]) << Print(policy) << " after " << Print(failures[i].cause);
      EXPECT_TRUE(!again || decision.counts) << "every restart of an AITrainingJob counts";
    }
    EXPECT_EQ(DecideRestart(AiRestartRules(policy, codes), {.cause = kCreation}, 3),
              RestartDecision({.verdict = RestartVerdict::kMakeAgain}))
        << "what has not begun is made again at once: " << Print(policy);
  }
}

TEST(DecideRestart, WaitsLongerEachTimeUpToFiveMinutes) {
  const int seconds[] = {0, 10, 20, 40, 80, 160, 300, 300};
  for (int attempt = 0; attempt < 8; ++attempt) {
    EXPECT_EQ(DecideRestart(TfRestartRules(RestartPolicy::kExitCode), Exit(137), attempt).wait,
              absl::Seconds(seconds[attempt]))
        << attempt;
  }
  EXPECT_EQ(DecideRestart(TfRestartRules(RestartPolicy::kExitCode), Exit(137), 1'000'000).wait,
            absl::Minutes(5));
}

TEST(DecideRestart, DoesNotWaitAfterALongRun) {
  PodFailure failure = Exit(137);
  failure.ran = absl::Minutes(10);
  EXPECT_EQ(DecideRestart(TfRestartRules(RestartPolicy::kExitCode), failure, 5).wait, absl::ZeroDuration());
}

TEST(DecideRestart, DoesNotWaitForAProgramThatSomebodyKilledAfterAMoment) {
  PodFailure failure = Exit(137);
  failure.ran = absl::Seconds(1);
  EXPECT_EQ(DecideRestart(AiRestartRules(RestartPolicy::kOnFailure, {}), failure, 3).wait, absl::Seconds(40));
  failure.killed = true;
  EXPECT_EQ(DecideRestart(AiRestartRules(RestartPolicy::kOnFailure, {}), failure, 3).wait,
            absl::ZeroDuration());
  failure.ran = absl::Milliseconds(900);
  EXPECT_EQ(DecideRestart(AiRestartRules(RestartPolicy::kOnFailure, {}), failure, 3).wait, absl::Seconds(40));
}

TEST(DecideRestart, WaitsAsTheRulesSay) {
  RestartRules rules = AiRestartRules(RestartPolicy::kOnFailure, {});
  rules.first_wait = absl::Seconds(1);
  EXPECT_EQ(DecideRestart(rules, Exit(1), 1).wait, absl::Seconds(1));
  EXPECT_EQ(DecideRestart(rules, Exit(1), 4).wait, absl::Seconds(8));
  EXPECT_EQ(DecideRestart(rules, Exit(1), 100).wait, absl::Minutes(5));
}

TEST(ClassifyFailure, KnowsAProgramThatSomebodyKilled) {
  const auto killed = [](int code, std::string reason) {
    return ClassifyFailure(
               {.phase = Phase::kFailed, .end = ContainerEnd{.exit_code = code, .reason = std::move(reason)}})
        .killed;
  };
  EXPECT_TRUE(killed(137, "Error"));
  EXPECT_TRUE(killed(143, "Error"));
  EXPECT_FALSE(killed(137, "OOMKilled"));
  EXPECT_FALSE(killed(139, "Error"));
}

TEST(DecideRestart, DoesNotWaitForALostNode) {
  EXPECT_EQ(DecideRestart(TfRestartRules(RestartPolicy::kAlways), {.cause = FailureCause::kNodeLost}, 5).wait,
            absl::ZeroDuration());
}

TEST(DecideRestart, CountsTheShutdownOfANodeForNoKind) {
  const PodFailure shutdown{.cause = FailureCause::kDisruption, .shutdown = true};
  EXPECT_FALSE(DecideRestart(TfRestartRules(RestartPolicy::kAlways), shutdown, 0).counts);
  EXPECT_FALSE(DecideRestart(AiRestartRules(RestartPolicy::kAlways, ExitCodes()), shutdown, 0).counts);
  EXPECT_TRUE(DecideRestart(AiRestartRules(RestartPolicy::kAlways, ExitCodes()),
                            {.cause = FailureCause::kDisruption}, 0)
                  .counts);
}

PodView Failed(std::string reason) {
  return {.phase = Phase::kFailed, .reason = std::move(reason), .node = "node-2"};
}

TEST(ClassifyFailure, KnowsWhoseDoingItWas) {
  EXPECT_EQ(ClassifyFailure(Failed("Evicted")).cause, FailureCause::kDisruption);
  EXPECT_FALSE(ClassifyFailure(Failed("Evicted")).shutdown);
  EXPECT_TRUE(ClassifyFailure(Failed("Terminated")).shutdown);
  EXPECT_EQ(ClassifyFailure(Failed("Preempting")).cause, FailureCause::kDisruption);
  EXPECT_EQ(ClassifyFailure(Failed("NodeLost")).cause, FailureCause::kDisruption);
  EXPECT_EQ(ClassifyFailure(Failed("OutOfcpu")).cause, FailureCause::kRejected);
  EXPECT_EQ(ClassifyFailure(Failed("DeadlineExceeded")).cause, FailureCause::kDeadline);
  EXPECT_EQ(ClassifyFailure(Failed("")).cause, FailureCause::kUnknown);
  PodView pod = Failed("");
  pod.end = ContainerEnd{.exit_code = 137, .reason = "OOMKilled"};
  EXPECT_EQ(ClassifyFailure(pod).cause, FailureCause::kProgram);
  pod.disrupted = true;
  EXPECT_EQ(ClassifyFailure(pod).cause, FailureCause::kDisruption);
}

TEST(DescribeFailure, SaysWhatAndWhere) {
  PodView pod = Failed("");
  pod.end = ContainerEnd{.exit_code = 137, .reason = "OOMKilled"};
  EXPECT_EQ(DescribeFailure(pod, ClassifyFailure(pod)), "exited 137 (OOMKilled) on node-2");
  pod.end->container = "sidecar";
  EXPECT_EQ(DescribeFailure(pod, ClassifyFailure(pod)),
            "exited 137 (OOMKilled) in container sidecar on node-2");
  EXPECT_EQ(DescribeFailure(Failed("Evicted"), ClassifyFailure(Failed("Evicted"))),
            "was disrupted (Evicted) on node-2");
  EXPECT_EQ(DescribeFailure(pod, {.cause = FailureCause::kNodeLost}), "was lost with node-2");
}

}  // namespace
}  // namespace trainyard::job
