#include "agent/attempts.h"

#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

ScriptConfig Attempt(std::int64_t number, std::string value = "x") {
  return {.attempt = number, .env = {{"V", std::move(value)}}};
}
Attempts Standing(bool was_run, bool active) {
  return {.config = Attempt(3), .was_run = was_run, .active = active};
}

TEST(DecideConfig, LetsAttemptsOnlyGrow) {
  const struct {
    std::string_view what;
    Attempts standing;
    ScriptConfig posted;
    Verdict verdict;
  } kCases[] = {
      {"the first", {}, Attempt(1), Verdict::kDo},
      {"the first may have any number", {}, Attempt(7), Verdict::kDo},
      {"lower", Standing(false, false), Attempt(2), Verdict::kRefuse},
      {"lower, though it ended", Standing(true, false), Attempt(2), Verdict::kRefuse},
      {"the same", Standing(false, false), Attempt(3), Verdict::kRepeat},
      {"the same while it runs", Standing(true, true), Attempt(3), Verdict::kRepeat},
      {"the same after its end", Standing(true, false), Attempt(3), Verdict::kRepeat},
      {"corrected before it was run", Standing(false, false), Attempt(3, "y"), Verdict::kDo},
      {"changed while it runs", Standing(true, true), Attempt(3, "y"), Verdict::kRefuse},
      {"changed after its end", Standing(true, false), Attempt(3, "y"), Verdict::kRefuse},
      {"higher instead of one that was not run", Standing(false, false), Attempt(4), Verdict::kDo},
      {"higher while it runs", Standing(true, true), Attempt(4), Verdict::kRefuse},
      {"higher after its end", Standing(true, false), Attempt(9), Verdict::kDo},
  };
  for (const auto& [what, standing, posted, verdict] : kCases) {
    const Decision decision = DecideConfig(standing, posted);
    EXPECT_EQ(decision.verdict, verdict) << what;
    EXPECT_EQ(decision.why.empty(), verdict != Verdict::kRefuse) << what;
  }
}

TEST(DecideRun, StartsEachAttemptOnce) {
  EXPECT_EQ(DecideRun({}, std::nullopt).verdict, Verdict::kRefuse);
  EXPECT_EQ(DecideRun(Standing(false, false), std::nullopt).verdict, Verdict::kDo);
  EXPECT_EQ(DecideRun(Standing(false, false), 3).verdict, Verdict::kDo);
  EXPECT_EQ(DecideRun(Standing(true, true), 3).verdict, Verdict::kRepeat);
  EXPECT_EQ(DecideRun(Standing(true, false), 3).verdict, Verdict::kRepeat);
  EXPECT_EQ(DecideRun(Standing(true, false), std::nullopt).verdict, Verdict::kRepeat);
  EXPECT_EQ(DecideRun(Standing(false, false), 2).verdict, Verdict::kRefuse);
  EXPECT_EQ(DecideRun(Standing(false, false), 4).verdict, Verdict::kRefuse);
}

}  // namespace
}  // namespace trainyard::agent
