// Amounts of a resource ("100m", "1.5Gi", "12e6"): exact, compared and added without loss, printed in
// Kubernetes' canonical form.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::kube {

// A whole number of billionths, between about -1.7e29 and 1.7e29. Equal and ordered by amount alone.
class Quantity {
 public:
  // How the amount was written, and so how it is printed.
  enum class Format : std::uint8_t { kDecimal, kBinary, kExponent };  // "2k", "2Ki", "2e3"

  constexpr Quantity() = default;
  static Quantity FromUnits(std::int64_t units, Format format = Format::kDecimal);
  static Quantity FromMilli(std::int64_t milli, Format format = Format::kDecimal);

  // A signed decimal number, then one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e or E with an exponent, or
  // nothing. What is finer than a billionth is rounded away from zero; what has a binary suffix and is above
  // 2^63-1 is that. InvalidArgument: it is no quantity. OutOfRange: it is too large.
  static absl::StatusOr<Quantity> Parse(std::string_view text);
  // "1500m", "1536Mi", "0": no fraction, the largest suffix that loses nothing. A binary amount below 1024,
  // or with a fraction, is printed as a decimal one.
  std::string Print() const;

  // OutOfRange: the result is too large. It has the format of the first, or of the second if the first is
  // zero.
  static absl::StatusOr<Quantity> Add(const Quantity& a, const Quantity& b);
  static absl::StatusOr<Quantity> Subtract(const Quantity& a, const Quantity& b);
  static absl::StatusOr<Quantity> Multiply(const Quantity& a, std::int64_t times);

  // Rounded away from zero. OutOfRange: it does not fit.
  absl::StatusOr<std::int64_t> Units() const;
  absl::StatusOr<std::int64_t> Milli() const;

  Format format() const { return format_; }
  int Sign() const { return nanos_ == 0 ? 0 : nanos_ < 0 ? -1 : 1; }

  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ < b.nanos_   ? std::strong_ordering::less
           : a.nanos_ > b.nanos_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
  }

 private:
  using Nanos = __int128;
  constexpr Quantity(Nanos nanos, Format format) : nanos_(nanos), format_(format) {}
  absl::StatusOr<std::int64_t> InUnitsOf(std::int64_t nanos) const;

  Nanos nanos_ = 0;
  Format format_ = Format::kDecimal;
};

}  // namespace trainyard::kube
