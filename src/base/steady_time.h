// Steady time: what is measured and waited by.
#pragma once

#include <compare>
#include <cstdint>

#include "absl/time/time.h"

namespace trainyard {

// A point of steady time. Its zero means nothing; only differences do.
class SteadyTime {
 public:
  constexpr SteadyTime() = default;
  static constexpr SteadyTime FromNanos(std::int64_t nanos) { return SteadyTime(nanos); }
  static constexpr SteadyTime Never() { return SteadyTime(INT64_MAX); }
  constexpr std::int64_t nanos() const { return nanos_; }

  // Saturates: a point an infinite duration from now is Never().
  friend SteadyTime operator+(SteadyTime t, absl::Duration d);
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return absl::Nanoseconds(a.nanos_ - b.nanos_);
  }
  friend auto operator<=>(const SteadyTime&, const SteadyTime&) = default;

 private:
  constexpr explicit SteadyTime(std::int64_t nanos) : nanos_(nanos) {}
  std::int64_t nanos_ = 0;
};

}  // namespace trainyard
