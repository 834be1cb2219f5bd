#include "tasks/queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::tasks {
namespace {

using testing::HasSubstr;

Queue Training(StreamOptions options, int most_failures = 3) {
  Queue queue({.most_failures = most_failures});
  queue.Apply(Begin{.kind = Kind::kTraining, .options = options});
  return queue;
}

TEST(Queue, GivesOutRangesOfAtMostSoManyRecords) {
  Queue queue = Training({.records = 10, .records_per_task = 4});
  EXPECT_EQ(queue.Apply(Lease{0}).task.records, (Range{0, 4}));
  EXPECT_EQ(queue.Apply(Lease{1}).task.records, (Range{4, 8}));
  EXPECT_EQ(queue.Apply(Lease{0}).task.records, (Range{8, 10}));
  EXPECT_EQ(queue.Apply(Lease{0}).verdict, Verdict::kWait);
}

TEST(Queue, BeginsNoEpochWhileTheOneBeforeIsWorkedOn) {
  Queue queue = Training({.records = 4, .records_per_task = 4, .epochs = 2});
  const TaskId first = queue.Apply(Lease{0}).task.id;
  EXPECT_EQ(queue.Apply(Lease{1}).verdict, Verdict::kWait);
  queue.Apply(Finish{0, first});
  EXPECT_EQ(queue.Apply(Lease{1}).task.epoch, 1);
}

TEST(Queue, OverlapsEpochsWhereThatIsAskedFor) {
  Queue queue = Training({.records = 4, .records_per_task = 4, .epochs = 2, .overlap = true});
  queue.Apply(Lease{0});
  EXPECT_EQ(queue.Apply(Lease{1}).task.epoch, 1);
}

TEST(Queue, ShufflesEachEpochInAnotherWay) {
  Queue queue = Training({.records = 1000, .records_per_task = 1, .epochs = 2, .seed = 3});
  std::vector<std::int64_t> orders[2];
  for (int i = 0; i < 2000; ++i) {
    const Task task = queue.Apply(Lease{0}).task;
    orders[task.epoch].push_back(task.records.begin);
    queue.Apply(Finish{0, task.id});
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_FALSE(std::ranges::is_sorted(orders[0]));
  std::ranges::sort(orders[0]);
  std::ranges::sort(orders[1]);
  EXPECT_EQ(orders[0], orders[1]);
}

TEST(Queue, GivesWhatALostWorkerHadToOthersWithoutWhatIsDone) {
  Queue queue = Training({.records = 8, .records_per_task = 8});
  const TaskId id = queue.Apply(Lease{0}).task.id;
  queue.Apply(Advance{id, 3});
  queue.Apply(Leave{0});
  const Task again = queue.Apply(Lease{1}).task;
  EXPECT_EQ(again.records, (Range{3, 8}));
  EXPECT_NE(again.id, id);
  EXPECT_EQ(again.failures, 0);
  EXPECT_EQ(queue.Apply(Finish{0, id}).verdict, Verdict::kUnknown);
}

TEST(Queue, GivesBackWhatAnEarlierIncarnationHad) {
  Queue queue = Training({.records = 8, .records_per_task = 8});
  queue.Apply(Join{0, 1});
  const TaskId id = queue.Apply(Lease{0}).task.id;
  queue.Apply(Join{0, 1});
  EXPECT_TRUE(queue.FindTask(id).has_value());
  queue.Apply(Join{0, 2});
  EXPECT_FALSE(queue.FindTask(id).has_value());
}

TEST(Queue, TriesWhatHasFailedOnOtherWorkersAsLongAsThereAreSome) {
  Queue queue = Training({.records = 8, .records_per_task = 4}, 9);
  for (const WorkerIndex worker : {0, 1, 2}) queue.Apply(Join{worker, 1});
  queue.Apply(Fail{0, queue.Apply(Lease{0}).task.id, "no"});
  EXPECT_EQ(queue.Apply(Lease{0}).task.records, (Range{4, 8})) << "another range, not the same one again";
  EXPECT_FALSE(queue.HasFor(0));
  EXPECT_EQ(queue.Apply(Lease{0}).verdict, Verdict::kWait);
  const Task second = queue.Apply(Lease{1}).task;
  EXPECT_EQ(second.records, (Range{0, 4}));
  queue.Apply(Fail{1, second.id, "no"});
  EXPECT_FALSE(queue.HasFor(1)) << "worker 2 has not tried it";
  queue.Apply(Leave{2});
  EXPECT_TRUE(queue.HasFor(0)) << "it has failed on every worker that is left";
  EXPECT_EQ(queue.Apply(Lease{0}).task.failures, 2);
}

TEST(Queue, TriesWhatHasFailedAgainWhereThereIsOneWorkerAlone) {
  Queue queue = Training({.records = 4, .records_per_task = 4}, 9);
  queue.Apply(Join{0, 1});
  queue.Apply(Fail{0, queue.Apply(Lease{0}).task.id, "no"});
  EXPECT_EQ(queue.Apply(Lease{0}).task.records, (Range{0, 4}));
}

TEST(Queue, BeginsNoEpochWhileWhatHasFailedWaitsForOthers) {
  Queue queue = Training({.records = 4, .records_per_task = 4, .epochs = 2}, 9);
  queue.Apply(Join{0, 1});
  queue.Apply(Join{1, 1});
  queue.Apply(Fail{0, queue.Apply(Lease{0}).task.id, "no"});
  EXPECT_EQ(queue.Apply(Lease{0}).verdict, Verdict::kWait);
}

TEST(Queue, NeverCountsALostWorkerAgainstATask) {
  Queue queue = Training({.records = 8, .records_per_task = 8}, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(queue.Apply(Lease{0}).verdict, Verdict::kTask);
    queue.Apply(Leave{0});
  }
  EXPECT_EQ(queue.failure(), "");
}

TEST(Queue, FailsWithRangeAndErrorOfATaskThatFailsByItself) {
  Queue queue = Training({.records = 8, .records_per_task = 4, .epochs = 5}, 2);
  queue.Apply(Finish{0, queue.Apply(Lease{0}).task.id});
  queue.Apply(Fail{0, queue.Apply(Lease{0}).task.id, "first"});
  EXPECT_EQ(queue.failure(), "");
  const Answer answer = queue.Apply(Fail{3, queue.Apply(Lease{3}).task.id, "division by zero"});
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_EQ(queue.failure(),
            "records [4, 8) of epoch 1 failed 2 times, the last time on worker 3: division by zero");
  EXPECT_EQ(queue.Apply(Lease{1}).verdict, Verdict::kFailed);
}

TEST(Queue, KeepsWhatIsAsGoodAsDoneAndGivesTheRestBack) {
  Queue queue = Training({.records = 8, .records_per_task = 8, .epochs = 2});
  const TaskId id = queue.Apply(Lease{0}).task.id;
  queue.Apply(Keep{id, 5});
  queue.Apply(Leave{0});
  EXPECT_EQ(queue.FindTask(id)->worker, kNobody);
  const Task rest = queue.Apply(Lease{1}).task;
  EXPECT_EQ(rest.records, (Range{5, 8}));
  queue.Apply(Finish{1, rest.id});
  EXPECT_EQ(queue.Apply(Lease{1}).verdict, Verdict::kWait);  // for what is kept
  EXPECT_TRUE(queue.Apply(Advance{id, 5}).done);
  EXPECT_EQ(queue.Apply(Lease{1}).task.epoch, 1);
}

TEST(Queue, GivesEvaluationOutBeforeTraining) {
  Queue queue = Training({.records = 8, .records_per_task = 1});
  queue.Apply(Lease{0});
  queue.Apply(
      Begin{.kind = Kind::kEvaluation, .options = {.records = 2, .records_per_task = 1}, .version = 7});
  const Task task = queue.Apply(Lease{0}).task;
  EXPECT_EQ(task.kind, Kind::kEvaluation);
  EXPECT_EQ(task.version, 7);
  EXPECT_FALSE(queue.IsOver(Kind::kEvaluation));
  queue.Apply(Finish{0, task.id});
  queue.Apply(Finish{0, queue.Apply(Lease{0}).task.id});
  EXPECT_TRUE(queue.IsOver(Kind::kEvaluation));
  EXPECT_EQ(queue.Apply(Lease{0}).task.kind, Kind::kTraining);
}

TEST(Queue, WeighsMetricsByRecordsAndCountsEachTaskOnce) {
  Queue queue;
  queue.Apply(Begin{.kind = Kind::kEvaluation, .options = {.records = 6, .records_per_task = 4}});
  const TaskId large = queue.Apply(Lease{0}).task.id;
  const TaskId lost = queue.Apply(Lease{1}).task.id;
  queue.Apply(Leave{1});
  const TaskId small = queue.Apply(Lease{0}).task.id;
  queue.Apply(Finish{0, large, {{"accuracy", 1.0}}});
  queue.Apply(Finish{0, large, {{"accuracy", 1.0}}});
  queue.Apply(Finish{1, lost, {{"accuracy", 1.0}}});
  queue.Apply(Finish{0, small, {{"accuracy", 0.25}}});
  EXPECT_THAT(queue.MeanMetrics(), testing::ElementsAre(Metric{"accuracy", 0.75}));
}

TEST(Queue, IsOverWhenStoppedAndNothingIsUnderWay) {
  Queue queue = Training({.records = 8, .records_per_task = 1, .epochs = 9});
  const TaskId id = queue.Apply(Lease{0}).task.id;
  queue.Apply(Stop{Kind::kTraining});
  EXPECT_EQ(queue.Apply(Lease{1}).verdict, Verdict::kWait);
  queue.Apply(Finish{0, id});
  EXPECT_EQ(queue.Apply(Lease{1}).verdict, Verdict::kOver);
}

TEST(Queue, IsOverAtOnceWithoutRecords) {
  Queue queue = Training({.records = 0, .records_per_task = 4, .epochs = 3});
  EXPECT_EQ(queue.Apply(Lease{0}).verdict, Verdict::kOver);
}

TEST(Queue, SaysOfATaskWhichRecordsItHas) {
  EXPECT_THAT(Describe({.kind = Kind::kTraining, .epoch = 1, .records = {3, 9}}),
              HasSubstr("records [3, 9) of epoch 2"));
}

}  // namespace
}  // namespace trainyard::tasks
