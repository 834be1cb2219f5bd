#include "data/crc32.h"

#include <isa-l/crc.h>

namespace trainyard::data {

std::uint32_t Crc32(std::string_view data, std::uint32_t seed) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

}  // namespace trainyard::data
