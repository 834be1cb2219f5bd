#include "agent/json_text.h"

#include <cstdint>
#include <cstdio>

namespace trainyard::agent {
namespace {

// How many bytes the UTF-8 character at the beginning has; 0: there is none.
std::size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xc0U) != 0x80U) return 0;
    code = code << 6 | (next & 0x3fU);
  }
  const bool is_short = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return is_short || is_surrogate || code > 0x10ffff ? 0 : size;
}

void AppendPlain(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
    out += escape;
  } else {
    out += c;
  }
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = CharacterSize(text);
    if (size == 1) {
      AppendPlain(out, text[0]);
    } else if (size == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
  return out;
}

}  // namespace trainyard::agent
