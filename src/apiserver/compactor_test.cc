#include "apiserver/compactor.h"

#include <gtest/gtest.h>

namespace trainyard::apiserver {
namespace {

SteadyTime At(int seconds) { return SteadyTime() + absl::Seconds(seconds); }

TEST(RevisionAges, ForgetsWhatWasTheNewestLongEnoughAgo) {
  RevisionAges ages({.age = absl::Seconds(10)});
  EXPECT_EQ(ages.Note(5, At(0)), std::nullopt);
  EXPECT_EQ(ages.Note(8, At(4)), std::nullopt);
  EXPECT_EQ(ages.Note(9, At(10)), 5);
  EXPECT_EQ(ages.Note(9, At(14)), 8);
  EXPECT_EQ(ages.Note(9, At(16)), std::nullopt);
  EXPECT_EQ(ages.Note(9, At(20)), 9);
}

TEST(RevisionAges, SaysNothingTwice) {
  RevisionAges ages({.age = absl::Seconds(10)});
  ages.Note(5, At(0));
  EXPECT_EQ(ages.Note(5, At(20)), 5);
  EXPECT_EQ(ages.Note(5, At(40)), std::nullopt);
}

TEST(RevisionAges, ForgetsTheOldestOfManyRevisionsHoweverYoungTheyAre) {
  RevisionAges ages({.age = absl::Seconds(10), .revisions = 100});
  EXPECT_EQ(ages.Note(100, At(0)), std::nullopt);
  EXPECT_EQ(ages.Note(150, At(1)), 50);
  EXPECT_EQ(ages.Note(150, At(2)), std::nullopt);
  EXPECT_EQ(ages.Note(160, At(10)), 100) << "what is old enough goes too";
}

}  // namespace
}  // namespace trainyard::apiserver
