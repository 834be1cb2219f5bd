// Many of random.h's numbers at once, several times as fast as one by one.
#pragma once

#include <cstdint>

namespace trainyard::graph {

// Where numbers come from: first, first + 1, ... of a seed's stream.
struct RandomRun {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t first = 0;
};

inline constexpr int kPhiloxLanes = 64;
struct PhiloxBlock {
  alignas(64) std::uint32_t words[4][kPhiloxLanes];
};
// words[k][i] is word k of Philox(seed, stream, first + i), for i from 0 to `lanes` or a few more.
void MakePhiloxBlock(const RandomRun& run, int lanes, PhiloxBlock& block);

// out[i] = float(low + (high - low) * UniformAt(seed, stream, first + i))
void FillUniform(const RandomRun& run, double low, double high, std::int64_t count, float* out);
// out[i] = float(mean + deviation * NormalAt(seed, stream, first + i))
void FillNormal(const RandomRun& run, double mean, double deviation, std::int64_t count, float* out);

}  // namespace trainyard::graph
