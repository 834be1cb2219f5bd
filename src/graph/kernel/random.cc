#include "graph/kernel/random.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace trainyard::graph {
namespace {

// 53 bits of two words, in [0, 1).
double Unit(std::uint32_t a, std::uint32_t b) {
  return static_cast<double>(((std::uint64_t{a} << 32) | b) >> 11) * 0x1.0p-53;
}

}  // namespace

double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const std::array<std::uint32_t, 4> words = Philox(seed, stream, index / 2);
  return index % 2 == 0 ? Unit(words[0], words[1]) : Unit(words[2], words[3]);
}

// Box and Muller's two, one for an even and one for an odd element.
double NormalAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const std::array<std::uint32_t, 4> words = Philox(seed, stream, index / 2);
  const double radius = std::sqrt(-2 * std::log(1 - Unit(words[0], words[1])));
  const double angle = 2 * std::numbers::pi * Unit(words[2], words[3]);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// FNV-1a.
std::uint64_t StreamOf(const char* name, std::size_t size) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < size; ++i) {
    hash ^= static_cast<unsigned char>(name[i]);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace trainyard::graph
