#include "base/permutation.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "base/philox.h"

namespace trainyard {
namespace {

// Spreads each bit over all others.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::uint64_t Mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(std::int64_t count, std::int64_t pass, std::uint64_t seed)
    : count_(static_cast<std::uint64_t>(count)) {
  TY_CHECK(count > 0 && count < (std::int64_t{1} << 62), "what is shuffled has records");
  const int bits = std::bit_width(count_ - 1);
  if (bits > 2) {
    high_bits_ = bits / 2;
    low_bits_ = bits - bits / 2;
  }
  for (int i = 0; i < kRounds; ++i) {
    const auto random = Philox(seed, static_cast<std::uint64_t>(pass), static_cast<std::uint64_t>(i));
    keys_[static_cast<std::size_t>(i)] = std::uint64_t{random[0]} << 32U | random[1];
  }
}

std::int64_t Permutation::At(std::int64_t place) const {
  TY_CHECK(place >= 0 && static_cast<std::uint64_t>(place) < count_, "a place is one of the pass");
  auto number = static_cast<std::uint64_t>(place);
  // The steps permute a power of two of numbers. Going on from those that are no record's, until one is,
  // permutes the records; it takes less than two steps in the mean.
  do {
    number = Step(number);
  } while (number >= count_);
  return static_cast<std::int64_t>(number);
}

// A Feistel network: each round changes one half by a function of the other, so it can be undone, so no two
// numbers become one.
std::uint64_t Permutation::Step(std::uint64_t number) const {
  std::uint64_t high = number >> low_bits_;
  std::uint64_t low = number & Mask(low_bits_);
  int high_bits = high_bits_;
  int low_bits = low_bits_;
  for (const std::uint64_t key : keys_) {
    high ^= Mix(low ^ key) & Mask(high_bits);
    std::swap(high, low);
    std::swap(high_bits, low_bits);
  }
  return high << low_bits_ | low;
}

}  // namespace trainyard
