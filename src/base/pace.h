// How often it is worth a line in a log how far something has come.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace trainyard {

// Each second at first, and later each 500th part of the time that has passed: a day has some 3,000 lines,
// and all of it can be shown.
class Pace {
 public:
  explicit Pace(SteadyTime begun) : begun_(begun), due_(begun) {}
  // Whether one is due; if so, it is taken for written.
  bool Take(SteadyTime now) {
    if (now < due_) return false;
    due_ = now + std::max(kLeast, (now - begun_) / kParts);
    return true;
  }

 private:
  static constexpr absl::Duration kLeast = absl::Seconds(1);
  static constexpr int kParts = 500;
  SteadyTime begun_;
  SteadyTime due_;
};

}  // namespace trainyard
