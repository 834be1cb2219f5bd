#include "base/pace.h"

#include "gtest/gtest.h"

namespace trainyard {
namespace {

// Lines of so long a time, of something that tries ten times a second.
int CountLines(absl::Duration time) {
  const SteadyTime begun = SteadyTime::FromNanos(7);
  Pace pace(begun);
  int lines = 0;
  for (absl::Duration at; at < time; at += absl::Milliseconds(100)) lines += pace.Take(begun + at) ? 1 : 0;
  return lines;
}

TEST(Pace, IsALineASecondAtFirst) {
  EXPECT_EQ(CountLines(absl::Milliseconds(50)), 1) << "the first at once";
  EXPECT_EQ(CountLines(absl::Seconds(10)), 10);
}

TEST(Pace, HasFewThousandLinesForADay) {
  EXPECT_GT(CountLines(absl::Hours(24)), 2000);
  EXPECT_LT(CountLines(absl::Hours(24)), 4000);
}

}  // namespace
}  // namespace trainyard
