#include "node/pod_plan.h"

#include "gmock/gmock.h"
#include "node/plan_testing.h"

namespace trainyard::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kOne = R"({"containers":[{"name":"main"}]})";
constexpr std::string_view kNever = R"({"restartPolicy":"Never","containers":[{"name":"main"}]})";
constexpr std::string_view kOnFailure = R"({"restartPolicy":"OnFailure","containers":[{"name":"main"}]})";

TEST(PlanPod, StartsTheSandboxThenTheContainerThenRests) {
  PlannedPod pod(kOne);
  EXPECT_THAT(pod.Plan(), ElementsAre("start sandbox"));
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(pod.State("main"), "waiting ContainerCreating");
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "it was asked for already";
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.0"));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  pod.Started("main");
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.State("main"), "running");
  EXPECT_EQ(pod.ConditionOf("Ready"), "True");
  EXPECT_EQ(pod.ConditionOf("PodScheduled"), "True");
  EXPECT_THAT(pod.events_, ElementsAre("Started: Started container main"));
  EXPECT_EQ(pod.wake_, SteadyTime::Never()) << "nothing is due";
}

TEST(PlanPod, SucceedsWhenItsLastContainerHas) {
  PlannedPod pod(R"({"restartPolicy":"Never","containers":[{"name":"a"},{"name":"b"}]})");
  pod.RunAll();
  pod.Exited("a", 0);
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.ConditionOf("Ready"), "False ContainersNotReady");
  pod.Exited("b", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
  EXPECT_EQ(pod.phase(), "Succeeded");
  EXPECT_EQ(pod.State("b"), "terminated Completed 0");
  EXPECT_EQ(pod.ConditionOf("Ready"), "False PodCompleted");
  EXPECT_EQ(pod.ConditionOf("Initialized"), "True PodCompleted");
  NoteSandboxGone(pod.record_, pod.now_, pod.back_off.reset);
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "what has succeeded stays as it is until it is deleted";
  EXPECT_EQ(pod.phase(), "Succeeded");
}

TEST(PlanPod, FailsWhenAContainerFailedThatIsNeverRestarted) {
  PlannedPod pod(kNever);
  pod.RunAll();
  pod.Exited("main", 3);
  pod.Plan();
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.State("main"), "terminated Error 3");
  EXPECT_EQ(pod.ConditionOf("ContainersReady"), "False PodFailed");
}

TEST(PlanPod, ReportsSignalsAsAShellDoesAndTellsTheWantOfMemoryFromOtherKills) {
  PlannedPod pod(kNever);
  pod.RunAll();
  pod.Killed("main", SIGKILL, true);
  pod.Plan();
  EXPECT_EQ(pod.State("main"), "terminated OOMKilled 137");
  const auto& ended = std::get<Terminated>(pod.status().containers[0].state);
  EXPECT_EQ(ended.signal, SIGKILL);

  PlannedPod other(kNever);
  other.RunAll();
  other.Killed("main", SIGTERM);
  other.Plan();
  EXPECT_EQ(other.State("main"), "terminated Error 143");
}

struct RestartCase {
  std::string_view policy;
  int code;
  bool restarts;
  std::string_view phase;
};

class RestartPolicies : public testing::TestWithParam<RestartCase> {};

TEST_P(RestartPolicies, DecideWhetherAContainerRunsAgain) {
  const RestartCase& c = GetParam();
  PlannedPod pod(StrCat(R"({"restartPolicy":")", c.policy, R"(","containers":[{"name":"main"}]})"));
  pod.RunAll();
  pod.Exited("main", c.code);
  if (c.restarts) {
    EXPECT_THAT(pod.Plan(), ElementsAre("start main.1")) << "the first time at once";
  } else {
    EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
  }
  EXPECT_EQ(pod.phase(), c.phase);
}

INSTANTIATE_TEST_SUITE_P(Table, RestartPolicies,
                         testing::Values(RestartCase{"Always", 0, true, "Running"},
                                         RestartCase{"Always", 1, true, "Running"},
                                         RestartCase{"OnFailure", 0, false, "Succeeded"},
                                         RestartCase{"OnFailure", 1, true, "Running"},
                                         RestartCase{"Never", 0, false, "Succeeded"},
                                         RestartCase{"Never", 1, false, "Failed"}),
                         [](const auto& one) { return StrCat(one.param.policy, one.param.code); });

TEST(PlanPod, WaitsTwiceAsLongBeforeEachFurtherRestart) {
  PlannedPod pod(kOnFailure);
  pod.RunAll();
  pod.Exited("main", 1);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.1"));
  pod.Started("main");
  absl::Duration expected = absl::Milliseconds(100);
  for (int attempt = 2; attempt < 20; ++attempt) {
    pod.Plan();
    pod.Exited("main", 1);
    EXPECT_THAT(pod.Plan(), IsEmpty());
    EXPECT_EQ(pod.State("main"), "waiting CrashLoopBackOff");
    EXPECT_EQ(pod.status().containers[0].last->exit_code, 1);
    EXPECT_EQ(pod.status().containers[0].restarts, attempt - 1);
    EXPECT_EQ(pod.phase(), "Running") << "it ran before";
    ASSERT_EQ(pod.WakesIn(), expected);
    pod.Advance(expected - absl::Nanoseconds(1));
    EXPECT_THAT(pod.Plan(), IsEmpty());
    pod.Advance(absl::Nanoseconds(1));
    EXPECT_THAT(pod.Plan(), ElementsAre(StrCat("start main.", attempt)));
    pod.Started("main");
    expected = std::min(expected * 2, absl::Minutes(5));
  }
  EXPECT_EQ(expected, absl::Minutes(5));
  EXPECT_THAT(pod.events_, Contains("BackOff: Back-off restarting failed container main in pod p_ns(u1)"));
}

TEST(PlanPod, ForgivesAContainerThatRanForTenMinutes) {
  PlannedPod pod(kOne);
  pod.RunAll();
  for (int i = 0; i < 5; ++i) {
    pod.Exited("main", 1);
    pod.Plan();
    pod.Advance(absl::Minutes(5));
    pod.RunAll();
  }
  pod.Advance(absl::Minutes(10));
  pod.Exited("main", 1);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.6")) << "at once, as the first time";
}

TEST(PlanPod, RestartsAsAKubeletDoesWhenToldToWaitTenSeconds) {
  PlannedPod pod(kOne);
  pod.back_off.first = absl::Seconds(10);
  pod.RunAll();
  pod.Exited("main", 1);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.1"));
  pod.Started("main");
  pod.Exited("main", 1);
  pod.Plan();
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(10));
  EXPECT_THAT(std::get<Waiting>(pod.status().containers[0].state).message,
              HasSubstr("back-off 10s restarting failed container=main"));
}

// ---- init containers

constexpr std::string_view kInit =
    R"({"restartPolicy":"OnFailure","initContainers":[{"name":"i1"},{"name":"i2"}],"containers":[{"name":"main"}]})";

TEST(PlanPod, RunsInitContainersOneAfterTheOtherAndThenTheRest) {
  PlannedPod pod(kInit);
  pod.Plan();
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), ElementsAre("start i1.0"));
  EXPECT_EQ(pod.State("main"), "waiting PodInitializing");
  pod.Started("i1");
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(pod.ConditionOf("Initialized"), "False ContainersNotInitialized");
  pod.Exited("i1", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("start i2.0"));
  pod.Started("i2");
  pod.Exited("i2", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.0"));
  EXPECT_EQ(pod.ConditionOf("Initialized"), "True");
}

TEST(PlanPod, RestartsAFailedInitContainerButNotOneThatSucceeded) {
  PlannedPod pod(kInit);
  pod.Plan();
  NoteSandboxReady(pod.record_);
  pod.Plan();
  pod.Started("i1");
  pod.Exited("i1", 1);
  EXPECT_THAT(pod.Plan(), ElementsAre("start i1.1"));
  EXPECT_EQ(pod.phase(), "Pending");
  pod.Started("i1");
  pod.Exited("i1", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("start i2.0"));
}

TEST(PlanPod, FailsForGoodWhenAnInitContainerFailsThatIsNeverRestarted) {
  PlannedPod pod(
      R"({"restartPolicy":"Never","initContainers":[{"name":"i"}],"containers":[{"name":"main"}]})");
  pod.Plan();
  NoteSandboxReady(pod.record_);
  pod.Plan();
  pod.Started("i");
  pod.Exited("i", 9);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.State("main"), "waiting PodInitializing");
}

// ---- what keeps a container from starting

TEST(PlanPod, ShowsWhyAContainerCannotBeConfiguredAndStartsItOnceItCan) {
  PlannedPod pod(kOne);
  pod.problems["main"] = {.reason = "CreateContainerConfigError", .message = "configmap \"c\" not found"};
  pod.Plan();
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.State("main"), "waiting CreateContainerConfigError");
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_THAT(pod.events_, ElementsAre("Failed: Error: configmap \"c\" not found")) << "told once";
  pod.problems.clear();
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.0"));
}

TEST(PlanPod, WaitsForItsVolumesBeforeItMakesASandbox) {
  PlannedPod pod(kOne);
  pod.volume_problem = "configmap \"c\" not found";
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_THAT(pod.events_, ElementsAre("FailedMount: configmap \"c\" not found"));
  pod.volume_problem.clear();
  EXPECT_THAT(pod.Plan(), ElementsAre("start sandbox"));
}

TEST(PlanPod, CountsAProgramThatCannotBeStartedAsARunThatFailed) {
  PlannedPod pod(kNever);
  pod.Plan();
  NoteSandboxReady(pod.record_);
  pod.Plan();
  pod.StartFailed("main", "exec: \"nonsense\": executable file not found in $PATH");
  pod.Plan();
  EXPECT_EQ(pod.State("main"), "terminated StartError 128");
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_THAT(pod.events_, ElementsAre(HasSubstr("Failed: Error: exec: \"nonsense\"")));
}

TEST(PlanPod, TriesASandboxAgainThatCouldNotBeMade) {
  PlannedPod pod(kOne);
  pod.Plan();
  NoteSandboxFailed(pod.record_, "no space left", pod.now_);
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.WakesIn(), absl::Milliseconds(200));
  pod.Advance(absl::Milliseconds(200));
  EXPECT_THAT(pod.Plan(), ElementsAre("start sandbox"));
  NoteSandboxFailed(pod.record_, "no space left", pod.now_);
  pod.Plan();
  EXPECT_EQ(pod.WakesIn(), absl::Milliseconds(400));
  EXPECT_THAT(pod.events_, ElementsAre("FailedCreatePodSandBox: no space left"));
}

TEST(PlanPod, RefusesWhatTheNodeCannotRunAndSaysWhy) {
  PlannedPod pod(kOne);
  pod.refusal = "this machine permits no mount namespaces";
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.status().reason, "UnsupportedPod");
  EXPECT_EQ(pod.status().message, pod.refusal);
}

TEST(PlanPod, StartsAgainWhatDiedWithItsShim) {
  PlannedPod pod(kOne);
  pod.RunAll();
  NoteSandboxGone(pod.record_, pod.now_, pod.back_off.reset);
  EXPECT_THAT(pod.Plan(), ElementsAre("start sandbox"));
  EXPECT_EQ(pod.State("main"), "terminated ContainerStatusUnknown 137");
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.1"));

  PlannedPod never(kNever);
  never.RunAll();
  NoteSandboxGone(never.record_, never.now_, never.back_off.reset);
  EXPECT_THAT(never.Plan(), IsEmpty());
  EXPECT_EQ(never.phase(), "Failed");
}

// ---- the end

TEST(PlanPod, AsksPolitelyThenKillsWhenTheGraceIsOverThenFinishes) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.Delete(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(30));
  pod.Advance(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 9"));
  pod.Killed("main", SIGKILL);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox")) << "and it is not started again";
  EXPECT_EQ(pod.phase(), "Failed");
  NoteSandboxGone(pod.record_, pod.now_, pod.back_off.reset);
  EXPECT_THAT(pod.Plan(), ElementsAre("finish"));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_THAT(pod.events_, Contains("Killing: Stopping container main"));
}

TEST(PlanPod, SucceedsWhenItEndsWellAfterItWasDeleted) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.Delete(absl::Seconds(30));
  pod.Plan();
  pod.Exited("main", 0);
  pod.Plan();
  EXPECT_EQ(pod.phase(), "Succeeded");
}

TEST(PlanPod, KillsAtOnceWithoutGrace) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.Delete(absl::ZeroDuration());
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 9"));
}

TEST(PlanPod, ShortensTheGraceWhenItIsDeletedAgainWithLess) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.Delete(absl::Seconds(60));
  pod.Plan();
  pod.Advance(absl::Seconds(5));
  pod.Delete(absl::Seconds(10));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(5));
  pod.Delete(absl::ZeroDuration());
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 9"));
}

TEST(PlanPod, FinishesAtOnceWhatNeverRan) {
  PlannedPod pod(kOne);
  pod.Delete(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), ElementsAre("finish"));
}

TEST(PlanPod, EndsWhatRunsWhenTheObjectIsGone) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.gone = true;
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  pod.Exited("main", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
  NoteSandboxGone(pod.record_, pod.now_, pod.back_off.reset);
  EXPECT_THAT(pod.Plan(), ElementsAre("finish"));
}

TEST(PlanPod, WaitsForASandboxUnderWayBeforeItFinishes) {
  PlannedPod pod(kOne);
  pod.Plan();
  pod.Delete(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
}

TEST(PlanPod, StopsAContainerThatStartsWhileItIsDeleted) {
  PlannedPod pod(kOne);
  pod.Plan();
  NoteSandboxReady(pod.record_);
  pod.Plan();
  pod.Delete(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  pod.Started("main");
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
}

TEST(PlanPod, FailsWhenItsDeadlineHasPassedAndItsProcessesHaveEnded) {
  PlannedPod pod(R"({"activeDeadlineSeconds":60,"containers":[{"name":"main"}]})");
  pod.RunAll();
  EXPECT_EQ(pod.WakesIn(), absl::Minutes(1));
  pod.Advance(absl::Minutes(1));
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_EQ(pod.phase(), "Running") << "not failed while it runs, or its successor would meet it";
  pod.Killed("main", SIGTERM);
  pod.Plan();
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.status().reason, "DeadlineExceeded");
}

TEST(PlanPod, NeverLeavesATerminalPhase) {
  PlannedPod pod(kOne);
  pod.RunAll();
  pod.status_.phase = Phase::kFailed;
  pod.status_.reason = "Evicted";
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15")) << "somebody declared it failed: what runs ends";
  EXPECT_EQ(pod.phase(), "Failed");
  pod.Exited("main", 0);
  EXPECT_THAT(pod.Plan(), ElementsAre("stop sandbox"));
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.status().reason, "Evicted");
}

TEST(PlanPod, KeepsTheTimeOfAConditionThatDoesNotChange) {
  PlannedPod pod(kOne);
  pod.Plan();
  const absl::Time scheduled = pod.status().FindCondition("PodScheduled")->since;
  const absl::Time unready = pod.status().FindCondition("Ready")->since;
  pod.Advance(absl::Seconds(5));
  NoteSandboxReady(pod.record_);
  pod.RunAll();
  EXPECT_EQ(pod.status().FindCondition("PodScheduled")->since, scheduled);
  EXPECT_EQ(pod.status().FindCondition("Ready")->since, unready + absl::Seconds(5));
}

TEST(PlanPod, IsReadyOnlyWhenItsGatesAre) {
  PlannedPod pod(
      R"({"readinessGates":[{"conditionType":"example.com/gate"}],"containers":[{"name":"main"}]})");
  pod.RunAll();
  EXPECT_EQ(pod.ConditionOf("Ready"), "False ReadinessGatesNotReady");
  EXPECT_EQ(pod.ConditionOf("ContainersReady"), "True");
  pod.status_.conditions.push_back({.type = "example.com/gate", .status = true});
  pod.Plan();
  EXPECT_EQ(pod.ConditionOf("Ready"), "True");
}

}  // namespace
}  // namespace trainyard::node
