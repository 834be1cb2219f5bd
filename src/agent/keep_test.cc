#include "agent/keep.h"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

constexpr std::uint64_t kLong = 60'000;

ScriptExit Killed(int signal) { return {.signal = signal}; }
ScriptExit Exited(int code) { return {.code = code}; }

TEST(DecideKeep, EndsWithTheProgramsExitCode) {
  KeepCounts counts;
  EXPECT_EQ(DecideKeep(Exited(0), kLong, std::nullopt, counts), KeepDecision{});
  EXPECT_EQ(DecideKeep(Exited(3), 0, std::nullopt, counts), KeepDecision{.exit_code = 3});
}

TEST(DecideKeep, StartsAProgramThatIsKilledAtOnce) {
  KeepCounts counts;
  for (int i = 0; i < 100; ++i) {
    const KeepDecision decision = DecideKeep(Killed(9), kLong, std::nullopt, counts);
    EXPECT_TRUE(decision.again);
    EXPECT_EQ(decision.wait_millis, 0U);
  }
}

TEST(DecideKeep, StopsWhenAProgramIsKilledAgainAndAgainBeforeItRuns) {
  KeepCounts counts;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(DecideKeep(Killed(11), 1, std::nullopt, counts).again);
  EXPECT_EQ(DecideKeep(Killed(11), 1, std::nullopt, counts), (KeepDecision{.exit_code = 139}));
  counts = {.quick = 4};
  EXPECT_TRUE(DecideKeep(Killed(11), kLong, std::nullopt, counts).again);
  EXPECT_TRUE(DecideKeep(Killed(11), 1, std::nullopt, counts).again) << "it ran in between";
}

TEST(DecideKeep, WaitsLongerEachTimeThatAProgramGetsNowhere) {
  KeepCounts counts;
  std::uint64_t before = 0;
  EXPECT_EQ(DecideKeep(Exited(kStartAgainEarly), 1, std::nullopt, counts), KeepDecision{.again = true});
  for (int i = 0; i < 20; ++i) {
    const KeepDecision decision = DecideKeep(Exited(kStartAgainEarly), 1, std::nullopt, counts);
    EXPECT_TRUE(decision.again);
    EXPECT_GE(decision.wait_millis, before);
    before = decision.wait_millis;
  }
  EXPECT_EQ(before, 5000U);
  EXPECT_EQ(DecideKeep(Exited(kStartAgain), 1, std::nullopt, counts), KeepDecision{.again = true});
  EXPECT_EQ(counts.early, 0);
}

TEST(DecideKeep, LeavesTheProgramToTheKeeperOfThePodAfterTheLastRestart) {
  KeepCounts counts;
  EXPECT_EQ(DecideKeep(Killed(6), kLong, 0, counts), (KeepDecision{.exit_code = 134}));
  EXPECT_EQ(DecideKeep(Exited(kStartAgain), kLong, 0, counts), (KeepDecision{.exit_code = kStartAgain}));
  EXPECT_TRUE(DecideKeep(Killed(9), kLong, 2, counts).again);
  EXPECT_TRUE(DecideKeep(Exited(kStartAgain), kLong, 2, counts).again);
  EXPECT_EQ(DecideKeep(Killed(9), kLong, 2, counts), (KeepDecision{.exit_code = 137}));
}

TEST(PrintMessage, HasTheCauseAndTheLastWholeLines) {
  EXPECT_EQ(PrintMessage(Killed(9), ""), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(PrintMessage(Killed(6), "begun\nbug: no such thing\n"),
            "was killed by signal 6 (SIGABRT)\nbegun\nbug: no such thing");
  EXPECT_EQ(PrintMessage(Exited(1), "Traceback:\nModuleNotFoundError: no module x\n"),
            "ModuleNotFoundError: no module x\nTraceback:\nModuleNotFoundError: no module x");
  EXPECT_EQ(PrintMessage(Exited(2), "misused\n"), "misused");
  EXPECT_EQ(PrintMessage(Exited(2), ""), "exited 2");
  EXPECT_EQ(PrintMessage(Killed(9), "of a line\n" + std::string(2100, 'x')),
            "was killed by signal 9 (SIGKILL)\n" + std::string(2100, 'x'));
}

}  // namespace
}  // namespace trainyard::agent
