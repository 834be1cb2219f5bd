// CRC-32C (Castagnoli), by the processor's own instruction where it has one.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard {

// The checksum of `data`, continued from `seed` (the checksum of what came before it, or 0).
std::uint32_t Crc32c(std::string_view data, std::uint32_t seed = 0);

}  // namespace trainyard
