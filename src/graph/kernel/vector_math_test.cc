#include "graph/kernel/vector_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How many units of the last place the two are apart.
double UnitsApart(float found, double wanted) {
  const auto nearest = static_cast<float>(wanted);
  if (found == nearest) return 0;
  const float unit = std::nextafter(std::abs(nearest), kInfinity) - std::abs(nearest);
  return std::abs(static_cast<double>(found) - wanted) / static_cast<double>(unit);
}

// Every so many floats there are, from the smallest to the largest.
template <typename Work>
void ForManyFloats(Work work) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(value)) work(value);
  }
}

TEST(Exp, IsRightToThreeUnitsForAllFloats) {
  ForManyFloats([](float x) {
    const double wanted = std::exp(static_cast<double>(x));
    if (std::isinf(static_cast<float>(wanted))) {
      ASSERT_EQ(Exp(x), kInfinity) << x;
    } else {
      ASSERT_LT(UnitsApart(Exp(x), wanted), 3) << x;
    }
  });
}

TEST(Exp, KnowsTheEnds) {
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Tanh, IsRightToThreeUnitsForAllFloats) {
  ForManyFloats([](float x) {
    ASSERT_LT(UnitsApart(Tanh(x), std::tanh(static_cast<double>(x))), 3) << x;
    ASSERT_EQ(Tanh(-x), -Tanh(x));
  });
  EXPECT_EQ(Tanh(kInfinity), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(Tanh(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Sigmoid, IsRightToThreeUnitsUntilItVanishes) {
  ForManyFloats([](float x) {
    const double wanted = 1 / (1 + std::exp(-static_cast<double>(x)));
    if (x > -87) {
      ASSERT_LT(UnitsApart(Sigmoid(x), wanted), 3) << x;
    } else {
      ASSERT_NEAR(Sigmoid(x), 0, 1e-37) << x;
    }
  });
  EXPECT_EQ(Sigmoid(kInfinity), 1);
  EXPECT_EQ(Sigmoid(-kInfinity), 0);
}

}  // namespace
}  // namespace trainyard::graph
