// Probes and hooks in the plan of a pod.
#include "gmock/gmock.h"
#include "node/plan_testing.h"
#include "node/pod_plan.h"

namespace trainyard::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlannedPod Probed(std::string_view probes, std::string_view policy = "Always") {
  return PlannedPod(StrCat(R"({"restartPolicy":")", policy, R"(","terminationGracePeriodSeconds":20,)",
                           R"("containers":[{"name":"main",)", probes, "}]}"));
}

// Runs the pod's container and leaves the first probes to the test.
void RunContainer(PlannedPod& pod) {
  pod.Plan();
  NoteSandboxReady(pod.record_);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.0"));
  pod.Started("main");
}

TEST(PlanProbes, HoldReadinessBackUntilTheProbeSucceeds) {
  PlannedPod pod = Probed(R"("readinessProbe":{"tcpSocket":{"port":80},"initialDelaySeconds":3})");
  RunContainer(pod);
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(3));
  pod.Advance(absl::Seconds(3));
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Readiness"));
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "one at a time";
  EXPECT_EQ(pod.ConditionOf("Ready"), "False ContainersNotReady");
  EXPECT_EQ(pod.phase(), "Running");
  pod.Probed("main", ProbeKind::kReadiness, true);
  pod.Plan();
  EXPECT_EQ(pod.ConditionOf("Ready"), "True");
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(10)) << "from now on by its period";
}

TEST(PlanProbes, AskOftenWhetherAContainerIsReadyForTheFirstTime) {
  PlannedPod pod = Probed(R"("readinessProbe":{"tcpSocket":{"port":80}})");
  RunContainer(pod);
  for (const int wait : {200, 400, 800, 1600, 3200, 6400, 10000, 10000}) {
    EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Readiness"));
    pod.Probed("main", ProbeKind::kReadiness, false);
    pod.Plan();
    EXPECT_EQ(pod.WakesIn(), absl::Milliseconds(wait));
    if (wait == 6400) break;
    pod.Advance(pod.WakesIn());
  }
}

TEST(PlanProbes, TakeReadinessAwayOnlyAfterThreeFailuresInARow) {
  PlannedPod pod = Probed(R"("readinessProbe":{"tcpSocket":{"port":80}})");
  RunContainer(pod);
  pod.Plan();
  pod.Probed("main", ProbeKind::kReadiness, true);
  for (const bool ok : {false, false, true, false, false, false}) {
    pod.Plan();
    EXPECT_EQ(pod.ConditionOf("Ready"), "True");
    pod.Advance(absl::Seconds(10));
    EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Readiness"));
    pod.Probed("main", ProbeKind::kReadiness, ok);
  }
  pod.Plan();
  EXPECT_EQ(pod.ConditionOf("Ready"), "False ContainersNotReady");
  EXPECT_EQ(pod.State("main"), "running") << "and leave the container alone";
}

TEST(PlanProbes, WantAsManySuccessesAsTheyAreTold) {
  PlannedPod pod = Probed(R"("readinessProbe":{"tcpSocket":{"port":80},"successThreshold":2})");
  RunContainer(pod);
  for (const bool ok : {true, false, true, true}) {
    pod.Plan();
    EXPECT_EQ(pod.ConditionOf("Ready"), "False ContainersNotReady");
    pod.Probed("main", ProbeKind::kReadiness, ok);
    pod.Advance(absl::Seconds(10));
  }
  pod.Plan();
  EXPECT_EQ(pod.ConditionOf("Ready"), "True");
}

TEST(PlanProbes, RestartAContainerThatIsNotAlive) {
  PlannedPod pod = Probed(R"("livenessProbe":{"tcpSocket":{"port":80},"failureThreshold":2})");
  RunContainer(pod);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Liveness"));
    pod.Probed("main", ProbeKind::kLiveness, false);
    if (i == 0) pod.Advance(absl::Seconds(10));
  }
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_THAT(pod.events_, Contains("Killing: Container main failed liveness probe, will be restarted"));
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "and probe no more";
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(20));
  pod.Killed("main", SIGTERM);
  EXPECT_THAT(pod.Plan(), ElementsAre("start main.1"));
  pod.Started("main");
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.1 Liveness")) << "from the beginning";
  pod.Probed("main", ProbeKind::kLiveness, false);
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "one failure is not two";
}

TEST(PlanProbes, HaveAGraceOfTheirOwn) {
  PlannedPod pod = Probed(
      R"("livenessProbe":{"tcpSocket":{"port":80},"failureThreshold":1,"terminationGracePeriodSeconds":1})");
  RunContainer(pod);
  pod.Plan();
  pod.Probed("main", ProbeKind::kLiveness, false);
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(1));
}

TEST(PlanProbes, WaitForTheStartupProbe) {
  PlannedPod pod = Probed(R"("startupProbe":{"tcpSocket":{"port":80},"periodSeconds":1,"failureThreshold":30},
      "livenessProbe":{"tcpSocket":{"port":80}},"readinessProbe":{"tcpSocket":{"port":80}})");
  RunContainer(pod);
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Startup"));
  EXPECT_FALSE(pod.status().containers[0].started);
  pod.Probed("main", ProbeKind::kStartup, false);
  EXPECT_THAT(pod.Plan(), IsEmpty());
  pod.Advance(absl::Seconds(1));
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Startup"));
  pod.Probed("main", ProbeKind::kStartup, true);
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Liveness", "probe main.0 Readiness"));
  EXPECT_TRUE(pod.status().containers[0].started);
  pod.Advance(absl::Seconds(1));
  EXPECT_THAT(pod.Plan(), IsEmpty()) << "the startup probe has done its work";
}

TEST(PlanProbes, RestartAContainerThatNeverStarts) {
  PlannedPod pod = Probed(R"("startupProbe":{"tcpSocket":{"port":80},"failureThreshold":1})", "Never");
  RunContainer(pod);
  pod.Plan();
  pod.Probed("main", ProbeKind::kStartup, false);
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_THAT(pod.events_, Contains("Killing: Container main failed startup probe"));
}

TEST(PlanProbes, EndWhenThePodIsDeleted) {
  PlannedPod pod = Probed(R"("livenessProbe":{"tcpSocket":{"port":80}})");
  RunContainer(pod);
  pod.Plan();
  pod.Probed("main", ProbeKind::kLiveness, true);
  pod.Delete(absl::Seconds(60));
  pod.Plan();
  pod.Advance(absl::Seconds(30));
  EXPECT_THAT(pod.Plan(), IsEmpty());
}

TEST(PlanHooks, RunPostStartBeforeAnythingElseIsAsked) {
  PlannedPod pod = Probed(
      R"("lifecycle":{"postStart":{"exec":{"command":["x"]}}},"readinessProbe":{"tcpSocket":{"port":80}})");
  RunContainer(pod);
  EXPECT_THAT(pod.Plan(), ElementsAre("hook main.0 PostStart"));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  EXPECT_EQ(pod.ConditionOf("Ready"), "False ContainersNotReady");
  NoteHook(pod.container("main"), HookKind::kPostStart, true);
  EXPECT_THAT(pod.Plan(), ElementsAre("probe main.0 Readiness"));
}

TEST(PlanHooks, StopAContainerWhosePostStartFailed) {
  PlannedPod pod = Probed(R"("lifecycle":{"postStart":{"exec":{"command":["x"]}}})");
  RunContainer(pod);
  pod.Plan();
  NoteHook(pod.container("main"), HookKind::kPostStart, false);
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_THAT(pod.events_, Contains(HasSubstr("failed its postStart hook, will be restarted")));
}

TEST(PlanHooks, RunPreStopBeforeTheSignalAndWithinTheGrace) {
  PlannedPod pod = Probed(R"("lifecycle":{"preStop":{"exec":{"command":["x"]}}})");
  RunContainer(pod);
  pod.Plan();
  pod.Delete(absl::Seconds(20));
  EXPECT_THAT(pod.Plan(), ElementsAre("hook main.0 PreStop"));
  pod.Advance(absl::Seconds(5));
  EXPECT_THAT(pod.Plan(), IsEmpty());
  NoteHook(pod.container("main"), HookKind::kPreStop, true);
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(15)) << "the hook's time counts";
}

TEST(PlanHooks, LeaveTwoSecondsWhenPreStopTookAllTheGrace) {
  PlannedPod pod = Probed(R"("lifecycle":{"preStop":{"exec":{"command":["x"]}}})");
  RunContainer(pod);
  pod.Plan();
  pod.Delete(absl::Seconds(20));
  pod.Plan();
  pod.Advance(absl::Seconds(20));
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 15"));
  EXPECT_EQ(pod.WakesIn(), absl::Seconds(2));
  pod.Advance(absl::Seconds(2));
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 9"));
}

TEST(PlanHooks, AreSkippedWhenThereIsNoGrace) {
  PlannedPod pod = Probed(R"("lifecycle":{"preStop":{"exec":{"command":["x"]}}})");
  RunContainer(pod);
  pod.Plan();
  pod.Delete(absl::ZeroDuration());
  EXPECT_THAT(pod.Plan(), ElementsAre("signal main.0 9"));
}

}  // namespace
}  // namespace trainyard::node
