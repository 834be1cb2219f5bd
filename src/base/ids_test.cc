#include "base/ids.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(IdSource, RepeatsItselfFromTheSameSeed) {
  IdSource a(7);
  IdSource b(7);
  IdSource other(8);
  const std::string first = a.Uuid();
  EXPECT_EQ(first, b.Uuid());
  EXPECT_EQ(a.Suffix(8), b.Suffix(8));
  EXPECT_NE(first, other.Uuid());
}

TEST(IdSource, MakesUuidsOfVersionFour) {
  IdSource ids(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(ids.Uuid(),
                testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  }
}

TEST(IdSource, StaysBelowTheBoundAndReachesEveryValue) {
  IdSource ids(3);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(ids.Below(7));
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(IdSource, DiffersBetweenTwoProcessesWorthOfEntropy) {
  EXPECT_NE(IdSource::Random().Uuid(), IdSource::Random().Uuid());
}

}  // namespace
}  // namespace trainyard
