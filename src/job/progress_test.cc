#include "job/progress.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::job {
namespace {

const absl::Time kSince = absl::FromUnixMillis(1'714'557'600'250);
const absl::Time kWhole = absl::FromUnixSeconds(1'714'557'600);

Progress Training() {
  Progress progress{
      .phase = WorkPhase::kTraining,
      .reason = "r",
      .waiting = "room",
      .epoch = 2,
      .epochs = 5,
      .records = 30,
      .epoch_records = 60,
      .total_records = 90,
      .version = 7,
      .rate = 12.5,
      .loss = 0.21071,
      .nonfinite = 1,
      .last_nonfinite = "w at step 3",
      .metrics = {{.name = "accuracy", .value = 0.96}},
      .evaluated = 6,
      .workers = 2,
      .pservers = 1,
      .checkpoint = "version 5",
      .settled = {{"worker", {{0, 2}, {1, 2}}}},
      .master_restarts = {.count = 1, .early = 1, .last = {{.time = kWhole, .cause = "exited 75"}}}};
  progress.members[{MemberRole::kWorker, 1}] = {.records = 40, .version = 7, .rate = 3};
  return progress;
}

Progress Scripts() {
  Progress progress{.reporter = Reporter::kLauncher,
                    .phase = WorkPhase::kRestarting,
                    .reason = "waits",
                    .attempt = 2,
                    .restarts = 1,
                    .running = 1,
                    .present = {{MemberRole::kPs, 0}},
                    .since = kSince,
                    .started = kSince,
                    .ended = kSince + absl::Seconds(1)};
  progress.members[{MemberRole::kPs, 0}] = {
      .pod = "u", .lost = "v", .attempt = 2, .done = 1, .state = "running on node-1"};
  progress.history = {{.time = kSince, .attempt = 2, .member = "ps-0", .cause = "exited 3"}};
  return progress;
}

TEST(Progress, IsReadAsItIsPrinted) {
  EXPECT_EQ(ParseProgress(Reporter::kMaster, PrintProgress(Training())), Training());
  EXPECT_EQ(ParseProgress(Reporter::kLauncher, PrintProgress(Scripts())), Scripts());
}

TEST(Progress, HasTheFieldsThatMastersHaveWrittenSoFar) {
  EXPECT_EQ(
      PrintJson(PrintProgress(Training())),
      R"({"phase":"Training","summary":"epoch 2/5, loss 0.2107, accuracy 0.9600","reason":"r","epoch":2,)"
      R"("epochs":5,"records":30,"epochRecords":60,"totalRecords":90,"version":7,"evaluated":6,)"
      R"("metrics":{"accuracy":0.96},"members":{"worker-1":{"records":40,"version":7,"rate":3}},)"
      R"("workers":2,"pservers":1,"checkpoint":"version 5","waiting":"room",)"
      R"("masterRestarts":{"count":1,"withoutStep":1,"last":[{"time":"2024-05-01T10:00:00Z","cause":"exited 75"}]},)"
      R"("rate":12.5,"loss":0.21071,"nonFinite":1,"lastNonFinite":"w at step 3","settled":{"worker":"0-1:2"}})");
}

TEST(Progress, HasTheFieldsThatLaunchersHaveWrittenSoFar) {
  EXPECT_EQ(
      PrintJson(PrintProgress(Scripts())),
      R"({"phase":"Restarting","summary":"Restarting, attempt 2","reason":"waits","attempt":2,)"
      R"("restarts":1,"running":1,"members":[{"name":"ps-0","pod":"u","lost":"v","attempt":2,"done":1,)"
      R"("state":"running on node-1"}],"present":["ps-0"],"since":"2024-05-01T10:00:00.250Z",)"
      R"("history":[{"time":"2024-05-01T10:00:00.250Z","attempt":2,"member":"ps-0","cause":"exited 3"}],)"
      R"("started":"2024-05-01T10:00:00.250Z","ended":"2024-05-01T10:00:01.250Z"})");
}

TEST(Progress, KeepsALossThatIsNotFinite) {
  const Document printed = PrintProgress({.loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(StringAt(printed, {"loss"}), "nan");
  EXPECT_TRUE(std::isnan(*ParseProgress(Reporter::kMaster, printed).loss));
}

TEST(Progress, LeavesOutWhatAnotherProgramHasWritten) {
  const Document forged = *ParseJson(
      R"({"phase":7,"epoch":"x","members":{"worker-0":[],"odd":{},"worker--1":{}},"metrics":{"a":"b"},)"
      R"("settled":{"worker":"0:9999999999"},"loss":[]})");
  Progress expected;
  expected.members[{MemberRole::kWorker, 0}] = {};
  EXPECT_EQ(ParseProgress(Reporter::kMaster, forged), expected);
  const Document list = *ParseJson(
      R"({"members":[3,{"name":"odd-0"}],"present":["worker-5"],"since":"1969-01-01T00:00:00Z","history":{}})");
  EXPECT_EQ(ParseProgress(Reporter::kLauncher, list), Progress{.reporter = Reporter::kLauncher});
  EXPECT_EQ(ParseProgress(Reporter::kLauncher, Document()), Progress{.reporter = Reporter::kLauncher});
}

TEST(Summarize, IsOneShortLine) {
  Progress progress{.phase = WorkPhase::kTraining, .epoch = 2, .epochs = 5};
  EXPECT_EQ(Summarize(progress), "epoch 2/5");
  progress.loss = 0.21071;
  progress.metrics = {{.name = "accuracy", .value = 0.96}};
  EXPECT_EQ(Summarize(progress), "epoch 2/5, loss 0.2107, accuracy 0.9600");
  progress.phase = WorkPhase::kComplete;
  EXPECT_EQ(Summarize(progress), "complete, loss 0.2107, accuracy 0.9600");
}

TEST(WorkPhase, HasAnEndWhenItIsOver) {
  EXPECT_TRUE(IsOver(WorkPhase::kComplete));
  EXPECT_TRUE(IsOver(WorkPhase::kCancelled));
  EXPECT_FALSE(IsOver(WorkPhase::kCancelling));
  EXPECT_FALSE(IsOver(WorkPhase::kEnding));
}

TEST(MemberId, IsReadAsItIsPrinted) {
  EXPECT_EQ(Print(MemberId{MemberRole::kEvaluator, 3}), "evaluator-3");
  EXPECT_EQ(ParseMember("worker-12"), (MemberId{MemberRole::kWorker, 12}));
  for (const std::string_view text : {"worker", "worker-", "boss-1", "-1", "worker-x", "worker--1"})
    EXPECT_EQ(ParseMember(text), std::nullopt) << text;
}

}  // namespace
}  // namespace trainyard::job
