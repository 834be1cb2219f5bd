#include "apiserver/schema/formats.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The number that the next `count` digits are; takes them off the text.
std::optional<int> TakeDigits(std::string_view& text, std::size_t count) {
  if (text.size() < count || !std::all_of(text.begin(), text.begin() + static_cast<long>(count), IsDigit))
    return std::nullopt;
  const auto number = ParseNumber<int>(text.substr(0, count));
  text.remove_prefix(count);
  return number;
}

bool Take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool TakeDate(std::string_view& text) {
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const auto year = TakeDigits(text, 4);
  if (!year || !Take(text, '-')) return false;
  const auto month = TakeDigits(text, 2);
  if (!month || *month < 1 || *month > 12 || !Take(text, '-')) return false;
  const auto day = TakeDigits(text, 2);
  if (!day || *day < 1 || *day > kDays[static_cast<std::size_t>(*month - 1)]) return false;
  const bool leap = *year % 4 == 0 && (*year % 100 != 0 || *year % 400 == 0);
  return *month != 2 || *day < 29 || leap;
}

bool TakeClock(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || *hour > 23 || !Take(text, ':')) return false;
  const auto minute = TakeDigits(text, 2);
  return minute && *minute <= 59;
}

bool IsDate(std::string_view text) { return TakeDate(text) && text.empty(); }

bool IsIp(int family, std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN) return false;
  std::array<unsigned char, 16> address{};
  return inet_pton(family, std::string(text).c_str(), address.data()) == 1;
}

bool IsCidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto bits = ParseNumber<unsigned>(text.substr(slash + 1));
  const std::string_view address = text.substr(0, slash);
  return bits && ((IsIp(AF_INET, address) && *bits <= 32) || (IsIp(AF_INET6, address) && *bits <= 128));
}

bool IsUuid(std::string_view text, char version) {
  std::string digits;
  std::size_t at = 0;
  for (const std::size_t group : {8U, 4U, 4U, 4U, 12U}) {
    if (!digits.empty() && at < text.size() && text[at] == '-') ++at;
    digits += text.substr(std::min(at, text.size()), group);
    at += group;
  }
  if (at != text.size() || digits.size() != 32 || !std::ranges::all_of(digits, IsHex)) return false;
  if (version != '\0' && digits[12] != version) return false;
  const bool has_variant = version == '4' || version == '5';
  return !has_variant || std::string_view("89abAB").find(digits[16]) != std::string_view::npos;
}

bool IsHostname(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  return std::ranges::all_of(Split(text, '.'), [](std::string_view label) {
    return !label.empty() && label.size() <= 63 && !label.starts_with('-') && !label.ends_with('-') &&
           std::ranges::all_of(label, [](char c) {
             return IsDigit(c) || IsLetter(c) || c == '-' || (static_cast<unsigned char>(c) & 0x80U) != 0;
           });
  });
}

bool IsMac(std::string_view text) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 3 == 2 ? text[i] != text[2] || (text[i] != ':' && text[i] != '-') : !IsHex(text[i])) return false;
  }
  return true;
}

bool IsUri(std::string_view text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }))
    return false;
  if (text.starts_with('/')) return true;
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && IsLetter(text[0]) &&
         std::ranges::all_of(text.substr(0, colon), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '+' || c == '-' || c == '.';
         });
}

bool IsEmail(std::string_view text) {
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && at > 0 && IsHostname(text.substr(at + 1)) &&
         text.substr(0, at).find_first_of(" \t\r\n<>@") == std::string_view::npos;
}

// "1h30m", "1.5s", "-10ms", "22 ns", "3 days".
bool IsDuration(std::string_view text) {
  constexpr std::array<std::string_view, 25> kUnits = {
      "ns",     "us",      "µs",    "μs",    "ms",    "s",    "m",      "h",       "d",
      "w",      "nano",    "nanos", "micro", "milli", "sec",  "second", "seconds", "min",
      "minute", "minutes", "hour",  "hours", "day",   "days", "weeks"};
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return true;
  if (text.empty()) return false;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    if (digits == 0 || text.substr(0, digits) == "." || std::ranges::count(text.substr(0, digits), '.') > 1)
      return false;
    text.remove_prefix(digits);
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::string_view unit = text.substr(0, std::min(text.find_first_of("0123456789. "), text.size()));
    if (std::ranges::find(kUnits, unit) == kUnits.end()) return false;
    text.remove_prefix(unit.size());
  }
  return true;
}

using FormatCheck = bool (*)(std::string_view);

FormatCheck FindCheck(std::string_view format) {
  struct Known {
    std::string_view name;
    FormatCheck check;
  };
  static constexpr std::array<Known, 14> kKnown = {{
      {"datetime", IsDateTime},
      {"date", IsDate},
      {"byte", IsBase64},
      {"duration", IsDuration},
      {"ipv4", [](std::string_view text) { return IsIp(AF_INET, text); }},
      {"ipv6", [](std::string_view text) { return IsIp(AF_INET6, text); }},
      {"cidr", IsCidr},
      {"uuid", [](std::string_view text) { return IsUuid(text, '\0'); }},
      {"uuid3", [](std::string_view text) { return IsUuid(text, '3'); }},
      {"uuid4", [](std::string_view text) { return IsUuid(text, '4'); }},
      {"uuid5", [](std::string_view text) { return IsUuid(text, '5'); }},
      {"hostname", IsHostname},
      {"uri", IsUri},
      {"email", IsEmail},
  }};
  if (format == "mac") return IsMac;
  const auto* found = std::ranges::find(kKnown, format, &Known::name);
  return found == kKnown.end() ? nullptr : found->check;
}

}  // namespace

bool IsDateTime(std::string_view text) {
  if (!TakeDate(text) || !(Take(text, 'T') || Take(text, 't'))) return false;
  if (!TakeClock(text) || !Take(text, ':')) return false;
  const auto second = TakeDigits(text, 2);
  if (!second || *second > 60) return false;
  if (Take(text, '.')) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return false;
    text.remove_prefix(digits);
  }
  if (text == "Z" || text == "z") return true;
  return (Take(text, '+') || Take(text, '-')) && TakeClock(text) && text.empty();
}

bool IsBase64(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  return std::ranges::all_of(text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '+' || c == '/'; });
}

bool MatchesFormat(std::string_view format, std::string_view text) {
  std::string plain;
  if (format.find('-') != std::string_view::npos) {
    plain = format;
    std::erase(plain, '-');
    format = plain;
  }
  const FormatCheck check = FindCheck(format);
  return check == nullptr || check(text);
}

}  // namespace trainyard::apiserver
