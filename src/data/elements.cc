#include "data/elements.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace trainyard::data {
namespace {

std::string_view NumberText(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

bool IsTiny(std::string_view text) {
  const std::size_t exponent = text.find_first_of("eE");
  return exponent != std::string_view::npos && text.substr(exponent + 1).starts_with('-');
}

template <typename Number>
std::optional<Number> ParseFloat(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Too close to zero to be told from it is zero.
  const bool tiny = error == std::errc::result_out_of_range && IsTiny(text);
  if (end != text.data() + text.size() || (error != std::errc() && !tiny)) return std::nullopt;
  if (!std::isfinite(number)) return std::nullopt;
  return tiny ? 0 : number;
}

}  // namespace

bool ParseElement(std::string_view text, double scale, float& out) {
  text = NumberText(text);
  if (scale == 1) {
    const std::optional<float> number = ParseFloat<float>(text);
    out = number.value_or(0);
    return number.has_value();
  }
  const std::optional<double> number = ParseFloat<double>(text);
  return number && StoreElement(*number, scale, out) && std::isfinite(out);
}

bool ParseElement(std::string_view text, double scale, std::int64_t& out) {
  text = NumberText(text);
  if (scale == 1) {
    if (const auto whole = ParseNumber<std::int64_t>(text)) {
      out = *whole;
      return true;
    }
  }
  const std::optional<double> number = ParseFloat<double>(text);
  if (!number || (scale == 1 && *number != std::trunc(*number))) return false;
  return StoreElement(*number, scale, out);
}

}  // namespace trainyard::data
