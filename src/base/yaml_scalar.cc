#include "base/yaml_scalar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/text.h"

namespace trainyard {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// In small letters, with the first one big, or all big.
bool IsWord(std::string_view text, std::string_view small) {
  if (text.size() != small.size()) return false;
  bool all_big = true;
  bool rest_small = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool big = text[i] >= 'A' && text[i] <= 'Z';
    const char lowered = big ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (lowered != small[i]) return false;
    all_big = all_big && (big || lowered < 'a');
    rest_small = rest_small && (i == 0 || !big);
  }
  return all_big || rest_small;
}

std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "y"}) {
    if (IsWord(text, word)) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "n"}) {
    if (IsWord(text, word)) return false;
  }
  return std::nullopt;
}

std::optional<double> ParseNonFinite(std::string_view text) {
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text != ".inf" && text != ".Inf" && text != ".INF") return std::nullopt;
  const double infinity = std::numeric_limits<double>::infinity();
  return negative ? -infinity : infinity;
}

// [-+]? digits, or 0x, 0o, 0b or 0 and the digits of that base; as many as 64 bits hold.
std::optional<Document> ParseWhole(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool has_sign = negative || text.starts_with('+');
  if (has_sign) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1];
    base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
    text.remove_prefix(base != 8 || mark == 'o' || mark == 'O' ? 2 : 1);
  }
  const auto magnitude = ParseNumber<std::uint64_t>(text, base);
  if (!magnitude) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (negative) {
    if (*magnitude > kMost + 1) return std::nullopt;
    return Document(static_cast<std::int64_t>(0 - *magnitude));
  }
  if (*magnitude <= kMost) return Document(static_cast<std::int64_t>(*magnitude));
  if (has_sign) return std::nullopt;
  return Document(*magnitude);
}

// [-+]? ( .digits | digits [.digits?] ) ( [eE] [-+]? digits )?
bool LooksFloating(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - from;
  };
  const auto skip = [&](std::string_view any) {
    const bool there = at < text.size() && any.find(text[at]) != std::string_view::npos;
    if (there) ++at;
    return there;
  };
  skip("+-");
  const std::size_t before = digits();
  const std::size_t behind = skip(".") ? digits() : 0;
  if (before + behind == 0) return false;
  if (skip("eE")) {
    skip("+-");
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::optional<Document> ParseFloating(std::string_view text) {
  if (!LooksFloating(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // One that no double holds is a text, as a name of digits may be.
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  // JSON does not tell 3.0 from 3, and a field of whole numbers takes both.
  constexpr double kMost = 9007199254740992;  // 2^53
  if (std::abs(number) <= kMost && number == std::trunc(number)) {
    return Document(static_cast<std::int64_t>(number));
  }
  return Document(number);
}

std::optional<Document> ParseNumeric(std::string_view text) {
  if (!IsDigit(text[0]) && text[0] != '+' && text[0] != '-' && text[0] != '.') return std::nullopt;
  if (const auto number = ParseNonFinite(text)) return Document(*number);
  std::string plain;
  for (const char c : text) {
    if (c != '_' || text[0] == '.') plain += c;
  }
  if (auto whole = ParseWhole(plain)) return whole;
  return ParseFloating(plain);
}

// Takes up to `most` digits off the front.
std::optional<int> TakeNumber(std::string_view& text, std::size_t most) {
  std::size_t size = 0;
  while (size < most && size < text.size() && IsDigit(text[size])) ++size;
  const auto number = ParseNumber<int>(text.substr(0, size));
  text.remove_prefix(size);
  return number;
}

bool Take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool IsDay(int year, int month, int day) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  const bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= kDays[static_cast<std::size_t>(month - 1)] + (leap ? 1 : 0);
}

// hour:minute:second, with parts of a second.
bool TakeTimeOfDay(std::string_view& text) {
  const auto hour = TakeNumber(text, 2);
  if (!hour || *hour > 23 || !Take(text, ':')) return false;
  const auto minute = TakeNumber(text, 2);
  if (!minute || *minute > 59 || !Take(text, ':')) return false;
  const auto second = TakeNumber(text, 2);
  if (!second || *second > 59) return false;
  if (text.size() > 1 && text[0] == '.' && IsDigit(text[1])) {
    text.remove_prefix(1);
    while (!text.empty() && IsDigit(text[0])) text.remove_prefix(1);
  }
  return true;
}

bool TakeZone(std::string_view& text) {
  if (Take(text, 'Z')) return true;
  if (!Take(text, '+') && !Take(text, '-')) return false;
  const auto hour = TakeNumber(text, 2);
  return hour && Take(text, ':') && TakeNumber(text, 2);
}

// 2001-1-2, 2001-01-02T10:00:00Z, 2001-01-02 10:00:00
bool IsTimestamp(std::string_view text) {
  if (text.size() < 8 || text[4] != '-') return false;
  const auto year = TakeNumber(text, 4);
  if (!year || !Take(text, '-')) return false;
  const auto month = TakeNumber(text, 2);
  if (!month || !Take(text, '-')) return false;
  const auto day = TakeNumber(text, 2);
  if (!day || !IsDay(*year, *month, *day)) return false;
  if (text.empty()) return true;
  if (Take(text, 'T') || Take(text, 't')) return TakeTimeOfDay(text) && TakeZone(text) && text.empty();
  return Take(text, ' ') && TakeTimeOfDay(text) && text.empty();
}

// [-+]? [0-9][0-9_]* ( : [0-5]?[0-9] )+ ( .[0-9_]* )?
bool IsBaseSixty(std::string_view text) {
  if (!Take(text, '+')) Take(text, '-');
  if (text.empty() || !IsDigit(text[0])) return false;
  const auto skip_digits = [&] {
    while (!text.empty() && (IsDigit(text[0]) || text[0] == '_')) text.remove_prefix(1);
  };
  skip_digits();
  bool groups = false;
  while (Take(text, ':')) {
    const auto group = TakeNumber(text, 2);
    if (!group || *group > 59) return false;
    groups = true;
  }
  if (groups && Take(text, '.')) skip_digits();
  return groups && text.empty();
}

}  // namespace

Document ResolveScalar(std::string_view text) {
  if (text.empty() || text == "~" || IsWord(text, "null")) return nullptr;
  if (const auto value = ParseBool(text)) return *value;
  if (auto number = ParseNumeric(text)) return *std::move(number);
  return Document(text);
}

bool NeedsQuotes(std::string_view text) {
  return !ResolveScalar(text).is_string() || text == "<<" || IsTimestamp(text) || IsBaseSixty(text);
}

std::string PrintDouble(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  std::array<char, 400> buffer{};
  const auto print = [&](std::chars_format format) {
    return std::string(buffer.data(),
                       std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format).ptr);
  };
  const double magnitude = std::abs(number);
  const bool plain = number == 0 || (magnitude >= 1e-4 && magnitude < 1e6);
  return print(plain ? std::chars_format::fixed : std::chars_format::scientific);
}

}  // namespace trainyard
