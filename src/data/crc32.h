// CRC-32 of IEEE 802.3, the one of zlib, by the processor's carry-less multiplication where it has one:
// zlib's own would be slower than reading the bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard::data {

// The checksum of `data`, continued from `seed` (the checksum of what came before it, or 0).
std::uint32_t Crc32(std::string_view data, std::uint32_t seed = 0);

}  // namespace trainyard::data
