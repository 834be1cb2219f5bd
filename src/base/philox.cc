#include "base/philox.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

std::uint32_t High(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
std::uint32_t Low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

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

}  // namespace trainyard
