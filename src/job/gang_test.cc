#include "job/gang.h"

#include "gtest/gtest.h"
#include "job/ai_job_testing.h"
#include "job/job_testing.h"
#include "job/plan.h"

namespace trainyard::job {
namespace {

JobView GangJob(int replicas, GangScheduler gang, RestartPolicy restart = RestartPolicy::kNever,
                RestartScope scope = RestartScope::kPod) {
  JobView job = AiJob({AiRole("trainer", replicas, restart, scope)});
  job.spec.roles[0].gang = true;
  job.policies.gang = gang;
  return job;
}

int CountGated(const World& world) {
  return static_cast<int>(std::ranges::count_if(world.view.pods, &PodView::gated));
}

TEST(GangMinimum, CountsAllPodsOfRolesInTheGang) {
  JobView job = AiJob({AiRole("trainer", 4), AiRole("pserver", 2)});
  EXPECT_FALSE(HasGang(job.spec));
  job.spec.roles[0].gang = true;
  EXPECT_TRUE(HasGang(job.spec));
  EXPECT_EQ(GangMinimum(job.spec, job.status), 4);
  job.spec.roles[1].gang = true;
  EXPECT_EQ(GangMinimum(job.spec, job.status), 6);
}

TEST(GangMinimum, TakesAnElasticRoleAtItsLeast) {
  JobView job = GangJob(4, GangScheduler::kGates);
  job.spec.roles[0].size = SizePolicy::kAuto;
  job.spec.roles[0].least = 2;
  job.spec.roles[0].most = 8;
  EXPECT_EQ(GangMinimum(job.spec, job.status), 2);
}

TEST(GangMinimum, IsMinAvailableWhereTheJobSaysSo) {
  JobView job = AiJob({AiRole("worker", 4), AiRole("master", 1)});
  job.spec.gang_min_available = 3;
  EXPECT_TRUE(HasGang(job.spec));
  EXPECT_EQ(GangMinimum(job.spec, job.status), 3);
  job.spec.gang_min_available = 50;
  EXPECT_EQ(GangMinimum(job.spec, job.status), 5);
}

TEST(GangMinimum, LeavesOutThoseThatAreDone) {
  JobView job = GangJob(4, GangScheduler::kGates);
  job.status.roles["trainer"].completed.Insert(1);
  job.status.roles["trainer"].given_up.Insert(2);
  EXPECT_EQ(GangMinimum(job.spec, job.status), 2);
}

TEST(PlanGang, WritesThePodGroupBeforeAnyPod) {
  World world(GangJob(4, GangScheduler::kCoscheduling));
  while (!world.view.pod_group) {
    world.Step();
    ASSERT_TRUE(world.view.pods.empty());
  }
  EXPECT_EQ(world.view.pod_group->minimum, 4);
  const JobPlan plan = world.Plan();
  const auto* create = std::get_if<CreatePod>(&plan.actions().back());
  for (const Action& action : plan.actions()) {
    if (std::holds_alternative<CreatePod>(action)) create = std::get_if<CreatePod>(&action);
  }
  ASSERT_NE(create, nullptr);
  EXPECT_EQ(create->gang, GangScheduler::kCoscheduling);
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pods.size(), 4U);
}

TEST(PlanGang, LowersThePodGroupWhenAMemberHasCompleted) {
  World world = Running(GangJob(3, GangScheduler::kCoscheduling));
  world.End(*world.Find("trainer", 1), 0);
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pod_group->minimum, 2);
}

TEST(PlanGang, KeepsPodsBehindGatesUntilThereIsRoomForAll) {
  World world(GangJob(4, GangScheduler::kGates));
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(CountGated(world), 4);
  world.Pass(absl::Hours(1));
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(CountGated(world), 4);
  world.view.gang.admitted = true;
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(CountGated(world), 0);
  world.RunAll();
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
}

TEST(PlanGang, LeavesRolesOutsideOfTheGangAlone) {
  JobView job = AiJob({AiRole("trainer", 2), AiRole("watcher", 1)});
  job.spec.roles[0].gang = true;
  job.policies.gang = GangScheduler::kGates;
  World world(std::move(job));
  EXPECT_GE(world.Settle(), 0);
  EXPECT_FALSE(world.Find("watcher", 0)->gated);
  EXPECT_TRUE(world.Find("trainer", 0)->gated);
}

TEST(PlanGang, ReplacesAMemberOfAnOpenGangWithoutAGate) {
  JobView job = GangJob(3, GangScheduler::kGates, RestartPolicy::kAlways);
  job.gang.admitted = true;
  World world = Running(std::move(job));
  world.view.gang.admitted = false;
  world.End(*world.Find("trainer", 1), 1);
  for (int i = 0; i < 50 && AttemptOf(world, "trainer", 1) != 1; ++i) {
    ASSERT_GE(world.Settle(), 0);
    world.Pass(absl::Seconds(5));
  }
  EXPECT_EQ(AttemptOf(world, "trainer", 1), 1);
  EXPECT_EQ(CountGated(world), 0);
}

TEST(PlanGang, GivesBackAPartOfItsNodesAfterAMinuteAndTriesAgain) {
  JobView job = GangJob(3, GangScheduler::kGates);
  job.gang.admitted = true;
  World world(std::move(job));
  ASSERT_GE(world.Settle(), 0);
  World::Run(*world.Find("trainer", 0));
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(world.view.pods.size(), 3U);
  EXPECT_EQ(world.Plan().wake_after, absl::Minutes(1));
  world.view.gang.admitted = false;
  world.Pass(absl::Minutes(1));
  ASSERT_GE(world.Settle(), 0);
  EXPECT_TRUE(world.view.pods.empty());
  EXPECT_EQ(world.view.status.gang_returns, 1);
  EXPECT_NE(MessageOf(world.view.status).find("gave them back"), std::string::npos);
  EXPECT_TRUE(std::ranges::any_of(world.events, [](const Event& event) {
    return event.reason == "GangGaveBack" && event.message.find("1 of 3 nodes") != std::string::npos;
  }));
  world.Pass(absl::Minutes(2));
  ASSERT_GE(world.Settle(), 0);
  EXPECT_EQ(CountGated(world), 3);
}

TEST(PlanGang, KeepsWhatIsLeftOfAGangThatHasRun) {
  JobView job = GangJob(3, GangScheduler::kGates, RestartPolicy::kAlways);
  job.gang.admitted = true;
  World world = Running(std::move(job));
  world.Pass(absl::Minutes(5));
  world.LoseNode(*world.Find("trainer", 1), NodeHealth::kGone);
  for (int i = 0; i < 50; ++i) {  // the new one finds no node
    ASSERT_GE(world.Settle(), 0);
    world.Pass(absl::Seconds(10));
  }
  EXPECT_EQ(world.view.status.gang_returns, 0);
  EXPECT_TRUE(world.Find("trainer", 0)->main_runs);
  EXPECT_TRUE(world.Find("trainer", 2)->main_runs);
}

TEST(PlanGang, StartsPodsOneByOneWhereNobodyStartsGangs) {
  World world(GangJob(3, GangScheduler::kNone));
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(CountGated(world), 0);
  EXPECT_FALSE(world.view.pod_group);
}

}  // namespace
}  // namespace trainyard::job
