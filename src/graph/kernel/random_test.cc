#include "graph/kernel/random.h"

#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

TEST(UniformAt, IsSpreadEvenlyOverTheUnitInterval) {
  constexpr int kCount = 100000;
  std::array<int, 10> tenths = {};
  double sum = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double value = UniformAt(7, 0, i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ++tenths[static_cast<std::size_t>(value * 10)];
    sum += value;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  for (const int count : tenths) EXPECT_NEAR(count, kCount / 10, kCount / 200);
}

TEST(UniformAt, DiffersByElementStreamAndSeed) {
  std::set<double> values;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      for (std::uint64_t i = 0; i < 10; ++i) values.insert(UniformAt(seed, stream, i));
    }
  }
  EXPECT_EQ(values.size(), 1000u);
}

TEST(NormalAt, HasMeanZeroDeviationOneAndTheTailsOfANormalDistribution) {
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  double products = 0;  // of neighbours, which come of the same words
  for (std::uint64_t i = 0; i < kCount; i += 2) {
    const double even = NormalAt(3, 0, i);
    const double odd = NormalAt(3, 0, i + 1);
    sum += even + odd;
    squares += even * even + odd * odd;
    products += even * odd;
    beyond_two += static_cast<int>(std::abs(even) > 2) + static_cast<int>(std::abs(odd) > 2);
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(products / (kCount / 2), 0, 0.02);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455, 0.003);
}

TEST(StreamOf, TellsNamesApart) {
  const auto stream = [](std::string_view name) { return StreamOf(name.data(), name.size()); };
  EXPECT_NE(stream("fc_0.w"), stream("fc_1.w"));
  EXPECT_NE(stream("a"), stream(""));
  EXPECT_EQ(stream("fc_0.w"), stream("fc_0.w"));
}

}  // namespace
}  // namespace trainyard::graph
