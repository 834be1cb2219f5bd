#include "graph/kernel/random.h"

#include <cmath>
#include <numbers>

namespace trainyard::graph {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

std::uint32_t High(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
std::uint32_t Low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

// 53 bits of two words, in [0, 1).
double Unit(std::uint32_t a, std::uint32_t b) {
  return static_cast<double>(((std::uint64_t{a} << 32) | b) >> 11) * 0x1.0p-53;
}

}  // namespace

std::array<std::uint32_t, 4> Philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  std::array<std::uint32_t, 4> x = {Low(counter), High(counter), Low(stream), High(stream)};
  std::uint32_t key0 = Low(seed);
  std::uint32_t key1 = High(seed);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * x[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * x[2];
    x = {High(product1) ^ x[1] ^ key0, Low(product1), High(product0) ^ x[3] ^ key1, Low(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

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
