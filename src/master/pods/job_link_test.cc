#include "master/pods/job_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::master {
namespace {

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

TEST(CompleteProgress, SaysWhichPodsItWaitsForWhileNoWorkerIsThere) {
  const auto waiting = [](int workers, std::string_view pods) {
    job::Progress progress{.waiting = "workers", .workers = workers};
    Rates rates;
    CompleteProgress(progress, pods, rates, SteadyTime());
    return progress.waiting;
  };
  EXPECT_EQ(waiting(0, "room for worker 0"), "room for worker 0");
  EXPECT_EQ(waiting(0, ""), "workers");
  EXPECT_EQ(waiting(1, "room for worker 1"), "workers");
}

TEST(CompleteProgress, HasTheRateOfEachMemberAndOfAll) {
  job::Progress progress{.total_records = 100};
  progress.members[{job::MemberRole::kWorker, 1}].records = 40;
  Rates rates;
  CompleteProgress(progress, "", rates, SteadyTime());
  EXPECT_EQ(progress.rate, std::nullopt) << "it is not known yet";
  progress.total_records = 300;
  CompleteProgress(progress, "", rates, SteadyTime() + absl::Seconds(2));
  EXPECT_EQ(progress.rate, 100);
  EXPECT_EQ((progress.members[{job::MemberRole::kWorker, 1}].rate), 0);
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
  EXPECT_EQ(counts.InARow({"worker", 0}, 0), 1);
  EXPECT_EQ(counts.InARow({"worker", 0}, 1), 2);
  EXPECT_EQ(counts.InARow({"worker", 1}, 0), 1);
  counts.Settle({"worker", 0}, 1);
  EXPECT_EQ(counts.InARow({"worker", 0}, 2), 1);
  EXPECT_EQ(counts.InARow({"worker", 0}, 3), 2);
  EXPECT_EQ(counts.InARow({"worker", 0}, 0), 1) << "a group that shrank and grew begins at 0";
}

TEST(FailureCounts, LeaveOutWhatWasNobodysFault) {
  FailureCounts counts;
  EXPECT_EQ(counts.InARow({"worker", 0}, 0), 1);
  counts.Excuse({"worker", 0}, 1);  // evicted
  EXPECT_EQ(counts.InARow({"worker", 0}, 2), 2);
  counts.Excuse({"pserver", 0}, 0);
  counts.Excuse({"pserver", 0}, 0);
  EXPECT_EQ(counts.InARow({"pserver", 0}, 1), 1) << "each attempt is excused once";
}

TEST(FailureCounts, DoNotStartAgainWithTheMaster) {
  FailureCounts before;
  before.Settle({"worker", 0}, 7);
  job::Progress reported{.settled = before.settled()};
  const FailureCounts after(job::ParseProgress(job::Reporter::kMaster, job::PrintProgress(reported)).settled);
  EXPECT_EQ(after.InARow({"worker", 0}, 9), 2) << "the first of these was under the master before";
  EXPECT_EQ(after.InARow({"worker", 1}, 1), 2);
}

TEST(FailureCounts, ReadTheAttemptThatTheOperatorWroteOnThePod) {
  const auto attempt = [](std::string_view annotation) {
    return FailureCounts::AttemptOf(
        ParseMemberPod(R"({"metadata":{"name":"p","annotations":{"trainyard.dev/attempt":")" +
                       std::string(annotation) + R"("}}})")
            .value());
  };
  EXPECT_EQ(attempt("12"), 12);
  EXPECT_EQ(attempt("x"), 0);
  EXPECT_EQ(attempt("-3"), 0);
}

}  // namespace
}  // namespace trainyard::master
