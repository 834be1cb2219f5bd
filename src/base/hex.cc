#include "base/hex.h"

namespace trainyard {

std::string HexBytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    out += kDigits[static_cast<unsigned char>(byte) >> 4U];
    out += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return out;
}

}  // namespace trainyard
