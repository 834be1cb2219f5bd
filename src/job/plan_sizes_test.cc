// Plans for AITrainingJobs: how many pods they have, and how these know of each other.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/ai_job_testing.h"
#include "job/plan.h"

namespace trainyard::job {
namespace {

using testing::HasSubstr;

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

TEST(Size, OfAGroupWithoutPodsIsThatOfTheSpecWhenItBecomesElastic) {
  World world = Running(AiJob({AiRole("master", 1), AiRole("worker", 0)}));
  RoleSpec& worker = world.view.spec.roles[1];
  worker.replicas = 3;
  worker.size = SizePolicy::kAuto;
  worker.least = 1;
  worker.most = 5;
  Await(world);
  EXPECT_EQ(world.view.pods.size(), 4);
}

TEST(Size, OfNothingIsSaid) {
  World world = RunningTrainers(2, RestartPolicy::kAlways, RestartScope::kRole);
  world.view.spec.roles[0].replicas = 0;
  world.Settle();
  EXPECT_EQ(MessageOf(world.view.status), "there is no pod to run: all have 0 replicas");
  EXPECT_TRUE(world.view.pods.empty());
  world.view.spec.roles[0].replicas = 1;
  Await(world);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
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

// ---- jobs without phases whose workers come and go

JobView ElasticWorkers(int replicas, int least, int most) {
  JobView job = Workers(replicas, RestartPolicy::kExitCode);
  job.spec.sized = job.spec.fault_tolerant = true;
  job.spec.roles[0].size = SizePolicy::kManual;
  job.spec.roles[0].least = least;
  job.spec.roles[0].most = most;
  return job;
}

TEST(ElasticWorkers, RunWithThoseThatThereIsRoomFor) {
  World world(ElasticWorkers(3, 2, 4));
  ASSERT_GE(world.Settle(), 0);
  World::Run(*world.Find("worker", 0));
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kCreated) << "one is not enough";
  World::Run(*world.Find("worker", 2));
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(MessageOf(world.view.status), "2 of 3 pods run; waiting for worker-1");
}

TEST(ElasticWorkers, RunOnWhileOneIsAdded) {
  World world(ElasticWorkers(2, 1, 4));
  ASSERT_GE(world.Settle(), 0);
  world.RunAll();
  ASSERT_GE(world.Settle(), 0);
  world.view.spec.roles[0].replicas = 3;
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pods.size(), 3U);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(world.view.status.Find(State::kRestarting), nullptr);
  EXPECT_EQ(world.view.status.roles["Worker"].AttemptOf(0), 0);
}

TEST(ElasticWorkers, RestartWhenOneHasFailed) {
  World world(ElasticWorkers(2, 1, 4));
  ASSERT_GE(world.Settle(), 0);
  world.RunAll();
  ASSERT_GE(world.Settle(), 0);
  world.End(*world.Find("worker", 1), 137);
  world.Step();
  EXPECT_EQ(StateOf(world.view.status), State::kRestarting);
}

TEST(Workers, ThatMayFailAloneAreGivenUpWithoutARestart) {
  JobView job = Workers(2, RestartPolicy::kNever);
  job.spec.roles[0].fail = EndPolicy::kNone;
  World world(std::move(job));
  ASSERT_GE(world.Settle(), 0);
  world.RunAll();
  ASSERT_GE(world.Settle(), 0);
  world.End(*world.Find("worker", 1), 1);
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  EXPECT_EQ(MessageOf(world.view.status), "1 of 2 pods run, 1 has failed");
  EXPECT_TRUE(world.view.status.roles["Worker"].given_up.Contains(1));
  EXPECT_EQ(world.view.status.Find(State::kRestarting), nullptr);
  EXPECT_TRUE(std::ranges::any_of(world.events, [](const Event& e) { return e.reason == "TFJobPodFailed"; }));
  world.End(*world.Find("worker", 0), 0);
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kSucceeded);
}

}  // namespace
}  // namespace trainyard::job
