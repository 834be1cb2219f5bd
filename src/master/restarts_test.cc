#include "master/restarts.h"

#include <gtest/gtest.h>

namespace trainyard::master {
namespace {

const absl::Time kThen = absl::FromUnixSeconds(1'000'000);

TEST(Restarts, AreCountedWithTheirCausesOfWhichTheLastTenStay) {
  Restarts restarts;
  for (int i = 0; i < 12; ++i) Count(restarts, {.cause = std::to_string(i)}, kThen + absl::Seconds(i));
  EXPECT_EQ(restarts.count, 12);
  ASSERT_EQ(restarts.last.size(), 10U);
  EXPECT_EQ(restarts.last.front(), (Restarts::One{kThen + absl::Seconds(2), "2"}));
  EXPECT_EQ(restarts.last.back().cause, "11");
}

TEST(Restarts, CountEarlyEndsOnlyInARow) {
  Restarts restarts;
  Count(restarts, {.cause = "exited 76", .early = true}, kThen);
  Count(restarts, {.cause = "exited 76", .early = true}, kThen);
  EXPECT_EQ(restarts.early, 2);
  Count(restarts, {.cause = "exited 75"}, kThen);
  EXPECT_EQ(restarts.early, 0);
}

TEST(Restarts, AreReadAsTheyWereStored) {
  Restarts restarts;
  Count(restarts, {.cause = "was killed by signal 9 (SIGKILL)", .early = true}, kThen);
  EXPECT_EQ(ParseRestarts(PrintJson(Print(restarts))), restarts);
  EXPECT_EQ(ParseRestarts(""), Restarts());
  EXPECT_EQ(ParseRestarts("[]"), Restarts());
}

}  // namespace
}  // namespace trainyard::master
