#include "master/pods/job_link.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::master {
namespace {

TEST(Summarize, IsOneShortLine) {
  Progress progress{.phase = Phase::kTraining, .epoch = 2, .epochs = 5};
  EXPECT_EQ(Summarize(progress), "epoch 2/5");
  progress.loss = 0.21071;
  progress.metrics = {{.name = "accuracy", .value = 0.96}};
  EXPECT_EQ(Summarize(progress), "epoch 2/5, loss 0.2107, accuracy 0.9600");
  progress.phase = Phase::kComplete;
  EXPECT_EQ(Summarize(progress), "complete, loss 0.2107, accuracy 0.9600");
}

Object Print(const Progress& progress, std::string_view waiting = "") {
  Rates rates;
  return PrintProgress(progress, waiting, rates, SteadyTime());
}

TEST(Rates, AreOfWhatWasReportedBefore) {
  Rates rates;
  const SteadyTime begin;
  EXPECT_EQ(rates.See("a", 100, begin), std::nullopt);
  EXPECT_EQ(rates.See("a", 300, begin + absl::Seconds(2)), 100);
  const double slower = rates.See("a", 300, begin + absl::Seconds(3)).value();
  EXPECT_GT(slower, 0);
  EXPECT_LT(slower, 100);
  EXPECT_EQ(rates.See("a", 0, begin + absl::Seconds(4)), std::nullopt) << "it went back";
  EXPECT_EQ(rates.See("a", 50, begin + absl::Seconds(5)), 50);
}

TEST(PrintProgress, SaysWhichPodsItWaitsForWhileNoWorkerIsThere) {
  Progress progress{.waiting = "workers"};
  EXPECT_EQ(StringAt(Print(progress, "room for worker 0"), {"waiting"}), "room for worker 0");
  EXPECT_EQ(StringAt(Print(progress), {"waiting"}), "workers");
  progress.workers = 1;
  EXPECT_EQ(StringAt(Print(progress, "room for worker 1"), {"waiting"}), "workers");
}

TEST(PrintProgress, KeepsALossThatIsNotFinite) {
  const Progress progress{.loss = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(StringAt(Print(progress), {"loss"}), "nan");
}

TEST(StartPatch, GivesTheGroupItsSizeAndItsBounds) {
  JobSpec spec{.workers = 2, .min_workers = 2, .max_workers = 2};
  EXPECT_EQ(PrintJson(StartPatch(spec)), R"({"spec":{"replicaSpecs":{"worker":{"replicas":2}}}})");
  spec.max_workers = 4;
  EXPECT_EQ(
      PrintJson(StartPatch(spec)),
      R"({"spec":{"replicaSpecs":{"worker":{"replicas":2,"edlPolicy":"Auto","minReplicas":2,"maxReplicas":4}}}})");
}

kube::CompactPod Pod(std::string_view status) {
  return kube::ParsePod(R"({"metadata":{"name":"p","namespace":"d","uid":"u"},"status":)" +
                        std::string(status) + "}")
      .value();
}

TEST(FailureCounts, CountsWhatIsThePodsOwnFault) {
  const auto ended = [](std::string_view terminated) {
    return FailureCounts::IsOwnFault(
        Pod(R"({"phase":"Failed","containerStatuses":[{"name":"c","state":{"terminated":)" +
            std::string(terminated) + "}}]}"));
  };
  EXPECT_TRUE(ended(R"({"exitCode":1})"));
  EXPECT_TRUE(ended(R"({"exitCode":139})"));
  EXPECT_TRUE(ended(R"({"exitCode":137,"reason":"OOMKilled"})"));
  EXPECT_FALSE(ended(R"({"exitCode":137})"));
  EXPECT_FALSE(ended(R"({"exitCode":143,"signal":15})"));
  EXPECT_FALSE(FailureCounts::IsOwnFault(Pod(R"({"phase":"Failed","reason":"Evicted"})")));
  EXPECT_FALSE(FailureCounts::IsOwnFault(Pod(R"({"phase":"Running"})")));
}

TEST(FailureCounts, AreOfFailuresInARow) {
  FailureCounts counts;
  EXPECT_EQ(counts.Add({"worker", 0}), 1);
  EXPECT_EQ(counts.Add({"worker", 0}), 2);
  EXPECT_EQ(counts.Add({"worker", 1}), 1);
  counts.Forget({"worker", 0});
  EXPECT_EQ(counts.Add({"worker", 0}), 1);
}

}  // namespace
}  // namespace trainyard::master
