// Plans for AITrainingJobs: scopes, limits, phases and ends.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/job_testing.h"
#include "job/plan.h"

namespace trainyard::job {
namespace {

using testing::HasSubstr;

// A world whose job has come to run.
World Running(JobView job) {
  World world(std::move(job));
  EXPECT_GE(world.Settle(), 0);
  world.RunAll();
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  return world;
}

World RunningTrainers(int replicas, RestartPolicy restart, RestartScope scope) {
  return Running(AiJob({AiRole("trainer", replicas, restart, scope)}));
}

int AttemptOf(World& world, std::string_view role, int index) {
  const PodView* pod = world.Find(role, index);
  return pod == nullptr ? -1 : pod->attempt;
}

std::int64_t RestartsOf(const World& world, const std::string& role) {
  return world.view.status.roles.at(role).restarts;
}

// Takes steps as long as time alone moves the job on.
void Await(World& world, absl::Duration most = absl::Hours(1)) {
  const absl::Time until = world.now + most;
  while (world.now < until) {
    ASSERT_GE(world.Settle(), 0);
    world.RunAll();
    ASSERT_GE(world.Settle(), 0);
    if (world.view.status.IsFinished() || StateOf(world.view.status) == State::kRunning) return;
    world.Pass(absl::Seconds(5));
  }
}

// ---- phases

TEST(PlanPhases, GoFromPendingOverCreatingToRunning) {
  World world(AiJob({AiRole("trainer", 2)}));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kPending);
  EXPECT_EQ(MessageOf(world.view.status), "0 of 2 pods are scheduled; waiting for trainer-0 and 1 other");
  EXPECT_EQ(world.view.status.roles["trainer"].pending, 2);
  for (PodView& pod : world.view.pods) pod.node = "node-1";
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kCreating);
  EXPECT_EQ(world.view.status.roles["trainer"].scheduled, 2);
  world.RunAll();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.run_time, kStart);
  EXPECT_EQ(world.view.status.Current()->reason, "TrainingJobRunning");
}

TEST(PlanPhases, AreTerminatingThenRestartingThenRunning) {
  World world = RunningTrainers(2, RestartPolicy::kOnFailure, RestartScope::kJob);
  world.End(*world.Find("trainer", 1), 137);
  world.Step();
  EXPECT_EQ(StateOf(world.view.status), State::kTerminating);
  EXPECT_EQ(world.view.status.restarting_role, "trainer");
  EXPECT_THAT(MessageOf(world.view.status), HasSubstr("trainer-1 exited 137 (Error) on node-1; restart 1"));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
  world.RunAll();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.restarting_role, "");
  EXPECT_EQ(world.view.status.run_time, kStart) << "the first time counts";
}

// ---- scopes

TEST(RestartScope, PodMakesOneAgain) {
  World world = RunningTrainers(3, RestartPolicy::kOnFailure, RestartScope::kPod);
  world.End(*world.Find("trainer", 1), 1);
  Await(world);
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 0);
  EXPECT_EQ(AttemptOf(world, "trainer", 1), 1);
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
}

TEST(RestartScope, ReplicaMakesItsRoleAgain) {
  World world = Running(AiJob({AiRole("trainer", 3, RestartPolicy::kOnFailure, RestartScope::kRole),
                               AiRole("pserver", 2, RestartPolicy::kOnFailure, RestartScope::kPod)}));
  world.End(*world.Find("trainer", 1), 1);
  Await(world);
  for (int index = 0; index < 3; ++index) EXPECT_EQ(AttemptOf(world, "trainer", index), 1);
  for (int index = 0; index < 2; ++index) EXPECT_EQ(AttemptOf(world, "pserver", index), 0);
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
  EXPECT_EQ(RestartsOf(world, "pserver"), 0);
}

TEST(RestartScope, AllMakesTheJobAgain) {
  World world = Running(
      AiJob({AiRole("trainer", 3, RestartPolicy::kOnFailure, RestartScope::kJob), AiRole("pserver", 2)}));
  world.End(*world.Find("trainer", 1), 1);
  Await(world);
  for (int index = 0; index < 3; ++index) EXPECT_EQ(AttemptOf(world, "trainer", index), 1);
  for (int index = 0; index < 2; ++index) EXPECT_EQ(AttemptOf(world, "pserver", index), 1);
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
  EXPECT_EQ(RestartsOf(world, "pserver"), 1);
}

TEST(RestartScope, MakesNobodyBeforeTheLastOfThePastIsGone) {
  World world = RunningTrainers(3, RestartPolicy::kOnFailure, RestartScope::kJob);
  // One of them takes its time to end.
  world.Find("trainer", 2)->deletion = Deletion{.asked = world.now, .due = world.now + absl::Seconds(30)};
  world.End(*world.Find("trainer", 0), 1);
  for (int i = 0; i < 10; ++i) {
    for (const Action& action : world.Step().actions)
      EXPECT_FALSE(std::holds_alternative<CreatePod>(action)) << Print(action);
  }
  EXPECT_EQ(world.view.pods.size(), 1);
  EXPECT_EQ(StateOf(world.view.status), State::kTerminating);
  world.Remove(*world.Find("trainer", 2));
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 3);
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
}

TEST(RestartScope, DoesNotMakeGoodAFailureThatEndsTheJob) {
  // Seen at once: one that is final, and one that would be worth a restart of all.
  for (const auto& [first, second] : {std::pair(1, 137), std::pair(137, 1)}) {
    World world = RunningTrainers(2, RestartPolicy::kExitCode, RestartScope::kJob);
    world.End(*world.Find("trainer", 0), first);
    world.End(*world.Find("trainer", 1), second);
    Await(world);
    EXPECT_EQ(StateOf(world.view.status), State::kFailed);
    EXPECT_THAT(MessageOf(world.view.status), HasSubstr("exited 1 (Error)"));
    EXPECT_EQ(RestartsOf(world, "trainer"), 0);
  }
}

TEST(RestartScope, HoldsBackAlsoForThoseOfALargerSizeThatAreStillThere) {
  World world = RunningTrainers(4, RestartPolicy::kAlways, RestartScope::kRole);
  const auto resize = [&](int replicas) {
    world.view.spec.roles[0].replicas = replicas;
    ++world.view.generation;
  };
  resize(5);
  Await(world);
  ASSERT_EQ(AttemptOf(world, "trainer", 4), 1);
  for (int index : {2, 3, 4})  // they take their time
    world.Find("trainer", index)->deletion =
        Deletion{.asked = world.now, .due = world.now + absl::Seconds(30)};
  resize(2);
  world.Settle();
  resize(5);
  for (int i = 0; i < 10; ++i) {
    for (const Action& action : world.Step().actions)
      EXPECT_FALSE(std::holds_alternative<CreatePod>(action)) << Print(action);
  }
  for (int index : {2, 3, 4}) world.Remove(*world.Find("trainer", index));
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 5);
  EXPECT_EQ(RestartsOf(world, "trainer"), 0);
}

TEST(RestartWait, IsNotLongerForChangesOfSize) {
  World world = RunningTrainers(1, RestartPolicy::kAlways, RestartScope::kRole);
  for (int replicas = 2; replicas < 8; ++replicas) {
    world.view.spec.roles[0].replicas = replicas;
    Await(world);
  }
  ASSERT_EQ(AttemptOf(world, "trainer", 0), 6);
  world.End(*world.Find("trainer", 0), 1);
  const absl::Time failed = world.now;
  Await(world);
  EXPECT_EQ(world.now, failed) << "the first failure is not waited after";
}

TEST(RestartWait, IsToldWithItsEndAndTheNumberOfTheRestart) {
  World world = Running(AiJob({AiRole("trainer", 1, RestartPolicy::kAlways, RestartScope::kPod)}));
  world.view.spec.roles[0].restart_limit = 4;
  for (int i = 0; i < 2; ++i) {
    world.End(*world.Find("trainer", 0), 3);
    world.Settle();
    world.RunAll();
    world.Settle();
  }
  EXPECT_EQ(MessageOf(world.view.status),
            "trainer-0 exited 3 (Error) on node-1; restart 2 of 4; waiting for trainer-0 until 22:13:31 UTC");
}

TEST(Sizes, OfNothingAreSaid) {
  World world = RunningTrainers(2, RestartPolicy::kAlways, RestartScope::kRole);
  world.view.spec.roles[0].replicas = 0;
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status), "there is no pod to run: all have 0 replicas");
  EXPECT_TRUE(world.view.pods.empty());
  world.view.spec.roles[0].replicas = 1;
  Await(world);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(RestartScope, OfTheWholeRoleRunsAgainWhatHadCompleted) {
  World world = RunningTrainers(2, RestartPolicy::kOnFailure, RestartScope::kRole);
  world.End(*world.Find("trainer", 0), 0);
  world.Settle();
  EXPECT_TRUE(world.view.status.roles["trainer"].completed.Contains(0));
  world.End(*world.Find("trainer", 1), 1);
  Await(world);
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 1);
  EXPECT_EQ(world.view.status.roles["trainer"].succeeded, 0);
  EXPECT_FALSE(world.view.status.IsFinished());
}

TEST(RestartScope, CountsOneRestartForAllThatFailTogether) {
  World world = RunningTrainers(4, RestartPolicy::kOnFailure, RestartScope::kJob);
  for (PodView& pod : world.view.pods) world.End(pod, 1);
  Await(world);
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
}

TEST(RestartScope, WaitsLongerEachTime) {
  World world = RunningTrainers(2, RestartPolicy::kOnFailure, RestartScope::kJob);
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 4; ++i) {
    world.End(*world.Find("trainer", 0), 1);
    const absl::Time failed = world.now;
    Await(world);
    waits.push_back(world.now - failed);
  }
  EXPECT_EQ(waits,
            (std::vector{absl::ZeroDuration(), absl::Seconds(10), absl::Seconds(20), absl::Seconds(40)}));
}

// ---- limits

TEST(RestartLimit, IsOfOneRole) {
  JobView job = AiJob({AiRole("trainer", 1, RestartPolicy::kOnFailure, RestartScope::kPod),
                       AiRole("pserver", 1, RestartPolicy::kOnFailure, RestartScope::kPod)});
  job.spec.roles[0].restart_limit = 1;
  World world = Running(std::move(job));
  world.End(*world.Find("pserver", 0), 1);
  Await(world);
  world.End(*world.Find("pserver", 0), 1);
  Await(world);
  world.End(*world.Find("trainer", 0), 1);
  Await(world);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  world.End(*world.Find("trainer", 0), 3);
  Await(world);
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_EQ(MessageOf(world.view.status),
            "trainer-0 exited 3 (Error) on node-1; no restart is left: restartLimit of trainer is 1; "
            "failPolicy of trainer is Any");
}

// ---- ends

TEST(Ending, IsTerminatingUntilAllPodsAreGone) {
  World world = RunningTrainers(2, RestartPolicy::kNever, RestartScope::kJob);
  world.End(*world.Find("trainer", 0), 1);
  PodView& slow = *world.Find("trainer", 1);
  slow.deletion = Deletion{.asked = world.now, .due = world.now + absl::Seconds(30)};
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kTerminating);
  EXPECT_FALSE(world.view.status.completion_time);
  EXPECT_THAT(MessageOf(world.view.status), HasSubstr("1 pod is ending"));
  world.Remove(*world.Find("trainer", 1));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_TRUE(world.view.status.completion_time);
  EXPECT_TRUE(world.view.services.empty());
  EXPECT_FALSE(world.view.status.ending);
}

TEST(Ending, WithNoneStopsWhatRunsAndKeepsIt) {
  JobView job = AiJob({AiRole("trainer", 3)});
  job.spec.clean = CleanPolicy::kNone;
  World world = Running(std::move(job));
  world.End(*world.Find("trainer", 0), 1);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_TRUE(world.view.status.completion_time);
  ASSERT_EQ(world.view.pods.size(), 3);
  EXPECT_EQ(world.view.services.size(), 3);
  for (const PodView& pod : world.view.pods) EXPECT_TRUE(pod.IsFinished());
  EXPECT_FALSE(world.Find("trainer", 0)->stopped);
  EXPECT_TRUE(world.Find("trainer", 1)->stopped);
}

TEST(Ending, ComesWithSuccess) {
  World world = RunningTrainers(2, RestartPolicy::kNever, RestartScope::kJob);
  world.End(*world.Find("trainer", 0), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  world.End(*world.Find("trainer", 1), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_EQ(world.view.status.Current()->reason, "TrainingJobSucceed");
  EXPECT_EQ(MessageOf(world.view.status), "all 2 of trainer ended with 0");
  EXPECT_TRUE(world.view.pods.empty());
}

TEST(Ending, IsNodeFailWhenANodeIsToBlame) {
  World world = RunningTrainers(2, RestartPolicy::kOnFailure, RestartScope::kJob);
  world.LoseNode(*world.Find("trainer", 1), NodeHealth::kGone);
  world.Settle();
  world.Pass(absl::Minutes(1));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kNodeFail);
  EXPECT_THAT(MessageOf(world.view.status), HasSubstr("trainer-1 was lost with node-1; not restarted"));
}

TEST(Ending, FollowsAnAnnotationAtAnyTime) {
  for (const State asked : {State::kPreempted, State::kFailed, State::kNodeFail}) {
    for (int moment = 0; moment < 3; ++moment) {
      World world(AiJob({AiRole("trainer", 2, RestartPolicy::kOnFailure)}));
      if (moment > 0) world = Running(world.view);
      if (moment > 1) {
        world.End(*world.Find("trainer", 0), 1);
        world.Step();
        EXPECT_EQ(StateOf(world.view.status), State::kTerminating);
      }
      world.view.spec.asked = AskedEnd{.state = asked, .message = "a better job came"};
      world.Settle();
      EXPECT_EQ(StateOf(world.view.status), asked) << moment;
      EXPECT_EQ(MessageOf(world.view.status),
                std::string("the annotation ") + std::string(Print(asked)) + " was set: a better job came");
      EXPECT_TRUE(world.view.pods.empty());
      EXPECT_TRUE(world.view.status.completion_time);
    }
  }
}

TEST(TimeLimit, CountsFromTheFirstTimeThatAllRan) {
  JobView job = AiJob({AiRole("trainer", 2, RestartPolicy::kOnFailure)});
  job.spec.time_limit = absl::Seconds(100);
  World world(std::move(job));
  world.Settle();
  world.Pass(absl::Seconds(1000));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kPending) << "it has not begun";
  world.RunAll();
  world.Settle();
  world.Pass(absl::Seconds(60));
  world.End(*world.Find("trainer", 0), 1);
  Await(world);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.Plan().wake_after, absl::Seconds(40));
  world.Pass(absl::Seconds(40));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kTimeout);
  EXPECT_EQ(MessageOf(world.view.status), "the job ran for longer than timeLimit: 100");
}

TEST(TimeLimit, HoldsAlsoWhileItRestarts) {
  JobView job = AiJob({AiRole("trainer", 2, RestartPolicy::kOnFailure)});
  job.spec.time_limit = absl::Seconds(100);
  World world = Running(std::move(job));
  world.End(*world.Find("trainer", 0), 1);
  world.Settle();
  world.Pass(absl::Seconds(100));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kTimeout);
}

// ---- containers that cannot be made

World Stuck(JobView job) {
  World world(std::move(job));
  world.Settle();
  PodView& pod = *world.Find("trainer", 0);
  pod.node = "node-1";
  pod.creation_error = "ErrImagePull: no such image";
  world.Settle();
  return world;
}

void StickAgain(World& world) {
  world.Find("trainer", 0)->node = "node-1";
  world.Find("trainer", 0)->creation_error = "ErrImagePull: no such image";
  world.Settle();
}

TEST(CreationErrors, AreShownAndWaitedFor) {
  World world = Stuck(AiJob({AiRole("trainer", 1)}));
  EXPECT_EQ(StateOf(world.view.status), State::kCreating);
  EXPECT_EQ(MessageOf(world.view.status),
            "1 of 1 pods are scheduled; waiting for trainer-0 (ErrImagePull: no such image)");
  EXPECT_EQ(world.Plan().wake_after, absl::Minutes(15));
  world.Pass(absl::Minutes(14));
  world.Settle();
  EXPECT_EQ(RestartsOf(world, "trainer"), 0);
}

TEST(CreationErrors, MakeThePodAgainEveryTimeWithinTheLimit) {
  JobView job = AiJob({AiRole("trainer", 1)});  // whatever the restart policy is
  job.spec.roles[0].restart_limit = 3;
  World world = Stuck(std::move(job));
  for (int i = 1; i <= 3; ++i) {
    world.Pass(absl::Minutes(15));
    world.Settle();
    EXPECT_EQ(RestartsOf(world, "trainer"), i);
    EXPECT_EQ(AttemptOf(world, "trainer", 0), i);
    StickAgain(world);
  }
  world.Pass(absl::Hours(10));
  world.Settle();
  EXPECT_EQ(RestartsOf(world, "trainer"), 3);
  EXPECT_FALSE(world.view.status.IsFinished()) << "it waits, and says for what";
  EXPECT_THAT(MessageOf(world.view.status), HasSubstr("ErrImagePull: no such image"));
  world.RunAll();
  world.Find("trainer", 0)->creation_error.clear();
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(CreationErrors, FailTheJobBeyondTheLimitWhereTheyMay) {
  JobView job = AiJob({AiRole("trainer", 1)});
  job.policies.creation_fails = true;
  job.spec.roles[0].restart_limit = 1;
  World world = Stuck(std::move(job));
  world.Pass(absl::Minutes(15));
  world.Settle();
  StickAgain(world);
  EXPECT_FALSE(world.view.status.IsFinished());
  world.Pass(absl::Minutes(15));
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kFailed);
  EXPECT_THAT(MessageOf(world.view.status),
              HasSubstr("trainer-0 could not be started on node-1: ErrImagePull: no such image; "
                        "no restart is left"));
}

TEST(CreationErrors, CountFromWhenTheErrorBegan) {
  World world = Stuck(AiJob({AiRole("trainer", 1)}));
  world.Pass(absl::Minutes(14));
  world.Find("trainer", 0)->creation_error.clear();
  world.Settle();
  world.Pass(absl::Minutes(14));
  StickAgain(world);
  EXPECT_EQ(RestartsOf(world, "trainer"), 0);
  EXPECT_EQ(world.Plan().wake_after, absl::Minutes(15));
}

// ---- accelerators

TEST(Accelerators, ThatFailAreFailuresOfTheNodeAndAreAvoided) {
  JobView job = AiJob({AiRole("trainer", 2, RestartPolicy::kOnNodeFail, RestartScope::kPod)});
  job.spec.roles[0].accelerated = true;
  World world = Running(std::move(job));
  world.view.avoid_nodes = {"node-1"};
  world.Find("trainer", 1)->accelerator_trouble = "condition GPUFailed";
  const JobPlan raised = world.Step();
  EXPECT_TRUE(raised.actions.empty());
  EXPECT_THAT(MessageOf(world.view.status),
              HasSubstr("trainer-1 lost its accelerator on node-1: condition GPUFailed; restart 1"));
  world.Step();
  const JobPlan plan = world.Step();
  const auto made = std::ranges::find_if(
      plan.actions, [](const Action& action) { return std::holds_alternative<CreatePod>(action); });
  ASSERT_NE(made, plan.actions.end());
  EXPECT_EQ(Print(*made), "create pod trainer-1 (attempt 1) not on node-1: it is made again");
}

TEST(Accelerators, ThatSeemTooFewAreWaitedFor) {
  JobView job = AiJob({AiRole("trainer", 1, RestartPolicy::kOnNodeFail, RestartScope::kPod)});
  job.spec.roles[0].accelerated = true;
  World world = Running(std::move(job));
  PodView& pod = *world.Find("trainer", 0);
  pod.accelerator_trouble = "0 of nvidia.com/gpu are left for 1";
  pod.accelerator_since = world.now;
  const JobPlan plan = world.Plan();
  EXPECT_EQ(plan.wake_after, world.view.policies.node_grace);
  EXPECT_EQ(plan.status, world.view.status);
  world.Pass(*plan.wake_after);
  world.Step();
  EXPECT_EQ(RestartsOf(world, "trainer"), 1);
}

TEST(Accelerators, AreNothingToARoleThatAsksForNone) {
  World world = RunningTrainers(1, RestartPolicy::kOnNodeFail, RestartScope::kPod);
  world.Find("trainer", 0)->accelerator_trouble = "condition GPUFailed";
  EXPECT_EQ(world.Plan().status, world.view.status);
}

TEST(Accelerators, ThatAreWellAgainAreNoLongerAvoided) {
  JobView job = AiJob({AiRole("trainer", 1)});
  job.spec.roles[0].accelerated = true;
  World world(std::move(job));
  world.view.avoid_nodes = {"node-1", "node-2"};
  world.Settle();
  world.Find("trainer", 0)->avoids = {"node-1", "node-2"};
  EXPECT_TRUE(world.Plan().actions.empty());
  world.view.avoid_nodes = {"node-2"};
  const JobPlan plan = world.Step();
  ASSERT_EQ(plan.actions.size(), 1U);
  EXPECT_THAT(Print(plan.actions[0]), HasSubstr("a node that it avoids is well again"));
  world.Settle();
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 0) << "nothing has failed";
}

// ---- members that are given up

TEST(GivenUp, MembersAreNotMadeAgainWhenTheirPodsGo) {
  JobView job = AiJob({AiRole("trainer", 3)});
  job.spec.roles[0].fail = EndPolicy::kRank0;
  World world = Running(std::move(job));
  world.End(*world.Find("trainer", 2), 1);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(MessageOf(world.view.status), "2 of 3 pods run, 1 has failed");
  world.Remove(*world.Find("trainer", 2));
  world.Settle();
  EXPECT_EQ(world.Find("trainer", 2), nullptr);
  world.End(*world.Find("trainer", 0), 0);
  world.End(*world.Find("trainer", 1), 0);
  world.Settle();
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
  EXPECT_EQ(MessageOf(world.view.status), "2 of 3 of trainer ended with 0");
}

// ---- sizes

TEST(Size, ThatChangesMakesARoleAgainOnce) {
  World world = RunningTrainers(2, RestartPolicy::kNever, RestartScope::kJob);
  world.view.spec.roles[0].replicas = 4;
  world.Step();
  EXPECT_EQ(StateOf(world.view.status), State::kTerminating);
  EXPECT_EQ(MessageOf(world.view.status), "trainer goes from 2 to 4 pods; all of them are made again");
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 4);
  for (int index = 0; index < 4; ++index) EXPECT_EQ(AttemptOf(world, "trainer", index), 1);
  EXPECT_EQ(RestartsOf(world, "trainer"), 0) << "that is no failure";
  world.view.spec.roles[0].replicas = 1;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 1);
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 2);
}

TEST(Size, ThatChangesLeavesTheOthersOfAFaultTolerantJob) {
  JobView job = AiJob({AiRole("trainer", 2)});
  job.spec.fault_tolerant = true;
  World world = Running(std::move(job));
  world.view.spec.roles[0].replicas = 4;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 4);
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 0);
  world.view.spec.roles[0].replicas = 1;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 1);
  EXPECT_EQ(AttemptOf(world, "trainer", 0), 0);
}

TEST(Size, StaysWithinItsBounds) {
  JobView job = AiJob({AiRole("trainer", 2)});
  job.spec.roles[0].size = SizePolicy::kManual;
  job.spec.roles[0].least = 1;
  job.spec.roles[0].most = 3;
  World world = Running(std::move(job));
  world.view.spec.roles[0].replicas = 9;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 3);
  EXPECT_EQ(MessageOf(world.view.status), "all 3 pods run; trainer has 3 pods, not 9: maxReplicas is 3");
}

TEST(Size, OfEdlPolicyNeverStays) {
  JobView job = AiJob({AiRole("trainer", 2)});
  job.spec.roles[0].size = SizePolicy::kFixed;
  World world = Running(std::move(job));
  world.view.spec.roles[0].replicas = 5;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 2);
  EXPECT_EQ(MessageOf(world.view.status), "all 2 pods run; trainer has 2 pods, not 5: edlPolicy is Never");
}

TEST(Size, OfEdlPolicyAutoIsTheAutoscalers) {
  JobView job = AiJob({AiRole("trainer", 1)});
  job.spec.roles[0].size = SizePolicy::kAuto;
  job.spec.roles[0].least = 2;
  job.spec.roles[0].most = 5;
  job.spec.fault_tolerant = true;
  World world = Running(std::move(job));
  EXPECT_EQ(world.view.pods.size(), 2) << "it begins with the least";
  world.view.targets["trainer"] = 4;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 4);
  world.view.targets.clear();
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 4) << "what was decided stays";
  world.view.targets["trainer"] = 100;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 5);
}

// ---- members

TEST(Members, AreToldOfEachOtherUnderAnEpochThatRises) {
  JobView job = AiJob({AiRole("trainer", 2, RestartPolicy::kOnFailure, RestartScope::kPod)});
  job.spec.fault_tolerant = true;
  World world(std::move(job));
  world.Settle();
  ASSERT_TRUE(world.view.members);
  EXPECT_EQ(world.view.members->text, "epoch 1\n");
  world.RunAll();
  world.Settle();
  const std::string both = world.view.members->text;
  EXPECT_THAT(both, HasSubstr("epoch 2\ntrainer 0 mnist-trainer-0.default "));
  EXPECT_THAT(both, HasSubstr("\ntrainer 1 mnist-trainer-1.default "));
  world.End(*world.Find("trainer", 1), 1);
  world.Settle();
  EXPECT_THAT(world.view.members->text, HasSubstr("epoch 3\ntrainer 0"));
  EXPECT_EQ(world.view.members->text.find("trainer 1"), std::string::npos);
  Await(world);
  EXPECT_THAT(world.view.members->text, HasSubstr("epoch 4\n"));
  EXPECT_NE(world.view.members->text, both) << "the one that was made again is another";
  EXPECT_FALSE(world.lost_epochs);
}

TEST(Members, ListThatSomebodyDeletedComesBackUnderItsEpoch) {
  JobView job = AiJob({AiRole("trainer", 1)});
  job.spec.fault_tolerant = true;
  World world = Running(std::move(job));
  const std::string before = world.view.members->text;
  world.view.members.reset();
  world.Settle();
  ASSERT_TRUE(world.view.members);
  EXPECT_EQ(world.view.members->text, before);
}

TEST(Members, OfAJobThatIsNotFaultTolerantAreNotTold) {
  EXPECT_FALSE(RunningTrainers(2, RestartPolicy::kNever, RestartScope::kJob).view.members);
}

}  // namespace
}  // namespace trainyard::job
