#include "job/job_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::job {
namespace {

using testing::ElementsAre;

const absl::Time kThen = absl::FromUnixSeconds(1000);
const absl::Time kNow = absl::FromUnixSeconds(2000);

std::vector<std::string> Show(const JobStatus& status) {
  std::vector<std::string> out;
  for (const Condition& condition : status.conditions) {
    out.push_back(std::string(Print(condition.type)) + (condition.is_true ? "+" : "-"));
  }
  return out;
}

TEST(JobStatus, HasOneCurrentStateWhichStandsLast) {
  JobStatus status;
  status.Set(State::kCreated, true, "A", "", kThen);
  status.Set(State::kRunning, true, "B", "", kThen);
  status.Set(State::kRestarting, true, "C", "", kThen);
  status.Set(State::kRunning, true, "B", "", kNow);
  EXPECT_THAT(Show(status), ElementsAre("Created-", "Restarting-", "Running+"));
  EXPECT_EQ(status.Find(State::kRestarting)->changed, kNow);
  EXPECT_EQ(status.Find(State::kCreated)->changed, kThen);
}

TEST(JobStatus, KeepsTheTimeOfChangeWhenOnlyTheMessageIsAnother) {
  JobStatus status;
  status.Set(State::kRunning, true, "R", "3 run", kThen);
  status.Set(State::kRunning, true, "R", "4 run", kNow);
  EXPECT_EQ(status.Current()->changed, kThen);
  EXPECT_EQ(status.Current()->updated, kNow);
}

TEST(JobStatus, IsNotTouchedByWhatIsSoAlready) {
  JobStatus status;
  status.Set(State::kRunning, true, "R", "m", kThen);
  const JobStatus before = status;
  status.Set(State::kRunning, true, "R", "m", kNow);
  EXPECT_EQ(status, before);
}

TEST(JobStatus, NeverLeavesItsEnd) {
  for (const State end : kStates) {
    if (!IsEnd(end)) continue;
    for (const State other : kStates) {
      JobStatus status;
      status.Set(end, true, "E", "over", kThen);
      status.Set(other, true, "X", "", kNow);
      EXPECT_EQ(status.Current()->type, end) << Print(other);
    }
  }
}

TEST(JobStatus, RecordsWhatHasPassedBeforeTheCurrentState) {
  JobStatus status;
  status.Set(State::kRunning, true, "R", "", kThen);
  status.Set(State::kRestarting, false, "X", "it was so", kNow);
  EXPECT_THAT(Show(status), ElementsAre("Restarting-", "Running+"));
}

TEST(Attempts, AreReadAsTheyArePrinted) {
  const std::map<int, int> attempts{{1, 2}, {30, 1}};
  EXPECT_EQ(PrintAttempts(attempts), "1:2,30:1");
  EXPECT_EQ(ParseAttempts("1:2,30:1"), attempts);
  const std::map<int, int> ranges{{0, 1}, {1, 1}, {2, 1}, {3, 2}, {5, 2}, {6, 2}};
  EXPECT_EQ(PrintAttempts(ranges), "0-2:1,3:2,5-6:2");
  EXPECT_EQ(ParseAttempts("0-2:1,3:2,5-6:2"), ranges);
  for (const std::string_view text : {"1", ":", "1:", "a:1", "1:-1", "-1:1", "1:1,", "2-1:1", "1-:1",
                                      "0-99999999:1", "0-9:1,5:2", "3:1,3:1"}) {
    EXPECT_FALSE(ParseAttempts(text)) << text;
  }
}

}  // namespace
}  // namespace trainyard::job
