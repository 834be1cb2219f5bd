// Plans for AITrainingJobs: phases, ends, and what fails them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/ai_job_testing.h"
#include "job/plan.h"

namespace trainyard::job {
namespace {

using testing::HasSubstr;

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
  EXPECT_TRUE(raised.actions().empty());
  EXPECT_THAT(MessageOf(world.view.status),
              HasSubstr("trainer-1 lost its accelerator on node-1: condition GPUFailed; restart 1"));
  world.Step();
  const JobPlan plan = world.Step();
  const auto made = std::ranges::find_if(
      plan.actions(), [](const Action& action) { return std::holds_alternative<CreatePod>(action); });
  ASSERT_NE(made, plan.actions().end());
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
  EXPECT_TRUE(world.Plan().actions().empty());
  world.view.avoid_nodes = {"node-2"};
  const JobPlan plan = world.Step();
  ASSERT_EQ(plan.actions().size(), 1U);
  EXPECT_THAT(Print(plan.actions()[0]), HasSubstr("a node that it avoids is well again"));
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

}  // namespace
}  // namespace trainyard::job
