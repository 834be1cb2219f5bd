#include "base/permutation.h"

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> All(std::int64_t count, std::int64_t pass, std::uint64_t seed) {
  const Permutation permutation(count, pass, seed);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(permutation.At(i));
  return numbers;
}

bool IsPermutation(const std::vector<std::int64_t>& numbers) {
  std::vector<bool> seen(numbers.size());
  for (const std::int64_t number : numbers) {
    if (number < 0 || number >= static_cast<std::int64_t>(numbers.size())) return false;
    if (seen[static_cast<std::size_t>(number)]) return false;
    seen[static_cast<std::size_t>(number)] = true;
  }
  return true;
}

TEST(Permutation, HasEveryRecordOnceForEveryCount) {
  for (std::int64_t count = 1; count < 700; ++count) {
    ASSERT_TRUE(IsPermutation(All(count, 0, 1))) << count;
    ASSERT_TRUE(IsPermutation(All(count, 3, 0xffffffffffffffffU))) << count;
  }
  for (const std::int64_t count : {65535, 65536, 65537, 1000003}) {
    ASSERT_TRUE(IsPermutation(All(count, 1, 42))) << count;
  }
}

RC_GTEST_PROP(PermutationProperties, HasEveryRecordOnce, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(1, 3000);
  const auto pass = *rc::gen::inRange<std::int64_t>(0, 1000000);
  RC_ASSERT(IsPermutation(All(count, pass, *rc::gen::arbitrary<std::uint64_t>())));
}

TEST(Permutation, DiffersFromPassToPassAndFromSeedToSeed) {
  std::set<std::vector<std::int64_t>> seen;
  for (std::int64_t pass = 0; pass < 20; ++pass) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_TRUE(seen.insert(All(100, pass, seed)).second);
  }
}

// A checkpoint of today is gone on from by the program of tomorrow.
TEST(Permutation, NeverChanges) {
  EXPECT_THAT(All(10, 0, 7), ElementsAre(6, 0, 9, 8, 1, 7, 4, 2, 5, 3));
  EXPECT_THAT(All(10, 1, 7), ElementsAre(0, 9, 6, 8, 1, 3, 5, 4, 7, 2));
  EXPECT_EQ(Permutation(60000, 2, 1).At(12345), 56740);
  EXPECT_EQ(Permutation(std::int64_t{1} << 40, 2, 1).At(12345), 489459074753);
}

TEST(Permutation, LeavesNeighboursNoNeighbours) {
  const std::vector<std::int64_t> numbers = All(10000, 0, 5);
  int neighbours = 0;
  int fixed = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    neighbours += std::abs(numbers[i] - numbers[i - 1]) == 1 ? 1 : 0;
    fixed += numbers[i] == static_cast<std::int64_t>(i) ? 1 : 0;
  }
  // Two and one of ten thousand are expected of chance.
  EXPECT_LT(neighbours, 20);
  EXPECT_LT(fixed, 20);
}

// Where the record of a place comes from, in ten parts of the file by ten parts of the pass: about the same
// everywhere.
TEST(Permutation, SpreadsEveryPartOverAllOthers) {
  for (std::int64_t pass = 0; pass < 5; ++pass) {
    std::vector<int> counts(100);
    const std::vector<std::int64_t> numbers = All(60000, pass, 9);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ++counts[i / 6000 * 10 + static_cast<std::size_t>(numbers[i] / 6000)];
    for (const int count : counts) EXPECT_NEAR(count, 600, 150);
  }
}

// Every order of three records comes about as often as every other.
TEST(Permutation, FindsEveryOrderOfAFew) {
  std::map<std::vector<std::int64_t>, int> orders;
  for (std::int64_t pass = 0; pass < 6000; ++pass) ++orders[All(3, pass, 11)];
  ASSERT_EQ(orders.size(), 6);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 250);
}

}  // namespace
}  // namespace trainyard
