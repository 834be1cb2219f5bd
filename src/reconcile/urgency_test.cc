#include <functional>
#include <ostream>

#include <gtest/gtest.h>

#include "reconcile/pacing.h"

namespace trainyard::reconcile {
namespace {

using job::JobStatus;
using job::State;

const absl::Time kTime = absl::FromUnixSeconds(1'714'557'600);

// A job that has begun, in that state or in none.
JobStatus Begun(std::optional<State> state) {
  JobStatus status{.roles = {{"Worker", {}}}, .start_time = kTime};
  if (state) status.Set(*state, true, "Reason", "message", kTime);
  return status;
}

struct Case {
  std::string name;
  std::optional<State> before;
  std::function<void(JobStatus&)> change;
  Urgency urgency;
};

void PrintTo(const Case& change, std::ostream* out) { *out << change.name; }

class UrgencyTest : public testing::TestWithParam<Case> {};

TEST(Urgency, OfAJobThatHasJustBegunIsNoGreaterThanOfGoodNews) {
  const JobStatus running = Begun(State::kRunning);
  EXPECT_EQ(UrgencyOf({}, Begun({})), Urgency::kGoodNews);
  EXPECT_EQ(UrgencyOf({}, Begun(State::kRunning)), Urgency::kGoodNews);
  EXPECT_EQ(UrgencyOf({}, Begun(State::kFailed)), Urgency::kNow);
  EXPECT_EQ(UrgencyOf({}, Begun(State::kSuspended)), Urgency::kNow);
  JobStatus restarted = running;
  restarted.roles["Worker"].restarts = 1;
  EXPECT_EQ(UrgencyOf({}, restarted), Urgency::kNow);
}

TEST_P(UrgencyTest, IsThatOfTheMostUrgentDifference) {
  const JobStatus before = Begun(GetParam().before);
  JobStatus after = before;
  GetParam().change(after);
  EXPECT_EQ(UrgencyOf(before, after), GetParam().urgency);
}

std::function<void(JobStatus&)> To(State state) {
  return [state](JobStatus& status) { status.Set(state, true, "Other", "other", kTime); };
}

INSTANTIATE_TEST_SUITE_P(
    Changes, UrgencyTest,
    testing::Values(
        Case{"Nothing", State::kRunning, [](JobStatus&) {}, Urgency::kProgress},
        Case{"OneMoreRuns", {}, [](JobStatus& s) { s.roles["Worker"].active = 1; }, Urgency::kProgress},
        Case{"AllMade", {}, To(State::kCreated), Urgency::kProgress},
        Case{"AllRun", {}, To(State::kRunning), Urgency::kGoodNews},
        Case{"AllRunThatWereMade", State::kCreated, To(State::kRunning), Urgency::kGoodNews},
        Case{"AllRunAgain", State::kRestarting, To(State::kRunning), Urgency::kNow},
        Case{"OneFailed", State::kRunning, To(State::kRestarting), Urgency::kNow},
        Case{"Ended", State::kRunning, To(State::kSucceeded), Urgency::kNow},
        Case{"EndedBeforeItRan", State::kCreated, To(State::kFailed), Urgency::kNow},
        Case{"Suspended", State::kCreated, To(State::kSuspended), Urgency::kNow},
        Case{"Resumed", State::kSuspended, To(State::kCreated), Urgency::kNow},
        Case{"AnotherSpec", State::kRunning, [](JobStatus& s) { s.observed_generation = 2; }, Urgency::kNow},
        Case{"Begun", {}, [](JobStatus& s) { s.start_time = kTime + absl::Seconds(1); }, Urgency::kNow},
        Case{"AnotherAttempt", State::kRunning, [](JobStatus& s) { s.roles["Worker"].attempts[0] = 1; },
             Urgency::kNow},
        Case{"ARestart", {}, [](JobStatus& s) { s.roles["Worker"].restarts = 1; }, Urgency::kNow},
        Case{"OneCompleted", {}, [](JobStatus& s) { s.roles["Worker"].completed.Insert(0); }, Urgency::kNow},
        Case{"AnotherRole", {}, [](JobStatus& s) { s.roles["PS"] = {}; }, Urgency::kNow},
        // Good news with a restart in it is no longer only that.
        Case{"AllRunAfterARestart", State::kCreated,
             [](JobStatus& s) {
               To(State::kRunning)(s);
               s.roles["Worker"].restarts = 1;
             },
             Urgency::kNow}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace trainyard::reconcile
