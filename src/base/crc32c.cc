#include "base/crc32c.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace trainyard {

std::uint32_t Crc32c(std::string_view data, std::uint32_t seed) {
  // The library takes neither const nor more than an int's length, and leaves both inversions to its caller.
  std::uint32_t crc = ~seed;
  while (!data.empty()) {
    const std::size_t n = std::min<std::size_t>(data.size(), INT_MAX);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(n), crc);
    data.remove_prefix(n);
  }
  return ~crc;
}

}  // namespace trainyard
