// Texts of characters that have several bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace trainyard {

// As much of the text's beginning as fits into so many bytes; no character is cut in two.
inline std::string_view FirstCharacters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
  return text.substr(0, most);
}

}  // namespace trainyard
