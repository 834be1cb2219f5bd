// Functions of one float that loops can be vectorised over. They give the same bits wherever an element
// lies, in the middle of a vector or at the end of a loop, and are less than three units of the last place
// off.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace trainyard::graph {

// e to the x: x = n ln 2 + r, and a power of two is put together from bits. In two halves, so that results
// below the smallest normal number and above the largest come out as they should.
[[gnu::always_inline]] inline float Exp(float x) {
  constexpr float kLog2OfE = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits, so that n times it is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounds = 12582912.0F;  // 1.5 * 2^23: its sum with a small number is a whole number
  const float least = x < -104.0F ? -104.0F : x;
  const float bounded = least > 89.0F ? 89.0F : least;
  const float sum = bounded * kLog2OfE + kRounds;
  const float n = sum - kRounds;
  const float r = (bounded - n * kLn2High) - n * kLn2Low;
  float series = 1.0F / 5040;
  series = series * r + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r * r + r + 1;
  const std::int32_t power = std::bit_cast<std::int32_t>(sum) - std::bit_cast<std::int32_t>(kRounds);
  const std::int32_t half = power >> 1;
  constexpr std::uint32_t kBias = 127;
  const auto scale = [](std::int32_t exponent) {
    return std::bit_cast<float>((static_cast<std::uint32_t>(exponent) + kBias) << 23);
  };
  return series * scale(half) * scale(power - half);
}

[[gnu::always_inline]] inline float Sigmoid(float x) { return 1 / (1 + Exp(-x)); }

[[gnu::always_inline]] inline float Tanh(float x) {
  const float size = std::fabs(x);
  const float square = x * x;
  // Lambert's fraction, where the other form would lose bits.
  const float small = size * (945 + square * (105 + square)) / (945 + square * (420 + square * 15));
  const float large = 1 - 2 / (Exp(2 * size) + 1);
  return std::copysign(size < 0.6F ? small : large, x);
}

}  // namespace trainyard::graph
