#include "agent/keep.h"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

constexpr std::uint64_t kLong = 60'000;

ScriptExit Killed(int signal) { return {.signal = signal}; }
ScriptExit Exited(int code) { return {.code = code}; }

TEST(DecideKeep, EndsWithTheProgramsExitCode) {
  KeepCounts counts;
  EXPECT_EQ(DecideKeep(Exited(0), kLong, counts), KeepDecision{});
  EXPECT_EQ(DecideKeep(Exited(3), 0, counts), KeepDecision{.exit_code = 3});
}

TEST(DecideKeep, StartsAProgramThatIsKilledAtOnce) {
  KeepCounts counts;
  for (int i = 0; i < 100; ++i) {
    const KeepDecision decision = DecideKeep(Killed(9), kLong, counts);
    EXPECT_TRUE(decision.again);
    EXPECT_EQ(decision.wait_millis, 0U);
  }
}

TEST(DecideKeep, StopsWhenAProgramIsKilledAgainAndAgainBeforeItRuns) {
  KeepCounts counts;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(DecideKeep(Killed(11), 1, counts).again);
  EXPECT_EQ(DecideKeep(Killed(11), 1, counts), (KeepDecision{.exit_code = 139}));
  counts = {.quick = 4};
  EXPECT_TRUE(DecideKeep(Killed(11), kLong, counts).again);
  EXPECT_TRUE(DecideKeep(Killed(11), 1, counts).again) << "it ran in between";
}

TEST(DecideKeep, WaitsLongerEachTimeThatAProgramGetsNowhere) {
  KeepCounts counts;
  std::uint64_t before = 0;
  EXPECT_EQ(DecideKeep(Exited(kStartAgainEarly), 1, counts), KeepDecision{.again = true});
  for (int i = 0; i < 20; ++i) {
    const KeepDecision decision = DecideKeep(Exited(kStartAgainEarly), 1, counts);
    EXPECT_TRUE(decision.again);
    EXPECT_GE(decision.wait_millis, before);
    before = decision.wait_millis;
  }
  EXPECT_EQ(before, 5000U);
  EXPECT_EQ(DecideKeep(Exited(kStartAgain), 1, counts), KeepDecision{.again = true});
  EXPECT_EQ(counts.early, 0);
}

}  // namespace
}  // namespace trainyard::agent
