#include "graph/kernel/random_block.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/types/span.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

// 53 bits of two words, in [0, 1): the same number as a 64-bit division gives, by 32-bit conversions that
// vector units have.
[[gnu::always_inline]] inline double Unit(std::uint32_t a, std::uint32_t b) {
  const auto high = static_cast<std::int32_t>(a >> 1);
  const auto low = static_cast<std::int32_t>((a & 1) << 21 | b >> 11);
  return high * 0x1.0p-31 + low * 0x1.0p-53;
}

struct Pairs {
  double low;
  double range;
  int count = 0;
  alignas(64) float values[2 * kPhiloxLanes];
};

TY_VECTOR void Spread(const PhiloxBlock& block, Pairs& pairs) {
  const double low = pairs.low;
  const double range = pairs.range;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < pairs.count; ++i) {
    pairs.values[2 * i] = static_cast<float>(low + range * Unit(block.words[0][i], block.words[1][i]));
    pairs.values[2 * i + 1] = static_cast<float>(low + range * Unit(block.words[2][i], block.words[3][i]));
  }
}

// Box and Muller's two of one pair.
void SpreadNormally(const PhiloxBlock& block, Pairs& pairs) {
  for (std::int64_t i = 0; i < pairs.count; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - Unit(block.words[0][i], block.words[1][i])));
    const double angle = 2 * std::numbers::pi * Unit(block.words[2][i], block.words[3][i]);
    pairs.values[2 * i] = static_cast<float>(pairs.low + pairs.range * (radius * std::cos(angle)));
    pairs.values[2 * i + 1] = static_cast<float>(pairs.low + pairs.range * (radius * std::sin(angle)));
  }
}

// Elements 2i and 2i + 1 come of counter i; a run may begin and end between the two.
void Fill(const RandomRun& run, void (*spread)(const PhiloxBlock&, Pairs&), Pairs& pairs,
          absl::Span<float> out) {
  PhiloxBlock block;
  std::size_t skip = run.first % 2;
  RandomRun counters = {.seed = run.seed, .stream = run.stream, .first = run.first / 2};
  while (!out.empty()) {
    pairs.count = static_cast<int>(std::min<std::size_t>(kPhiloxLanes, (skip + out.size() + 1) / 2));
    MakePhiloxBlock(counters, pairs.count, block);
    spread(block, pairs);
    const std::size_t count = std::min(out.size(), static_cast<std::size_t>(2 * pairs.count) - skip);
    std::copy_n(pairs.values + skip, count, out.data());
    out.remove_prefix(count);
    skip = 0;
    counters.first += kPhiloxLanes;
  }
}

}  // namespace

TY_VECTOR void MakePhiloxBlock(const RandomRun& run, int lanes, PhiloxBlock& block) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  constexpr int kVector = 8;  // whole vectors only
  const int count = (lanes + kVector - 1) / kVector * kVector;
  const std::uint64_t first = run.first;
  const std::uint64_t stream = run.stream;
  const std::uint64_t seed = run.seed;
  TY_INDEPENDENT
  for (int i = 0; i < count; ++i) {
    const std::uint64_t counter = first + static_cast<std::uint64_t>(i);
    auto x0 = static_cast<std::uint32_t>(counter);
    auto x1 = static_cast<std::uint32_t>(counter >> 32);
    auto x2 = static_cast<std::uint32_t>(stream);
    auto x3 = static_cast<std::uint32_t>(stream >> 32);
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kRounds; ++round) {
      const auto high0 = static_cast<std::uint32_t>((std::uint64_t{kMultiplier0} * x0) >> 32);
      const auto high1 = static_cast<std::uint32_t>((std::uint64_t{kMultiplier1} * x2) >> 32);
      const std::uint32_t low0 = kMultiplier0 * x0;
      const std::uint32_t low1 = kMultiplier1 * x2;
      x0 = high1 ^ x1 ^ key0;
      x1 = low1;
      x2 = high0 ^ x3 ^ key1;
      x3 = low0;
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    block.words[0][i] = x0;
    block.words[1][i] = x1;
    block.words[2][i] = x2;
    block.words[3][i] = x3;
  }
}

void FillUniform(const RandomRun& run, double low, double high, std::int64_t count, float* out) {
  Pairs pairs{.low = low, .range = high - low};
  Fill(run, Spread, pairs, {out, static_cast<std::size_t>(count)});
}

void FillNormal(const RandomRun& run, double mean, double deviation, std::int64_t count, float* out) {
  Pairs pairs{.low = mean, .range = deviation};
  Fill(run, SpreadNormally, pairs, {out, static_cast<std::size_t>(count)});
}

}  // namespace trainyard::graph
