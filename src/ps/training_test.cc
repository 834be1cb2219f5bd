// Trainers and pservers together: what they learn is what one process learns, whoever is restarted meanwhile.
#include <atomic>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/ps_testing.h"
#include "ps/training_testing.h"

namespace trainyard::ps {
namespace {

using graph::Programs;

TEST(Training, OfTwoByTwoEndsAsOneProcessDoes) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, kAdam);
  TestJob job(programs, {.trainers = 2, .passes = 3, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.Finish();
  graph::Scope scope;
  TrainHere(programs, 2, 10, 3, scope);
  EXPECT_EQ(job.Meta().state, JobState::kComplete);
  EXPECT_EQ(job.Meta().steps, 60);
  ExpectSame(job, scope, 1e-6);
  for (std::int64_t pass = 0; pass < 3; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, GoesBackAndRepeatsExactlyWhenAPserverIsRestarted) {
  const Folder folder;
  const Programs programs =
      Net(WriteCsv(folder), 10,
          {.update = graph::Momentum(), .rate = graph::ExponentialDecay{.base = 0.05, .decay_steps = 20}});
  TestJob job(programs, {.trainers = 2, .passes = 20, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(25);
  job.StopPserver(1);
  job.StartPserver(1);
  job.WaitForStep(60);
  job.StopPserver(0);
  job.StartPserver(0);
  job.Finish();
  EXPECT_GE(job.Meta().generation, 3);
  EXPECT_EQ(job.Meta().steps, 400);
  graph::Scope scope;
  TrainHere(programs, 2, 10, 20, scope);
  ExpectSame(job, scope, 1e-5);
  for (std::int64_t pass = 0; pass < 20; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, UsesEveryRecordOnceThoughTrainersComeAndGo) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 4, kAdam);
  TestJob job(programs, {.trainers = 3, .passes = 5, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  for (int i = 0; i < 6; ++i) {
    job.WaitForStep(10 + 10 * i);
    job.StopTrainer(i % 3);
    job.StartTrainer(i % 3);
  }
  job.Finish();
  for (std::int64_t pass = 0; pass < 5; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

// The labels that the committed steps of all trainers have put out, each step of a trainer once.
std::multiset<float> PutOut(TestJob& job, int trainers) {
  std::multiset<float> labels;
  for (int i = 0; i < trainers; ++i) {
    std::int64_t last = -1;
    const auto outputs =
        job.store().Range({.range = kv::KeyRange::Prefix(job.keys().Outputs(StrCat("trainer-", i)))});
    for (const kv::KeyValue& kv : outputs->kvs) {
      const Output output = DecodeOutput(kv.value).value();
      if (!output.committed || output.step <= last) continue;
      last = output.step;
      for (const double label : output.values[0].values) labels.insert(static_cast<float>(label));
    }
  }
  return labels;
}

TEST(Training, PutsOutEachRecordThatCountsOnceThoughTrainersDieUnheard) {
  for (const graph::SyncMode mode : {graph::SyncMode::kSync, graph::SyncMode::kAsync}) {
    const Folder folder;
    graph::Builder net("net", {.seed = 9});
    const auto fields = net.Read({.sources = {WriteCsv(folder)},
                                  .format = "csv",
                                  .batch_size = 4,
                                  .fields = {{.name = "x", .item = {kFeatures}, .begin = 0},
                                             {.name = "y", .item = {1}, .begin = kFeatures}}});
    net.Output({fields[1]});
    const graph::Ref loss = net.Mean(net.SquareErrorCost(net.Fc(fields[0], 1), fields[1]));
    net.Output({loss});  // two operators: what they put out belongs together
    net.Minimize(loss, kAdam);
    constexpr std::int64_t kPasses = 8;
    TestJob job(*net.Finish(), {.trainers = 2, .passes = kPasses, .pservers = 2, .mode = mode});
    job.StartPserver(0);
    job.StartPserver(1);
    job.StartTrainer(1);
    for (std::int64_t step = 20; step <= 60; step += 20) {
      // From some step on nothing that trainer-0 puts out comes to the store; then it is gone.
      SteppedStore mute(job.store());
      std::atomic<bool> silent = false;
      mute.before_txn = [&] { return silent ? absl::UnavailableError("killed") : absl::OkStatus(); };
      auto trainer = Trainer::Start(
          mute, {.keys = job.keys(), .graph = "trainer-0", .pod_name = "t0", .token = "secret"});
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      std::thread running([&] { (*trainer)->Run().IgnoreError(); });
      job.WaitForStep(step);
      silent = true;
      job.WaitForStep(step + 10);
      (*trainer)->Stop();
      running.join();
    }
    job.StartTrainer(0);
    job.Finish();
    EXPECT_EQ(job.Meta().state, JobState::kComplete);
    std::multiset<float> expected;
    for (const std::vector<float>& record : MakeRecords()) {
      for (std::int64_t pass = 0; pass < kPasses; ++pass) expected.insert(record.back());
    }
    EXPECT_TRUE(PutOut(job, 2) == expected) << (mode == graph::SyncMode::kSync ? "sync" : "async");
  }
}

TEST(Training, APserverThatComesBackToACompleteJobKeepsItsLastCheckpoint) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(programs, {.trainers = 1, .passes = 3, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(15);
  job.StopPserver(1);
  job.StartPserver(1);  // the job goes back to a checkpoint, and remembers to which
  job.Finish();
  ASSERT_TRUE(job.Meta().rolled_back_to);
  ASSERT_LT(*job.Meta().rolled_back_to, job.Meta().steps);
  for (int i = 0; i < 2; ++i) {
    job.StartPserver(i);
    job.AwaitPserver(i);
  }
  const auto pointers = GetCheckpoints(job.store(), job.keys(), PserverIds(2));
  ASSERT_TRUE(pointers.ok());
  for (const GraphCheckpoints& checkpoints : *pointers)
    EXPECT_EQ(checkpoints.kept.back().step, job.Meta().steps);
  EXPECT_EQ(ChooseStepToSave(job.Meta(), *pointers, std::nullopt).value_or(-1), job.Meta().steps);
}

TEST(Training, WithoutStepsConverges) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(
      programs,
      {.trainers = 2, .passes = 30, .pservers = 2, .mode = graph::SyncMode::kAsync, .min_block_elements = 8});
  job.StartAll();
  job.Finish();
  const std::vector<double> losses = job.Losses("trainer-0");
  ASSERT_GT(losses.size(), 100);
  EXPECT_LT(losses.back(), losses.front() / 10);
  for (std::int64_t pass = 0; pass < 30; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, WithoutStepsGoesOnWhenPserversAreRestarted) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(
      programs,
      {.trainers = 2, .passes = 30, .pservers = 2, .mode = graph::SyncMode::kAsync, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(300);
  job.StopPserver(0);
  job.StartPserver(0);
  EXPECT_EQ(job.Meta().generation, 2);
  job.WaitForStep(600);
  job.StopPserver(1);
  job.StartPserver(1);
  EXPECT_EQ(job.Meta().generation, 2);
  job.Finish();
  EXPECT_EQ(job.Meta().state, JobState::kComplete);
  // However far each of them had counted, all have one last checkpoint together, and nothing above it.
  const auto pointers = GetCheckpoints(job.store(), job.keys(), PserverIds(2));
  EXPECT_EQ(job.Meta().steps, job.Account().state().step);
  EXPECT_EQ(ChooseStepToSave(job.Meta(), *pointers, std::nullopt).value_or(-1), job.Meta().steps);
  for (const GraphCheckpoints& checkpoints : *pointers)
    EXPECT_EQ(checkpoints.kept.back().step, job.Meta().steps);
  for (std::int64_t pass = 0; pass < 30; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

}  // namespace
}  // namespace trainyard::ps
