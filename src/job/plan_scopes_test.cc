// Plans for AITrainingJobs: who is made again with whom, when, and how often.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/ai_job_testing.h"
#include "job/plan.h"

namespace trainyard::job {
namespace {

using testing::HasSubstr;

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
    const JobPlan plan = world.Step();
    for (const Action& action : plan.actions())
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
    const JobPlan plan = world.Step();
    for (const Action& action : plan.actions())
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

}  // namespace
}  // namespace trainyard::job
