// An order of many things, by arithmetic alone: the records of a pass, the tasks of an epoch. Pure.
#pragma once

#include <array>
#include <cstdint>

namespace trainyard {

// A permutation of [0, count) that follows from the pass and the seed and from nothing else, on every machine
// and in every version: who goes on from a checkpoint must find the order that it was written in.
class Permutation {
 public:
  // `count` is at least 1 and below 2^62.
  Permutation(std::int64_t count, std::int64_t pass, std::uint64_t seed);

  // `place` is in [0, count).
  std::int64_t At(std::int64_t place) const;

 private:
  static constexpr int kRounds = 8;  // even, so that both halves are where they began

  std::uint64_t Step(std::uint64_t number) const;

  std::uint64_t count_;
  int high_bits_ = 1;  // of a number of the smallest power of two that has room
  int low_bits_ = 1;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace trainyard
