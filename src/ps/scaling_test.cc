// Jobs that get other trainers and pservers while they run: nothing that was learnt is lost, every record is
// used once.
#include "ps/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/ps_testing.h"
#include "ps/training_testing.h"

namespace trainyard::ps {
namespace {

using graph::Programs;
using graph::SyncMode;
using testing::ElementsAre;
using testing::HasSubstr;

void ExpectAllUsed(TestJob& job, std::int64_t passes) {
  const Lead account = job.Account();
  for (std::int64_t pass = 0; pass < passes; ++pass) EXPECT_EQ(account.Used(pass), kRecords) << pass;
}

// Every record the same: whoever reads how many of them, a step does the same.
Records SameRecords() { return {kRecords, MakeRecords().front()}; }

TEST(ScaleTrainers, GoesOnWhereTheJobIsWithMoreAndWithFewer) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder, SameRecords()), 1, kAdam);
  TestJob job(programs, {.trainers = 1, .passes = 2, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(50);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).ok());
  job.StartTrainer(1);
  job.StartTrainer(2);
  job.WaitForStep(150);
  EXPECT_EQ(job.Meta().generation, 2);
  EXPECT_THAT(*ListGraphs(job.store(), job.keys()),
              ElementsAre("trainer-0", "trainer-1", "trainer-2", "pserver-0", "pserver-1"));
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 2).ok());
  job.AwaitTrainer(2);
  EXPECT_THAT(*ListGraphs(job.store(), job.keys()),
              ElementsAre("trainer-0", "trainer-1", "pserver-0", "pserver-1"));
  job.Finish();
  const JobMeta meta = job.Meta();
  EXPECT_EQ(meta.state, JobState::kComplete);
  EXPECT_EQ(meta.generation, 3);
  EXPECT_EQ(meta.Cut(), (graph::Cut{.pservers = 2, .slots = 3}));
  EXPECT_LT(meta.steps, 2 * kRecords);
  ExpectAllUsed(job, 2);
  graph::Scope scope;
  LocalRun run(programs, scope);
  for (std::int64_t i = 0; i < meta.steps; ++i) run.Step({SameRecords().front()});
  ExpectSame(job, scope, 1e-5);
}

TEST(ScaleTrainers, KeepsLearningOnRealData) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 5, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(programs, {.trainers = 1, .passes = 10, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(100);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).ok());
  job.StartTrainer(1);
  job.StartTrainer(2);
  job.WaitForStep(160);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 2).ok());
  job.Finish();
  ExpectAllUsed(job, 10);
  const std::vector<double> losses = job.Losses("trainer-0");
  EXPECT_LT(losses.back(), losses.front() / 10);
}

TEST(ScaleTrainers, WithoutStepsKeepsLearningToo) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 5, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(
      programs,
      {.trainers = 1, .passes = 20, .pservers = 2, .mode = SyncMode::kAsync, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(100);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).ok());
  job.StartTrainer(1);
  job.StartTrainer(2);
  job.WaitForStep(400);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 2).ok());
  job.AwaitTrainer(2);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).ok());
  job.StartTrainer(2);
  job.Finish();
  ExpectAllUsed(job, 20);
  const std::vector<double> losses = job.Losses("trainer-0");
  EXPECT_LT(losses.back(), losses.front() / 10);
}

TEST(ScaleTrainers, NeedsNotAllThatItAsksFor) {
  const Folder folder;
  TestJob job(Net(WriteCsv(folder), 5, kAdam), {.passes = 3, .pservers = 1});
  job.StartAll();
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 4).ok());
  job.StartTrainer(2);
  job.Finish();
  ExpectAllUsed(job, 3);
}

TEST(ScaleTrainers, LetsAPserverThatIsRestartedMeanwhileFollow) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder, SameRecords()), 1, kAdam);
  TestJob job(programs, {.trainers = 1, .passes = 2, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(50);
  job.StopPserver(1);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 2).ok());
  job.StartTrainer(1);
  job.StartPserver(1);
  job.WaitForStep(150);
  job.StopPserver(0);
  ASSERT_TRUE(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).ok());
  job.StartPserver(0);
  job.Finish();
  ExpectAllUsed(job, 2);
  graph::Scope scope;
  LocalRun run(programs, scope);
  for (std::int64_t i = 0; i < job.Meta().steps; ++i) run.Step({SameRecords().front()});
  ExpectSame(job, scope, 1e-5);
}

TEST(ScaleTrainers, RefusesWhatCannotBe) {
  const Folder folder;
  TestJob job(Net(WriteCsv(folder), 5, kAdam), {.pservers = 1}, {.checkpoint_every = 10, .most_trainers = 2});
  EXPECT_TRUE(absl::IsNotFound(ScaleTrainers(job.store(), job.ids(), {"default/other"}, 2)));
  EXPECT_TRUE(absl::IsInvalidArgument(ScaleTrainers(job.store(), job.ids(), job.keys(), 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(GrowTrainers(job.store(), job.ids(), job.keys(), 3)));
  EXPECT_TRUE(GrowTrainers(job.store(), job.ids(), job.keys(), 2).ok());
  EXPECT_TRUE(GrowTrainers(job.store(), job.ids(), job.keys(), 1).ok());
  EXPECT_EQ(job.Meta().trainers, 2);
  ASSERT_TRUE(FailJob(job.store(), job.keys(), "it is enough").ok());
  EXPECT_THAT(std::string(ScaleTrainers(job.store(), job.ids(), job.keys(), 3).message()),
              HasSubstr("it is enough"));
}

class ScalePserversTest : public testing::Test {
 protected:
  static constexpr std::int64_t kPasses = 20;
  static constexpr graph::TranspileOptions kOptions = {
      .trainers = 2, .passes = kPasses, .pservers = 2, .min_block_elements = 8};

  absl::Status Scale(int n) {
    return ScalePservers(job_.store(), job_.ids(), job_.keys(), n, absl::Seconds(30));
  }
  // Lets what runs come to its end, which is that of a job that nobody disturbed.
  void ExpectUndisturbed() {
    job_.Finish();
    EXPECT_EQ(job_.Meta().state, JobState::kComplete);
    EXPECT_EQ(job_.Meta().steps, kPasses * kRecords / 20);
    ExpectAllUsed(job_, kPasses);
    graph::Scope scope;
    TrainHere(programs_, 2, 10, kPasses, scope);
    ExpectSame(job_, scope, 1e-6);
  }

  const Folder folder_;
  const Programs programs_ = Net(WriteCsv(folder_), 10, kAdam);
  TestJob job_{programs_, kOptions};
};

TEST_F(ScalePserversTest, EndsAsAJobThatNobodyDisturbed) {
  job_.StartAll();
  job_.WaitForStep(30);
  ASSERT_TRUE(Scale(3).ok());
  job_.StartPserver(2);
  job_.WaitForStep(90);
  const std::int64_t generation = job_.Meta().generation;
  const absl::Status scaled = Scale(1);
  ASSERT_TRUE(scaled.ok()) << scaled;
  EXPECT_EQ(job_.Meta().generation, generation + 1);
  job_.AwaitPserver(1);
  job_.AwaitPserver(2);
  ExpectUndisturbed();
  EXPECT_EQ(job_.Meta().pservers, 1);
  // Nothing is left of those that the job had.
  const auto pointers = job_.store().Range({.range = kv::KeyRange::Prefix(job_.keys().Checkpoint(""))});
  ASSERT_EQ(pointers->kvs.size(), 1);
  EXPECT_EQ(pointers->kvs[0].key, job_.keys().Checkpoint("pserver-0"));
  for (const auto& file : std::filesystem::directory_iterator(job_.folder().path()))
    EXPECT_THAT(file.path().filename().string(), testing::StartsWith("pserver-0-"));
}

TEST_F(ScalePserversTest, ComesUpThoughAPserverDiesBeforeAllAreCutAnew) {
  job_.StartAll();
  job_.WaitForStep(30);
  ASSERT_TRUE(Scale(3).ok());
  job_.StopPserver(1);
  job_.StartPserver(1);
  job_.StopPserver(0);
  job_.StartPserver(2);
  job_.StartPserver(0);
  job_.WaitForStep(90);
  job_.StopPserver(2);
  job_.StartPserver(2);
  ExpectUndisturbed();
}

TEST_F(ScalePserversTest, IsAsBeforeIfWhoeverScalesDiesBetweenTheGraphsAndTheMeta) {
  job_.StartAll();
  job_.WaitForStep(30);
  const auto is_cut_anew = [&] {
    return GetGraph(job_.store(), job_.keys(), "pserver-1")->cut.pservers == 3;
  };
  SteppedStore stepped(job_.store());
  stepped.before_txn = [&] { return is_cut_anew() ? absl::UnavailableError("dead") : absl::OkStatus(); };
  EXPECT_TRUE(absl::IsUnavailable(ScalePservers(stepped, job_.ids(), job_.keys(), 3, absl::Seconds(30))));
  ASSERT_TRUE(is_cut_anew());
  EXPECT_EQ(job_.Meta().pservers, 2);
  job_.StopPserver(1);
  job_.StartPserver(1);
  job_.StopTrainer(0);
  job_.StartTrainer(0);
  job_.WaitForStep(60);
  ASSERT_TRUE(Scale(3).ok());
  job_.StartPserver(2);
  job_.Finish();
  EXPECT_EQ(job_.Meta().state, JobState::kComplete);
  ExpectAllUsed(job_, kPasses);
}

TEST_F(ScalePserversTest, IsTakenBackIfNewOnesDoNotCome) {
  job_.StartAll();
  job_.WaitForStep(30);
  ASSERT_TRUE(Scale(3).ok());
  ASSERT_TRUE(Scale(4).ok());
  ASSERT_TRUE(Scale(2).ok());
  ExpectUndisturbed();
}

TEST_F(ScalePserversTest, SaysThatNobodyWritesACheckpoint) {
  const absl::Status scaled = ScalePservers(job_.store(), job_.ids(), job_.keys(), 3, absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(scaled));
  EXPECT_THAT(std::string(scaled.message()), HasSubstr("do all 2 of them run?"));
  // What was asked for is done when they come, and disturbs nobody.
  job_.StartAll();
  ExpectUndisturbed();
  EXPECT_EQ(job_.Meta().checkpoints_made, 1);
}

TEST_F(ScalePserversTest, GoesTogetherWithOtherTrainers) {
  job_.StartAll();
  job_.WaitForStep(30);
  ASSERT_TRUE(Scale(3).ok());
  ASSERT_TRUE(ScaleTrainers(job_.store(), job_.ids(), job_.keys(), 3).ok());
  job_.StartTrainer(2);
  job_.StartPserver(2);
  job_.WaitForStep(60);
  ASSERT_TRUE(Scale(2).ok());
  job_.Finish();
  EXPECT_EQ(job_.Meta().state, JobState::kComplete);
  ExpectAllUsed(job_, kPasses);
}

TEST(ScalePservers, WithoutStepsKeepsLearning) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 5, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(
      programs,
      {.trainers = 2, .passes = 20, .pservers = 2, .mode = SyncMode::kAsync, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(200);
  ASSERT_TRUE(ScalePservers(job.store(), job.ids(), job.keys(), 3, absl::Seconds(30)).ok());
  job.StartPserver(2);
  job.WaitForStep(600);
  ASSERT_TRUE(ScalePservers(job.store(), job.ids(), job.keys(), 1, absl::Seconds(30)).ok());
  job.Finish();
  EXPECT_EQ(job.Meta().state, JobState::kComplete);
  ExpectAllUsed(job, 20);
  const std::vector<double> losses = job.Losses("trainer-0");
  EXPECT_LT(losses.back(), losses.front() / 10);
}

}  // namespace
}  // namespace trainyard::ps
