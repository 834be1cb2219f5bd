#include "base/base64.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace trainyard {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 255;

constexpr std::array<std::uint8_t, 256> MakeValues() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::uint8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kDigits[i])] = i;
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = MakeValues();

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

absl::Status WrongByte(std::string_view text, std::size_t at) {
  return absl::InvalidArgumentError(
      StrCat("not base 64: \"", Escaped(text.substr(at, 1)), "\" at byte ", at + 1));
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= group.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

absl::StatusOr<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;  // of which the last `held` are not written yet
  std::uint32_t held = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (IsSpace(text[at])) continue;
    if (text[at] == '=') {
      ++padding;
      if (digits % 4 + padding > 4 || digits % 4 < 2) return WrongByte(text, at);
      continue;
    }
    const std::uint8_t value = kValues[static_cast<unsigned char>(text[at])];
    if (value == kNone || padding > 0) return WrongByte(text, at);
    ++digits;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 255);
  }
  if (digits % 4 == 1) return absl::InvalidArgumentError("not base 64: it ends within a byte");
  return out;
}

}  // namespace trainyard
