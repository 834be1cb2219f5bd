// Random numbers by counter: each is a function of a seed and a number, and of nothing before it, on every
// machine.
#pragma once

#include <array>
#include <cstdint>

namespace trainyard {

// Philox 4x32 with ten rounds: four 32-bit numbers for each counter.
std::array<std::uint32_t, 4> Philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter);

}  // namespace trainyard
