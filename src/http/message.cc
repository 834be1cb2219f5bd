#include "http/message.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::http {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

bool SameHeader(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view FindHeader(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (SameHeader(key, name)) return value;
  }
  return {};
}

std::string PercentEncoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      StrAppend(out, '%', kHex[byte >> 4], kHex[byte & 15]);
    }
  }
  return out;
}

void AddParameter(std::string& target, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  StrAppend(target, target.find('?') == std::string::npos ? '?' : '&', name, '=', PercentEncoded(value));
}

absl::StatusOr<std::string> PercentDecoded(std::string_view text, bool query) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && query) {
      out += ' ';
    } else if (text[at] != '%') {
      out += text[at];
    } else {
      const std::string_view digits = text.substr(at + 1, 2);
      const auto byte = digits.size() == 2 ? ParseNumber<std::uint8_t>(digits, 16) : std::nullopt;
      if (!byte) {
        return absl::InvalidArgumentError(StrCat("not percent-encoded: \"", Escaped(text.substr(at, 3)),
                                                 "\" at byte ", at + 1, "; a % itself is %25"));
      }
      out += static_cast<char>(*byte);
      at += 2;
    }
  }
  return out;
}

}  // namespace trainyard::http
