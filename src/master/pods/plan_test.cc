#include "master/pods/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::master {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

SeenPod Pod(int index, int launch, PodState state, std::string cause = "") {
  return {.name = "w-" + std::to_string(index) + "-" + std::to_string(launch),
          .index = index,
          .launch = launch,
          .state = state,
          .since = kNow - absl::Seconds(60),
          .cause = std::move(cause)};
}

PodsView View(int target, std::vector<SeenPod> pods) {
  PodsView view;
  view.limits.most = target;
  view.memory.target = target;
  view.pods = std::move(pods);
  for (const SeenPod& pod : view.pods) {
    if (pod.state == PodState::kRunning) view.at_work.push_back(pod.index);
  }
  return view;
}

TEST(PlanPods, LaunchesAsManyAsThereAreToBe) {
  EXPECT_THAT(PlanPods(View(2, {}), kNow).launches,
              ElementsAre(PodsPlan::Launch{0, 0}, PodsPlan::Launch{1, 0}));
}

TEST(PlanPods, LaunchesAKilledWorkerAgainAtOnceUnderItsIndex) {
  const PodsPlan plan = PlanPods(
      View(2, {Pod(0, 0, PodState::kRunning), Pod(1, 3, PodState::kKilled, "was killed by signal 9")}), kNow);
  EXPECT_THAT(plan.launches, ElementsAre(PodsPlan::Launch{1, 4, 1}));
  EXPECT_THAT(plan.ended, ElementsAre(PodsPlan::Ended{1, "w-1-3", "was killed by signal 9"}));
  EXPECT_EQ(CountRestarts(plan.memory), 1);
}

TEST(PlanPods, CountsARestartOnceHoweverOftenItsLaunchIsTried) {
  PodsView view = View(1, {Pod(0, 0, PodState::kKilled, "was killed by signal 9")});
  for (int tries = 0; tries < 3; ++tries) {
    const PodsPlan plan = PlanPods(view, kNow + absl::Seconds(tries));
    EXPECT_THAT(plan.launches, ElementsAre(PodsPlan::Launch{0, 1, 1}));
    EXPECT_EQ(plan.ended.size(), tries == 0 ? 1 : 0);
    EXPECT_EQ(CountRestarts(plan.memory), 1);
    view.memory = plan.memory;
    view.memory.seats[0].launches = 1;  // the API server did not take it
    view.memory.seats[0].not_before = kNow + absl::Seconds(tries);
  }
}

TEST(PlanPods, KnowsTheRestartsOfTheMasterBefore) {
  SeenPod running = Pod(0, 5, PodState::kRunning);
  running.restarts = 3;  // and two were taken back for lack of room
  EXPECT_EQ(CountRestarts(PlanPods(View(1, {running}), kNow).memory), 3);
}

TEST(PlanPods, NeverGivesUpOnWorkersThatAreKilled) {
  PodsView view = View(1, {Pod(0, 0, PodState::kKilled)});
  for (int i = 1; i < 200; ++i) {
    const PodsPlan plan = PlanPods(view, kNow);
    ASSERT_THAT(plan.launches, ElementsAre(PodsPlan::Launch{0, i, i}));
    view.memory = plan.memory;
    view.pods = {Pod(0, i, PodState::kKilled)};
  }
}

TEST(PlanPods, WaitsLongerAfterEachFailureAndGivesUpWithTheLastCause) {
  PodsView view = View(1, {});
  view.limits.most_failures = 4;
  absl::Time now = kNow;
  std::vector<absl::Duration> waits;
  for (int launch = 0; launch < 3; ++launch) {
    view.pods = {Pod(0, launch, PodState::kFailed, "exited 1")};
    PodsPlan plan = PlanPods(view, now);
    view.memory = plan.memory;
    waits.push_back(plan.launches.empty() ? plan.wake_after : absl::ZeroDuration());
    if (plan.launches.empty()) {
      now += plan.wake_after;
      plan = PlanPods(view, now);
      view.memory = plan.memory;
    }
    ASSERT_EQ(plan.launches.size(), 1);
  }
  EXPECT_THAT(waits, ElementsAre(absl::ZeroDuration(), absl::Seconds(1), absl::Seconds(2)));
  view.pods = {Pod(0, 3, PodState::kFailed, "exited 1")};
  EXPECT_EQ(PlanPods(view, now).failure, "worker 0 failed 4 times in a row, the last time w-0-3 exited 1");
}

TEST(PlanPods, ForgetsFailuresOfAWorkerThatHasCome) {
  PodsView view = View(1, {Pod(0, 5, PodState::kRunning)});
  view.memory.seats[0].failures = 3;
  EXPECT_EQ(PlanPods(view, kNow).memory.seats.at(0).failures, 0);
}

TEST(PlanPods, TriesOneMoreWhileAllWorkAndThereIsWork) {
  PodsView view = View(1, {Pod(0, 0, PodState::kRunning)});
  view.limits.most = 3;
  PodsPlan plan = PlanPods(view, kNow);
  EXPECT_THAT(plan.launches, IsEmpty());
  view.memory = plan.memory;
  plan = PlanPods(view, kNow + plan.wake_after);
  EXPECT_THAT(plan.launches, ElementsAre(PodsPlan::Launch{1, 0}));
  view.more_to_do = false;
  EXPECT_THAT(PlanPods(view, kNow + absl::Hours(1)).launches, IsEmpty());
}

TEST(PlanPods, TakesBackWhatFindsNoRoomButNotBelowTheLeast) {
  SeenPod waiting = Pod(1, 0, PodState::kPending);
  waiting.unscheduled = "0/1 nodes are available: insufficient cpu";
  PodsView view = View(2, {Pod(0, 0, PodState::kRunning), waiting});
  const PodsPlan plan = PlanPods(view, kNow);
  EXPECT_EQ(plan.memory.target, 1);
  EXPECT_THAT(plan.deletes, ElementsAre("w-1-0"));
  PodsView later = View(2, {Pod(0, 0, PodState::kRunning), Pod(1, 0, PodState::kKilled, "was deleted")});
  later.memory = plan.memory;
  later.memory.target = 2;
  EXPECT_THAT(PlanPods(later, kNow).launches, ElementsAre(PodsPlan::Launch{1, 1, 0}));
  EXPECT_THAT(PlanPods(later, kNow).ended, IsEmpty())
      << "a pod that was taken back does not count when it is tried again";
  view.limits.least = 2;
  EXPECT_THAT(PlanPods(view, kNow).deletes, IsEmpty());
  EXPECT_THAT(PlanPods(view, kNow).waiting, HasSubstr("room for worker 1: 0/1 nodes are available"));
}

TEST(PlanPods, GivesUpWhenTheLeastFindsNoRoomForLong) {
  SeenPod waiting = Pod(0, 0, PodState::kPending);
  waiting.unscheduled = "0/1 nodes are available: insufficient cpu";
  const PodsView view = View(1, {waiting});
  EXPECT_EQ(PlanPods(view, kNow).failure, "");
  EXPECT_EQ(PlanPods(view, kNow + absl::Hours(1)).failure,
            "worker 0 (w-0-0) finds no room since 1h1m: 0/1 nodes are available: insufficient cpu");
}

TEST(PlanPods, LaunchesNothingWhenTheJobIsOverAndDeletesWhatHasNotBegun) {
  PodsView view = View(4, {Pod(0, 0, PodState::kSucceeded), Pod(1, 0, PodState::kKilled),
                           Pod(2, 0, PodState::kPending), Pod(3, 0, PodState::kRunning)});
  view.over = true;
  EXPECT_THAT(PlanPods(view, kNow).launches, IsEmpty());
  EXPECT_THAT(PlanPods(view, kNow).deletes, ElementsAre("w-2-0")) << "the master tells those that run";
}

}  // namespace
}  // namespace trainyard::master
