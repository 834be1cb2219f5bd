// Numbers with a fraction as whole ones.
#pragma once

#include <cstdint>
#include <optional>

namespace trainyard {

// Without its fraction; none if it is no number, or one that 64 bits do not hold.
inline std::optional<std::int64_t> WholeNumber(double value) {
  if (!(value >= -0x1.0p63 && value < 0x1.0p63)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

}  // namespace trainyard
