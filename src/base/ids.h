// Ids and random numbers from a seed, so that a simulation that failed can be run again to the letter.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "base/mutex.h"

namespace trainyard {

// Safe to use from many threads; the sequence is then shared among them.
class IdSource {
 public:
  explicit IdSource(std::uint64_t seed) : engine_(seed) {}
  // Seeded by the system's entropy.
  static IdSource Random();
  IdSource(IdSource&& other) noexcept : engine_(other.engine_) {}

  std::uint64_t Next();
  // Uniform in [0, bound); bound > 0.
  std::uint64_t Below(std::uint64_t bound);
  // RFC 4122 version 4, lower case.
  std::string Uuid();
  // `length` letters and digits that cannot spell a word or be mistaken for each other.
  std::string Suffix(int length);

 private:
  Mutex mu_;
  std::mt19937_64 engine_;
};

}  // namespace trainyard
