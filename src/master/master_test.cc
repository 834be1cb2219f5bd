#include "master/master.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "master/master_testing.h"

namespace trainyard::master {
namespace {

using testing::HasSubstr;

TEST(Master, OneWorkerLearnsWhatOneProcessWould) {
  TestElasticJob job({.minibatch = 20, .minibatches_per_task = 4, .epochs = 3, .shuffle = "none"});
  job.Start();
  WorkerThread worker(job.Worker(0));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_TRUE(worker.Join().ok());
  const Progress progress = job.master().GetProgress();
  EXPECT_EQ(progress.total_records, 3 * ps::kRecords);
  EXPECT_EQ(progress.version, 60);
  graph::Scope scope;
  ps::TrainHere(job.programs(), 1, 20, 3, scope);
  ExpectVariables(job.Learnt(), scope, 0);
}

TEST(Master, SeveralWorkersUseEachRecordOnceInEachEpoch) {
  for (const bool async : {false, true}) {
    TestElasticJob job({.minibatch = 10, .minibatches_per_task = 3, .epochs = 4, .async = async});
    job.Start();
    std::vector<std::unique_ptr<WorkerThread>> workers;
    for (int i = 0; i < 4; ++i) workers.push_back(std::make_unique<WorkerThread>(job.Worker(i)));
    const absl::Status ended = job.master().Wait();
    ASSERT_TRUE(ended.ok()) << ended;
    for (const auto& worker : workers) EXPECT_TRUE(worker->Join().ok());
    EXPECT_EQ(job.master().GetProgress().total_records, 4 * ps::kRecords);
    EXPECT_EQ(job.master().GetProgress().version, 4 * ps::kRecords / 10);
    EXPECT_LT(*job.master().GetProgress().loss, 0.5);
  }
}

TEST(Master, AppliesAGroupThatCannotBecomeFullAtTheEndOfAnEpoch) {
  // 40 minibatches in each epoch, seven to a step: five steps of seven and one of five.
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 3, .epochs = 2, .grads_to_wait = 7});
  job.Start();
  WorkerThread first(job.Worker(0));
  WorkerThread second(job.Worker(1));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 2 * ps::kRecords);
  EXPECT_EQ(job.master().GetProgress().version, 12);
}

TEST(Master, GoesOnWithoutWorkersThatStopAndWithThoseThatCome) {
  TestElasticJob job({.minibatch = 5, .minibatches_per_task = 4, .epochs = 30});
  job.Start();
  WorkerThread lasting(job.Worker(0));
  for (int i = 0; i < 20; ++i) {
    WorkerThread passing(job.Worker(1));
    absl::SleepFor(absl::Milliseconds(5));
    passing.Stop();
  }
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 30 * ps::kRecords);
  EXPECT_EQ(job.master().GetProgress().version, 30 * ps::kRecords / 5);
}

TEST(Master, GoesOnFromItsCheckpointWhenItIsStartedAgain) {
  TestElasticJob job(
      {.minibatch = 20, .minibatches_per_task = 4, .epochs = 10, .shuffle = "none", .checkpoint_steps = 7});
  job.Start();
  {
    WorkerThread worker(job.Worker(0));
    while (job.master().GetProgress().version < 50) absl::SleepFor(absl::Milliseconds(1));
    job.Kill();
    worker.Stop();
  }
  job.Start();
  WorkerThread worker(job.Worker(0));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 10 * ps::kRecords);
  graph::Scope scope;
  ps::TrainHere(job.programs(), 1, 20, 10, scope);
  ExpectVariables(job.Learnt(), scope, 0);
}

TEST(Master, EvaluatesAFrozenVersionAndTheLastOne) {
  TestElasticJob job({.minibatch = 20, .minibatches_per_task = 2, .epochs = 3, .evaluation_steps = 10});
  job.spec().validation_data = {job.file()};
  job.spec().output = job.At("output");
  job.Start();
  WorkerThread first(job.Worker(0));
  WorkerThread second(job.Worker(1));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  const Progress progress = job.master().GetProgress();
  EXPECT_EQ(progress.evaluated, 60);
  ASSERT_EQ(progress.metrics.size(), 1);
  // The loss over all records, computed here.
  graph::Scope scope;
  for (const auto& [name, tensor] : job.Learnt()) scope.Put(name, tensor);
  auto test = graph::PreparedBlock::Make(graph::CloneForTest(job.programs().main), 0, scope);
  ASSERT_TRUE(test.ok()) << test.status();
  graph::Tensor x(graph::DataType::kFloat32, {ps::kRecords, ps::kFeatures});
  graph::Tensor y(graph::DataType::kFloat32, {ps::kRecords, 1});
  const ps::Records records = ps::MakeRecords();
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::copy(records[i].begin(), records[i].end() - 1, x.data<float>() + i * ps::kFeatures);
    y.data<float>()[i] = records[i].back();
  }
  ASSERT_TRUE((*test)->Feed("x", x).ok());
  ASSERT_TRUE((*test)->Feed("y", y).ok());
  graph::Services services;
  ASSERT_TRUE((*test)->Run(services).ok());
  const auto loss = (*test)->Fetch(progress.metrics[0].name);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_NEAR(progress.metrics[0].value, *loss->data<float>(), 1e-5);
}

TEST(Master, StopsAfterSoManySteps) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 8, .epochs = 100, .max_steps = 33});
  job.Start();
  WorkerThread first(job.Worker(0));
  WorkerThread second(job.Worker(1));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().version, 33);
}

TEST(Master, FailsWithTheRecordsThatCannotBeRead) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 2, .shuffle = "none"});
  std::ofstream(job.file(), std::ios::app) << "1,2,3,4,5,no number,7\n";
  job.Start();
  WorkerThread worker(job.Worker(0));
  const absl::Status ended = job.master().Wait();
  EXPECT_THAT(std::string(ended.message()), HasSubstr("records [400, 401) of epoch 1 failed 3 times"));
  EXPECT_THAT(std::string(ended.message()), HasSubstr("data.csv: line 401"));
}

TEST(Master, TellsAWorkerThatComesWhenTheJobHasFailedAndStaysUntilItsPodHasEnded) {
  TestElasticJob job({});
  job.Start();
  job.master().ExpectPods("worker", 1);
  job.master().Fail("it cannot be done");
  const absl::Status told = WorkerThread(job.Worker(0)).Join();
  EXPECT_TRUE(absl::IsFailedPrecondition(told)) << told;
  EXPECT_EQ(told.message(), "the job has failed: it cannot be done");
  job.master().ExpectPods("worker", 0);
  EXPECT_EQ(job.master().Wait().message(), "it cannot be done");
}

// A worker that the test plays itself, one call at a time.
class Played {
 public:
  Played(const TestElasticJob& job, int index) {
    auto trainer = WorkerTrainer::Connect(job.Worker(index));
    TY_CHECK(trainer.ok(), trainer.status().ToString());
    trainer_ = *std::move(trainer);
    trainer_->Start([](const tasks::Task&, tasks::Range) { return std::make_shared<int>(0); });
  }
  Batch Next() {
    auto batch = trainer_->Next();
    TY_CHECK(batch.ok(), batch.status().ToString());
    return *std::move(batch);
  }
  PulledModel Pull() { return *trainer_->Pull(-1); }
  PushResult Push(const Batch& batch, const PulledModel& model, std::int64_t version) {
    NamedValues gradients;
    for (const auto& [name, value] : model.values)
      gradients.emplace_back(name + "@GRAD",
                             graph::Tensor(graph::DataType::kFloat32, std::get<graph::Tensor>(value).dims()));
    auto pushed = trainer_->Push(
        batch, {.generation = model.generation, .version = version, .values = std::move(gradients)});
    TY_CHECK(pushed.ok(), pushed.status().ToString());
    return *std::move(pushed);
  }
  WorkerTrainer& trainer() { return *trainer_; }

 private:
  std::unique_ptr<WorkerTrainer> trainer_;
};

TEST(Master, HasAGradientThatIsTooOldComputedAgainOnce) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4, .staleness = 1});
  job.Start();
  Played slow(job, 0);
  Played fast(job, 1);
  const PulledModel model = slow.Pull();
  const Batch behind = slow.Next();
  for (std::int64_t version = 0; version < 2; ++version)
    EXPECT_EQ(fast.Push(fast.Next(), model, version).verdict, PushVerdict::kAccepted);
  const PushResult stale = slow.Push(behind, model, 0);
  EXPECT_EQ(stale.verdict, PushVerdict::kStale);
  ASSERT_TRUE(stale.model.has_value());
  EXPECT_EQ(stale.model->version, 2) << "what it is to be computed with comes with the answer";
  for (std::int64_t version = 2; version < 5; ++version)
    EXPECT_EQ(fast.Push(fast.Next(), model, version).verdict, PushVerdict::kAccepted);
  EXPECT_EQ(slow.Push(behind, model, 2).verdict, PushVerdict::kAccepted) << "though it is too old again";
  EXPECT_EQ(job.master().GetProgress().stale, 1);
}

TEST(Master, CountsAGradientThatIsToldTwiceOnce) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4});
  job.Start();
  Played worker(job, 0);
  const PulledModel model = worker.Pull();
  const Batch batch = worker.Next();
  EXPECT_EQ(worker.Push(batch, model, 0).version, 1);
  EXPECT_EQ(worker.Push(batch, model, 0).verdict, PushVerdict::kAccepted);
  EXPECT_EQ(job.master().GetProgress().version, 1);
  EXPECT_EQ(job.master().GetProgress().total_records, 10);
}

TEST(Master, DoesNotTakeGradientsOfTasksThatOthersHave) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4});
  job.Start();
  Batch lost;
  PulledModel model;
  {
    Played first(job, 0);
    model = first.Pull();
    lost = first.Next();
  }
  Played second(job, 0);
  second.Next();
  EXPECT_EQ(second.Push(lost, model, 0).verdict, PushVerdict::kLost);
  EXPECT_EQ(job.master().GetProgress().version, 0);
}

TEST(Master, RefusesGradientsThatDoNotFit) {
  TestElasticJob job({.minibatch = 10});
  job.Start();
  Played worker(job, 0);
  const PulledModel model = worker.Pull();
  const Batch batch = worker.Next();
  const auto push = [&](NamedValues values) {
    return std::string(
        worker.trainer()
            .Push(batch, {.generation = model.generation, .version = 0, .values = std::move(values)})
            .status()
            .message());
  };
  const graph::Tensor number(graph::DataType::kFloat32, {1});
  EXPECT_THAT(push({{"nobody@GRAD", number}}), HasSubstr("no variable nobody@GRAD"));
  EXPECT_THAT(push({{model.values[1].first + "@GRAD", number}}), HasSubstr("should be"));
  EXPECT_EQ(job.master().GetProgress().version, 0);
}

TEST(Master, SaysWhoIsWaitedFor) {
  TestElasticJob job({.minibatch = 400, .minibatches_per_task = 1, .epochs = 2});
  job.Start();
  EXPECT_EQ(job.master().GetProgress().waiting, "a worker to come");
  Played busy(job, 4);
  busy.Next();
  Played idle(job, 5);
  while (job.master().GetProgress().waiting.empty()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(job.master().GetProgress().waiting, HasSubstr("worker 4 (records [0, 400) of epoch 1, for 0)"));
}

TEST(Master, DealsTasksThatWorkersDoByThemselves) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4, .tasks_only = true});
  job.spec().program.clear();
  job.Start();
  Played worker(job, 0);
  Batch batch = worker.Next();
  while (!batch.last) batch = worker.Next();
  worker.trainer().Finish(batch.task, {});
  while (job.master().GetProgress().total_records < 40) absl::SleepFor(absl::Milliseconds(1));
  // It reads ahead: of the ten tasks one is done, and it has two.
  worker.Next();
  while (job.master().GetProgress().waiting_tasks > 7) absl::SleepFor(absl::Milliseconds(1));
  job.Kill();
  job.Start();
  EXPECT_EQ(job.master().GetProgress().total_records, 40) << "nothing is lost with the master";
  EXPECT_EQ(job.master().GetProgress().waiting_tasks, 7) << "what the worker has is still its own";
}

TEST(Master, GivesToOthersWhatAWorkerHadThatDoesNotFindItAgain) {
  TestElasticJob job({.minibatch = 400, .tasks_only = true});
  job.spec().program.clear();
  job.Start();
  auto lost = std::make_unique<Played>(job, 0);
  lost->Next();
  job.Kill();
  lost.reset();
  job.Start();
  Played other(job, 1);
  const Batch batch = other.Next();
  EXPECT_EQ(batch.records, (tasks::Range{0, 400}));
}

TEST(Master, RefusesWhoDoesNotKnowTheToken) {
  TestElasticJob job({.minibatch = 10});
  job.Start();
  WorkerOptions options = job.Worker(0);
  options.token = "guess";
  EXPECT_TRUE(absl::IsUnauthenticated(WorkerTrainer::Connect(options).status()));
}

}  // namespace
}  // namespace trainyard::master
