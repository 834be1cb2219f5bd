#include "kube/quantity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

using Nanos = __int128;
using Format = Quantity::Format;

constexpr Nanos kNanosPerUnit = 1'000'000'000;
constexpr Nanos kMaxBinary = Nanos{std::numeric_limits<std::int64_t>::max()} * kNanosPerUnit;
constexpr std::array<std::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "",  "k",
                                                               "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySuffixes = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

struct Suffix {
  Format format = Format::kDecimal;
  int exponent = 0;  // of 10, or of 1024 if the format is kBinary
};

std::optional<Suffix> ParseSuffix(std::string_view text) {
  const auto* decimal = std::ranges::find(kDecimalSuffixes, text);
  if (decimal != kDecimalSuffixes.end()) {
    return Suffix{Format::kDecimal, 3 * static_cast<int>(decimal - kDecimalSuffixes.begin()) - 9};
  }
  const auto* binary = std::ranges::find(kBinarySuffixes, text);
  if (binary != kBinarySuffixes.end()) {
    return Suffix{Format::kBinary, static_cast<int>(binary - kBinarySuffixes.begin())};
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  constexpr std::size_t kMaxDigits = 7;  // far beyond what the amount may be
  if (text.size() > kMaxDigits + (text.starts_with('-') ? 1 : 0)) return std::nullopt;
  const auto exponent = ParseNumber<int>(text);
  if (!exponent) return std::nullopt;
  return Suffix{Format::kExponent, *exponent};
}

// The parts of the number before a suffix.
struct Number {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
};

std::optional<Number> ParseNumberPart(std::string_view& text) {
  Number number;
  if (text.starts_with('-') || text.starts_with('+')) {
    number.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto take_digits = [&text] {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    return digits;
  };
  number.whole = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    number.fraction = take_digits();
  }
  if (number.whole.empty() && number.fraction.empty()) return std::nullopt;
  return number;
}

bool Multiply(Nanos& value, std::int64_t by) { return !__builtin_mul_overflow(value, Nanos{by}, &value); }

// Appends a digit to the number.
bool Append(Nanos& value, char digit) {
  return Multiply(value, 10) && !__builtin_add_overflow(value, Nanos{digit - '0'}, &value);
}

// The amount of the number times 10^exponent, in nanos and rounded up; null if it is too large.
std::optional<Nanos> ScaleDecimal(const Number& number, int exponent) {
  const int places = exponent + 9;  // how many digits of the fraction are whole nanos
  const auto fraction_size = static_cast<std::int64_t>(number.fraction.size());
  const std::int64_t whole_size = static_cast<std::int64_t>(number.whole.size());
  const std::int64_t kept = std::clamp<std::int64_t>(whole_size + places, 0, whole_size + fraction_size);
  Nanos value = 0;
  bool rest = false;
  for (std::int64_t i = 0; i < whole_size + fraction_size; ++i) {
    const char digit = i < whole_size ? number.whole[static_cast<std::size_t>(i)]
                                      : number.fraction[static_cast<std::size_t>(i - whole_size)];
    if (i >= kept) {
      rest = rest || digit != '0';
    } else if (!Append(value, digit)) {
      return std::nullopt;
    }
  }
  for (std::int64_t i = fraction_size; value != 0 && i < places; ++i) {
    if (!Multiply(value, 10)) return std::nullopt;
  }
  if (rest && __builtin_add_overflow(value, Nanos{1}, &value)) return std::nullopt;
  return value;
}

// The amount of the number times 1024^exponent, in nanos, rounded up and at most kMaxBinary.
Nanos ScaleBinary(const Number& number, int exponent) {
  const std::int64_t factor = std::int64_t{1} << (10 * exponent);
  Nanos whole = 0;
  for (const char digit : number.whole) {
    if (!Append(whole, digit) || whole > kMaxBinary) return kMaxBinary;
  }
  if (!Multiply(whole, factor) || whole > kMaxBinary / kNanosPerUnit) return kMaxBinary;
  whole *= kNanosPerUnit;
  // From the last digit on, so that no step needs more than one digit above the result.
  Nanos nanos = 0;
  bool rest = false;
  const Nanos unit = Nanos{factor} * kNanosPerUnit;
  for (auto digit = number.fraction.rbegin(); digit != number.fraction.rend(); ++digit) {
    nanos += unit * (*digit - '0');
    rest = rest || nanos % 10 != 0;
    nanos /= 10;
  }
  return std::min(whole + nanos + (rest ? 1 : 0), kMaxBinary);
}

std::string PrintInt(Nanos value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (negative ? -digit : digit)));
  }
  if (negative) digits.push_back('-');
  std::ranges::reverse(digits);
  return digits;
}

absl::Status TooLarge(std::string_view what) {
  return absl::OutOfRangeError(StrCat("quantity ", what, " is too large: the most is about 1.7e29"));
}

absl::Status NoQuantity(std::string_view text) {
  return absl::InvalidArgumentError(
      StrCat("\"", Escaped(text),
             "\" is no quantity: write a number, then nothing or one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, "
             "as in 500m, 2 or 1.5Gi"));
}

}  // namespace

Quantity Quantity::FromUnits(std::int64_t units, Format format) { return {units * kNanosPerUnit, format}; }

Quantity Quantity::FromMilli(std::int64_t milli, Format format) {
  return {milli * (kNanosPerUnit / 1000), format};
}

absl::StatusOr<Quantity> Quantity::Parse(std::string_view text) {
  std::string_view rest = text;
  const std::optional<Number> number = ParseNumberPart(rest);
  if (!number) return NoQuantity(text);
  const std::optional<Suffix> suffix = ParseSuffix(rest);
  if (!suffix) return NoQuantity(text);
  const std::optional<Nanos> nanos = suffix->format == Format::kBinary
                                         ? ScaleBinary(*number, suffix->exponent)
                                         : ScaleDecimal(*number, suffix->exponent);
  if (!nanos) return TooLarge(Escaped(text));
  return Quantity(number->negative ? -*nanos : *nanos, suffix->format);
}

std::string Quantity::Print() const {
  if (nanos_ == 0) return "0";
  if (format_ == Format::kBinary && nanos_ % kNanosPerUnit == 0) {
    Nanos units = nanos_ / kNanosPerUnit;
    if (units >= 1024 || units <= -1024) {
      std::size_t power = 0;
      for (; units % 1024 == 0 && power + 1 < kBinarySuffixes.size(); ++power) units /= 1024;
      return StrCat(PrintInt(units), kBinarySuffixes[power]);
    }
  }
  Nanos value = nanos_;
  std::size_t power = 0;
  const bool exponent = format_ == Format::kExponent;
  for (; value % 1000 == 0 && (exponent || power + 1 < kDecimalSuffixes.size()); ++power) value /= 1000;
  if (!exponent) return StrCat(PrintInt(value), kDecimalSuffixes[power]);
  const int tens = 3 * static_cast<int>(power) - 9;
  return tens == 0 ? PrintInt(value) : StrCat(PrintInt(value), "e", tens);
}

absl::StatusOr<Quantity> Quantity::Add(const Quantity& a, const Quantity& b) {
  Quantity sum(0, a.nanos_ == 0 ? b.format_ : a.format_);
  if (__builtin_add_overflow(a.nanos_, b.nanos_, &sum.nanos_)) {
    return TooLarge(StrCat(a.Print(), " + ", b.Print()));
  }
  return sum;
}

absl::StatusOr<Quantity> Quantity::Subtract(const Quantity& a, const Quantity& b) {
  Quantity difference(0, a.nanos_ == 0 ? b.format_ : a.format_);
  if (__builtin_sub_overflow(a.nanos_, b.nanos_, &difference.nanos_)) {
    return TooLarge(StrCat(a.Print(), " - ", b.Print()));
  }
  return difference;
}

absl::StatusOr<Quantity> Quantity::Multiply(const Quantity& a, std::int64_t times) {
  Quantity product(a);
  if (!kube::Multiply(product.nanos_, times)) return TooLarge(StrCat(a.Print(), " * ", times));
  return product;
}

absl::StatusOr<std::int64_t> Quantity::InUnitsOf(std::int64_t nanos) const {
  Nanos value = nanos_ / nanos;
  if (nanos_ % nanos != 0) value += nanos_ > 0 ? 1 : -1;
  if (value > std::numeric_limits<std::int64_t>::max() || value < std::numeric_limits<std::int64_t>::min()) {
    return absl::OutOfRangeError(StrCat("quantity ", Print(), " does not fit in 64 bits"));
  }
  return static_cast<std::int64_t>(value);
}

absl::StatusOr<std::int64_t> Quantity::Units() const { return InUnitsOf(1'000'000'000); }
absl::StatusOr<std::int64_t> Quantity::Milli() const { return InUnitsOf(1'000'000); }

}  // namespace trainyard::kube
