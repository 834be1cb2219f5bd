#include "job/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/job_testing.h"

namespace trainyard::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Show(const JobPlan& plan) {
  std::vector<std::string> out;
  for (const Action& action : plan.actions()) out.push_back(Print(action));
  return out;
}

// ---- the way of a job that goes well

TEST(PlanJob, MakesAPodAndAServiceForEveryIndex) {
  World world(Job(
      {Role("Worker", 2, RestartPolicy::kNever, EndPolicy::kRank0), Role("PS", 1, RestartPolicy::kAlways)}));
  EXPECT_THAT(Show(world.Step()),
              ElementsAre("create pod worker-0: it is missing", "create service worker-0: it is missing",
                          "create pod worker-1: it is missing", "create service worker-1: it is missing",
                          "create pod ps-0: it is missing", "create service ps-0: it is missing"));
  EXPECT_EQ(world.view.status.start_time, kStart);
  EXPECT_EQ(world.view.status.Current(), nullptr) << "not all of it exists yet";
  EXPECT_EQ(world.view.status.conditions.back().message, "0 of 3 pods and 0 of 3 services exist");
}

TEST(PlanJob, GoesFromCreatedToRunningToSucceeded) {
  World world(Workers(2, RestartPolicy::kOnFailure));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kCreated);
  World::Run(*world.Find("worker", 0));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kCreated) << "one does not run yet";
  EXPECT_THAT(MessageOf(world.view.status), HasSubstr("waiting for worker-1"));
  world.RunAll();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.roles["Worker"].active, 2);
  world.Pass(absl::Seconds(5));
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_EQ(MessageOf(world.view.status), "worker-0 ended with 0");
  EXPECT_EQ(world.view.status.completion_time, kStart + absl::Seconds(5));
  EXPECT_EQ(world.view.status.roles["Worker"].succeeded, 1);
  EXPECT_EQ(world.view.status.roles["Worker"].active, 0) << "worker-1 was deleted";
  EXPECT_EQ(world.view.pods.size(), 1U) << "the one that ended stays";
}

TEST(PlanJob, StoresTheEndBeforeItCleansUp) {
  World world = Running(Workers(2, RestartPolicy::kOnFailure));
  world.End(*world.Find("worker", 0), 0);
  const JobPlan end = world.Step();
  EXPECT_THAT(end.actions(), IsEmpty());
  EXPECT_TRUE(end.status.IsFinished());
  EXPECT_EQ(end.wake_after, absl::ZeroDuration());
  EXPECT_THAT(Show(world.Step()), testing::Not(IsEmpty()));
}

TEST(PlanJob, SucceedsWithAChiefThatTheKubeletHasStartedAgain) {
  World world = Running(Workers(1, RestartPolicy::kAlways));
  world.Restart(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 0) << "that was no failure";
  EXPECT_THAT(world.view.pods, IsEmpty()) << "it runs again, and is not needed";
}

TEST(PlanJob, TakesNoEndForSuccessThatItWasToldToCome) {
  World world = Running(Workers(1, RestartPolicy::kOnFailure));
  PodView& pod = *world.Find("worker", 0);
  pod.deletion = Deletion{.asked = world.now, .due = world.now + absl::Seconds(30)};
  pod.phase = Phase::kSucceeded;
  pod.main_runs = false;
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
}

TEST(PlanJob, WaitsForAllWhereAllDecide) {
  World world = Running(Job({Role("Worker", 2, RestartPolicy::kNever, EndPolicy::kAll)}));
  world.End(*world.Find("worker", 1), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(MessageOf(world.view.status), "1 of 2 pods run, 1 has completed");
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
}

TEST(PlanJob, DoesNotMakeACompletedPodAgain) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.End(*world.Find("worker", 1), 0);
  world.Settle();
  world.Remove(*world.Find("worker", 1));  // a node is drained
  EXPECT_EQ(world.Settle(), 0);
  EXPECT_EQ(world.Find("worker", 1), nullptr);
  EXPECT_EQ(world.view.status.roles["Worker"].succeeded, 1);
}

// ---- restarts

TEST(PlanJob, ComesToRestThoughAnImageIsMissing) {
  World world(Workers(1, RestartPolicy::kAlways));
  world.Settle();
  world.view.pods[0].node = "node-1";
  world.view.pods[0].creation_error = "ErrImagePull: no such image";
  EXPECT_GE(world.Settle(), 0);
  EXPECT_TRUE(world.view.status.roles["Worker"].stuck.empty());
}

TEST(PlanJob, CountsAFailureBeforeItDeletesThePod) {
  JobView job = Workers(2, RestartPolicy::kExitCode);
  job.spec.restart_limit = 5;
  World world = Running(std::move(job));
  World::Run(*world.Find("worker", 1), "node-2");
  world.End(*world.Find("worker", 1), 137, "OOMKilled");
  const JobPlan counted = world.Step();
  EXPECT_THAT(counted.actions(), IsEmpty());
  EXPECT_EQ(counted.status.roles.at("Worker").attempts, (std::map<int, int>{{1, 1}}));
  EXPECT_EQ(StateOf(counted.status), State::kRestarting);
  EXPECT_EQ(MessageOf(counted.status), "worker-1 exited 137 (OOMKilled) on node-2; restart 1 of 5");
  EXPECT_THAT(Show(world.Step()),
              ElementsAre("delete pod mnist-worker-1-0a1b2: it has failed and is made again"));
  EXPECT_THAT(Show(world.Step()), ElementsAre("create pod worker-1 (attempt 1): it is made again"));
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status), "worker-1 exited 137 (OOMKilled) on node-2; restart 1 of 5");
  world.RunAll();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.roles["Worker"].last_cause, "worker-1 exited 137 (OOMKilled) on node-2");
  EXPECT_EQ(world.view.status.roles["Worker"].failed, 1);
}

TEST(PlanJob, KeepsAFailedPodUntilItsWaitIsOver) {
  World world = Running(Workers(1, RestartPolicy::kExitCode));
  world.End(*world.Find("worker", 0), 137);
  world.Settle();
  world.RunAll();
  world.Settle();
  world.End(*world.Find("worker", 0), 137);
  world.Settle();
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 2) << "it is counted at once";
  ASSERT_NE(world.Find("worker", 0), nullptr);
  EXPECT_EQ(world.Find("worker", 0)->attempt, 1) << "it is still the one that failed";
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(10));
  world.Pass(absl::Seconds(10));
  world.Settle();
  EXPECT_EQ(world.Find("worker", 0)->attempt, 2);
}

TEST(PlanJob, FailsOfAPermanentExitCode) {
  World world = Running(Workers(2, RestartPolicy::kExitCode));
  world.End(*world.Find("worker", 1), 1);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-1 exited 1 (Error) on node-1; not restarted: restartPolicy ExitCode restarts after exit "
            "codes 128-255 only");
  EXPECT_EQ(world.view.status.roles["Worker"].failed, 1);
  EXPECT_EQ(world.view.pods.size(), 1U) << "the failed one stays to be looked at";
}

TEST(PlanJob, LetsSuccessWinOverAFailureAtTheSameTime) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.End(*world.Find("worker", 1), 1);
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
}

TEST(PlanJob, MakesAnEvictedPodAgainAndDoesNotCountIt) {
  JobView job = Workers(1, RestartPolicy::kOnFailure);
  job.spec.restart_limit = 0;
  World world = Running(std::move(job));
  world.Evict(*world.Find("worker", 0));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 0);
  EXPECT_EQ(world.view.status.roles["Worker"].disruptions, 1);
  EXPECT_EQ(world.Find("worker", 0)->attempt, 1);
}

TEST(PlanJob, CountsRestartsOfContainersAndPodsTogether) {
  JobView job = Workers(2, RestartPolicy::kOnFailure);
  job.spec.restart_limit = 3;
  World world = Running(std::move(job));
  world.Restart(*world.Find("worker", 0), 1);
  world.Restart(*world.Find("worker", 1), 1);
  world.Settle();
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 2);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  const Condition* restarting = world.view.status.Find(State::kRestarting);
  ASSERT_NE(restarting, nullptr) << "it runs again already, but it was so";
  EXPECT_FALSE(restarting->is_true);
  world.Remove(*world.Find("worker", 1));  // by a user: what it had counted is not forgotten
  world.Settle();
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 2);
  world.RunAll();
  world.Restart(*world.Find("worker", 1), 1);
  world.Settle();
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 3);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  world.Restart(*world.Find("worker", 0), 1);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_EQ(world.view.status.Current()->reason, "BackoffLimitExceeded");
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-0 exited 1 (Error) on node-1; no restart is left: backoffLimit is 3");
}

TEST(PlanJob, DoesNotCountRestartsAfterAnEndWith0) {
  JobView job = Job(
      {Role("Worker", 1, RestartPolicy::kNever, EndPolicy::kRank0), Role("PS", 2, RestartPolicy::kAlways)});
  job.spec.restart_limit = 1;
  World world = Running(std::move(job));
  for (int i = 0; i < 3; ++i) {
    world.Restart(*world.Find("ps", 0), 0);
    world.Settle();
  }
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.CountRestarts(), 0);
  EXPECT_EQ(world.view.status.Find(State::kRestarting)->message,
            "ps-0 ended with 0 and was started again; that does not count");
  world.Restart(*world.Find("ps", 0), 1);
  world.Settle();
  EXPECT_EQ(world.view.status.CountRestarts(), 1) << "this one failed";
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  world.Restart(*world.Find("ps", 1), 1);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
}

TEST(PlanJob, SaysUntilWhenAPodWaitsAfterAFailure) {
  World world = Running(Workers(1, RestartPolicy::kExitCode));
  for (int i = 0; i < 2; ++i) {
    world.End(*world.Find("worker", 0), 137);
    world.Settle();
    if (i == 0) world.RunAll();
    if (i == 0) world.Settle();
  }
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-0 exited 137 (Error) on node-1; restart 2; waiting until 22:13:31 UTC");
  EXPECT_EQ(world.Settle(), 0) << "the same is said once";
  world.Pass(absl::Seconds(10));
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status), "worker-0 exited 137 (Error) on node-1; restart 2");
}

TEST(PlanJob, SaysUntilWhenTheKubeletHoldsAContainerBack) {
  World world = Running(Workers(1, RestartPolicy::kOnFailure));
  PodView& pod = *world.Find("worker", 0);
  world.Restart(pod, 1);
  pod.main_runs = false;
  pod.waits = "CrashLoopBackOff";
  pod.resumes = world.now + absl::Seconds(20);
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-0 exited 1 (Error) on node-1; restart 1; waiting until 22:13:41 UTC");
}

// ---- repairs

TEST(PlanJob, RepairsLabelsOfPodsAndWhatServicesSelect) {
  World world = Running(Workers(2, RestartPolicy::kAlways));
  world.Find("worker", 1)->mislabelled = true;
  world.view.services[0].altered = true;
  EXPECT_THAT(Show(world.Step()), ElementsAre("repair service " + world.view.services[0].name,
                                              "relabel pod " + world.Find("worker", 1)->name));
  EXPECT_EQ(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(PlanJob, WritesTheConfigurationBeforeThePodsThatMountItAndAgainWhenItChanges) {
  JobView job = Workers(2, RestartPolicy::kAlways);
  job.wanted_config = "one";
  World world(std::move(job));
  EXPECT_THAT(Show(world.Step()), ElementsAre("write the configuration that pods mount"));
  world.Settle();
  EXPECT_EQ(world.view.pods.size(), 2U);
  world.RunAll();
  world.view.wanted_config = "two";
  EXPECT_THAT(Show(world.Step()), ElementsAre("write the configuration that pods mount"));
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_FALSE(world.view.config) << "it goes with the services";
}

TEST(PlanJob, CountsFailuresThatAreSeenOnlyTogetherWithTheSuccess) {
  World world = Running(Workers(1, RestartPolicy::kOnFailure));
  world.Restart(*world.Find("worker", 0), 3);
  world.Restart(*world.Find("worker", 0), 3);
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 2);
  EXPECT_EQ(world.view.status.roles["Worker"].last_cause, "worker-0 exited 3 (Error) on node-1");
}

TEST(PlanJob, AllowsAsManyRestartsAsTheLimitSays) {
  for (const std::int64_t limit : {0, 1, 2}) {
    JobView job = Workers(1, RestartPolicy::kExitCode);
    job.spec.restart_limit = limit;
    World world = Running(std::move(job));
    for (int i = 0; i < limit; ++i) {
      world.End(*world.Find("worker", 0), 137);
      world.Settle();
      world.Pass(absl::Minutes(5));
      world.Settle();
      world.RunAll();
      world.Settle();
      EXPECT_EQ(StateOf(world.view.status), State::kRunning) << i << " of " << limit;
    }
    world.End(*world.Find("worker", 0), 137);
    world.Settle();
    EXPECT_EQ(StateOf(world.view.status), State::kFailed) << limit;
  }
}

// ---- a program that has ended beside containers that go on

TEST(PlanJob, FailsWhenThePodsProgramDoesThoughItsOtherContainersGoOn) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.EndMainOnly(*world.Find("worker", 1), 3);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-1 exited 3 (Error) on node-1; not restarted: restartPolicy is Never");
  EXPECT_EQ(world.view.status.roles["Worker"].failed, 1);
}

TEST(PlanJob, MakesAPodAgainWhoseProgramFailedThoughItsOtherContainersGoOn) {
  World world = Running(Workers(2, RestartPolicy::kExitCode));
  for (int i = 0; i < 2; ++i) {
    world.EndMainOnly(*world.Find("worker", 1), 137);
    world.Step();
    EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
    if (i == 1) {
      EXPECT_EQ(world.Plan().wake_after, absl::Seconds(10)) << "the second waits, as any other does";
    }
    world.Settle();
    world.Pass(absl::Seconds(10));
    world.Settle();
    ASSERT_EQ(world.Find("worker", 1)->attempt, i + 1);
    world.RunAll();
    world.Settle();
    EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  }
  EXPECT_EQ(world.view.status.roles["Worker"].failed, 2);
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 2);
}

TEST(PlanJob, DoesNotTakeThe0OfAPodThatWasDisruptedForSuccess) {
  World world = Running(Workers(1, RestartPolicy::kOnFailure));
  PodView& pod = *world.Find("worker", 0);
  world.Evict(pod);
  pod.reason = "Terminated";
  pod.main_succeeded = true;  // it saved its work and ended well
  pod.end.reset();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
  EXPECT_EQ(world.view.status.roles["Worker"].disruptions, 1);
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 0);
  EXPECT_EQ(world.Find("worker", 0)->attempt, 1);
}

TEST(PlanJob, EndsRatherThanCountBeyondAllNumbers) {
  World world = Running(Workers(1, RestartPolicy::kExitCode));
  world.Find("worker", 0)->attempt = kMostAttempts;
  world.End(*world.Find("worker", 0), 137);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
}

TEST(PlanJob, AdoptsBeforeItJudges) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.Find("worker", 1)->owned = false;
  world.End(*world.Find("worker", 1), 3);
  EXPECT_THAT(Show(world.Step()), ElementsAre(HasSubstr("adopt pod")));
  EXPECT_FALSE(world.view.status.IsFinished());
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
}

TEST(PlanJob, CountsNoPodsOfATypeThatTheSpecNoLongerHas) {
  JobView job = Workers(1, RestartPolicy::kNever);
  job.spec.roles.push_back(Role("PS", 1, RestartPolicy::kNever));
  World world = Running(std::move(job));
  EXPECT_EQ(world.view.status.roles["PS"].active, 1);
  world.view.spec.roles.pop_back();
  world.Settle();
  EXPECT_EQ(world.view.status.roles["PS"].active, 0);
}

TEST(PlanJob, MakesAPodAgainThatAUserDeleted) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.Remove(*world.Find("worker", 1));
  EXPECT_THAT(Show(world.Step()), ElementsAre("create pod worker-1: it is missing"));
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
  EXPECT_EQ(MessageOf(world.view.status), "worker-1 is missing and is made");
  EXPECT_EQ(world.view.status.roles["Worker"].restarts, 0);
}

TEST(PlanJob, MakesAServiceAgainThatAUserDeleted) {
  World world = Running(Workers(2, RestartPolicy::kNever));
  world.view.services.pop_back();
  EXPECT_THAT(Show(world.Step()), ElementsAre("create service worker-1: it is missing"));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

// ---- nodes

TEST(PlanJob, ForceDeletesThePodsOfALostNodeWhenTheirOwnGraceIsOver) {
  World world = Running(Workers(2, RestartPolicy::kOnFailure));
  world.LoseNode(*world.Find("worker", 1), NodeHealth::kNotReady);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning) << "it may come back";
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(30));
  world.Pass(absl::Seconds(30));
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status),
            "worker-1 was lost with node-1; it is made again and does not count");
  ASSERT_TRUE(world.Find("worker", 1)->deletion);
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(30)) << "its own grace";
  world.Pass(absl::Seconds(30));
  const JobPlan plan = world.Step();
  ASSERT_EQ(plan.actions().size(), 1U);
  EXPECT_TRUE(std::get<DeletePod>(plan.actions()[0]).force);
  world.Settle();
  EXPECT_EQ(world.Find("worker", 1)->attempt, 1);
  EXPECT_EQ(world.view.status.roles["Worker"].disruptions, 1);
}

TEST(PlanJob, TakesUnknownForNoMoreThanUnknown) {
  World world = Running(Workers(2, RestartPolicy::kOnFailure));
  world.LoseNode(*world.Find("worker", 1), NodeHealth::kUnknown);
  world.Pass(absl::Hours(10));
  EXPECT_EQ(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(PlanJob, DoesNotTouchAPodThatSucceededOnANodeThatIsGone) {
  World world = Running(Workers(2, RestartPolicy::kOnFailure));
  world.End(*world.Find("worker", 1), 0);
  world.LoseNode(*world.Find("worker", 1), NodeHealth::kGone);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.roles["Worker"].succeeded, 1);
}

// ---- scale

TEST(PlanJob, DeletesByIndexWhenItShrinks) {
  World world = Running(Workers(4, RestartPolicy::kNever));
  world.view.spec.roles[0].replicas = 2;
  EXPECT_THAT(Show(world.Step()), testing::UnorderedElementsAre(
                                      "delete pod mnist-worker-2-0a1b2: no index of the job is its own",
                                      "delete pod mnist-worker-3-0a1b2: no index of the job is its own",
                                      "delete service mnist-worker-2-0a1b2: no index of the job is its own",
                                      "delete service mnist-worker-3-0a1b2: no index of the job is its own"));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.wanted, 2);
}

TEST(PlanJob, DeletesTheSecondPodOfAnIndex) {
  World world = Running(Workers(1, RestartPolicy::kNever));
  PodView second = *world.Find("worker", 0);
  second.name = "somebody-made-it";
  second.uid = "second";
  world.view.pods.push_back(second);
  EXPECT_THAT(Show(world.Step()), ElementsAre("delete pod somebody-made-it: no index of the job is its own"));
}

TEST(PlanJob, AdoptsWhatIsNobodysIfItsSeatIsFree) {
  World world = Running(Workers(1, RestartPolicy::kNever));
  world.Find("worker", 0)->owned = false;
  EXPECT_THAT(Show(world.Step()), ElementsAre("adopt pod mnist-worker-0-0a1b2"));
  PodView second = *world.Find("worker", 0);
  second.uid = second.name = "second";
  second.owned = false;
  world.view.pods.push_back(second);
  EXPECT_EQ(world.Settle(), 0) << "it is left alone";
}

// ---- ends

TEST(PlanJob, FailsAtItsDeadlineWithNothingElseHappening) {
  JobView job = Workers(1, RestartPolicy::kNever);
  job.spec.deadline = absl::Seconds(60);
  World world = Running(std::move(job));
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(60));
  world.Pass(absl::Seconds(60));
  world.Settle();
  EXPECT_EQ(world.view.status.Current()->reason, "DeadlineExceeded");
  EXPECT_THAT(world.view.pods, IsEmpty());
}

TEST(PlanJob, DeletesItselfWhenItsTimeAfterTheEndIsOver) {
  JobView job = Workers(1, RestartPolicy::kNever);
  job.spec.ttl = absl::Seconds(100);
  World world = Running(std::move(job));
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(100));
  world.Pass(absl::Seconds(100));
  EXPECT_THAT(Show(world.Plan()), ElementsAre("delete the job: ttlSecondsAfterFinished is over"));
}

TEST(PlanJob, CleansUpAsItsPolicySays) {
  struct Row {
    CleanPolicy clean;
    std::size_t pods;
    std::size_t services;
  };
  for (const Row& row :
       {Row{CleanPolicy::kAll, 0, 0}, Row{CleanPolicy::kRunning, 1, 0}, Row{CleanPolicy::kNone, 3, 3}}) {
    JobView job = Workers(3, RestartPolicy::kNever);
    job.spec.clean = row.clean;
    World world(std::move(job));
    world.Settle();
    World::Run(*world.Find("worker", 0));
    World::Run(*world.Find("worker", 1));  // worker-2 has not been scheduled
    world.End(*world.Find("worker", 0), 0);
    world.Settle();
    EXPECT_EQ(world.view.pods.size(), row.pods);
    EXPECT_EQ(world.view.services.size(), row.services);
    EXPECT_EQ(world.view.status.roles["Worker"].succeeded, 1) << "also when its pod is gone";
  }
}

TEST(PlanJob, NeverMakesAPodOfAJobThatHasEnded) {
  World world = Running(Workers(2, RestartPolicy::kAlways));
  world.End(*world.Find("worker", 0), 0);
  world.Settle();
  world.view.pods.clear();
  world.view.services.clear();
  EXPECT_EQ(world.Settle(), 0);
  EXPECT_THAT(world.view.pods, IsEmpty());
}

TEST(PlanJob, RemovesPodsWhileItIsSuspendedAndGoesOnAfterwards) {
  JobView job = Workers(2, RestartPolicy::kNever);
  job.spec.deadline = absl::Seconds(100);
  World world = Running(std::move(job));
  world.view.spec.suspend = true;
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSuspended);
  EXPECT_THAT(world.view.pods, IsEmpty());
  EXPECT_THAT(world.view.services, IsEmpty());
  world.Pass(absl::Seconds(1000));
  EXPECT_EQ(world.Settle(), 0) << "its deadline does not count";
  world.view.spec.suspend = false;
  world.Settle();
  EXPECT_EQ(world.view.status.start_time, world.now);
  EXPECT_EQ(StateOf(world.view.status), State::kCreated);
  world.RunAll();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(PlanJob, FailsOfTooManyRestartsThoughItIsSuspended) {
  JobView job = Workers(2, RestartPolicy::kAlways);
  job.spec.restart_limit = 0;
  World world = Running(std::move(job));
  world.Restart(*world.Find("worker", 1), 3);
  world.view.spec.suspend = true;
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_EQ(world.view.status.Current()->reason, "BackoffLimitExceeded");
}

TEST(PlanJob, FailsOfASpecThatIsNone) {
  World world(Workers(1, RestartPolicy::kNever));
  world.view.invalid = "spec.tfReplicaSpecs: is missing";
  world.Settle();
  EXPECT_EQ(world.view.status.Current()->reason, "InvalidSpec");
  EXPECT_EQ(MessageOf(world.view.status), "spec.tfReplicaSpecs: is missing");
  EXPECT_TRUE(world.events.back().warning);
}

TEST(PlanJob, ContinuesWithTheLastValidSpecWhileAnEditIsNotValid) {
  World world = Running(Workers(2, RestartPolicy::kExitCode));
  world.view.edit_problem = "spec.cleanPodPolicy: must be one of Running, All, None, not \"Al\"";
  world.view.last_valid = "{}";
  const JobPlan noted = world.Step();
  EXPECT_TRUE(noted.actions().empty()) << "the spec to continue with is stored first";
  EXPECT_EQ(noted.status.spec_problem->last_valid, "{}");
  world.End(*world.Find("worker", 1), 137);
  EXPECT_GE(world.Settle(), 0);
  world.RunAll();
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.pods.size(), 2U) << "the failed pod is replaced";
  EXPECT_EQ(std::ranges::count(world.events, "SpecInvalid", &Event::reason), 1);
  world.view.edit_problem.clear();
  EXPECT_GE(world.Settle(), 0);
  EXPECT_FALSE(world.view.status.spec_problem);
  EXPECT_EQ(world.events.back().reason, "TFJobSpecCorrected");
}

TEST(PlanJob, LeavesPodsAloneWhileNoValidSpecIsKnown) {
  World world = Running(Workers(2, RestartPolicy::kExitCode));
  world.view.spec = {.kind = "TFJob"};
  world.view.invalid = "spec.tfReplicaSpecs: is missing";
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pods.size(), 2U);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  ASSERT_TRUE(world.view.status.spec_problem);
  EXPECT_THAT(world.view.status.spec_problem->message,
              testing::StartsWith("spec.tfReplicaSpecs: is missing;"));
}

TEST(PlanJob, DeletesNothingOfAnEndedJobForAnEditThatIsNotValid) {
  World world = Running(Workers(1, RestartPolicy::kNever));
  world.view.spec.clean = CleanPolicy::kNone;
  world.End(*world.Find("worker", 0), 0);
  EXPECT_GE(world.Settle(), 0);
  world.view.spec = {.kind = "TFJob"};
  world.view.invalid = "spec.cleanPodPolicy: must be one of Running, All, None";
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pods.size(), 1U);
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
}

TEST(PlanJob, ShowsWhyNothingCanBeMade) {
  World world(Workers(2, RestartPolicy::kNever));
  world.view.trouble = "pod mnist-worker-0: exceeded quota";
  const JobPlan plan = world.Plan();
  ASSERT_FALSE(plan.status.conditions.empty());
  EXPECT_EQ(plan.status.conditions.back().reason, "FailedCreate");
  EXPECT_EQ(plan.status.conditions.back().message,
            "0 of 2 pods and 0 of 2 services exist; pod mnist-worker-0: exceeded quota");
}

TEST(PlanJob, LeavesAJobAloneThatIsBeingDeleted) {
  World world = Running(Workers(1, RestartPolicy::kNever));
  world.view.leaving = true;
  world.view.pods.clear();
  EXPECT_EQ(world.Settle(), 0);
}

}  // namespace
}  // namespace trainyard::job
