// How damage to a file is told: by its byte. Whoever knows the file's name puts it before.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "base/text.h"

namespace trainyard::data {

// "damaged at byte 20: ...".
inline absl::Status DamageAt(std::uint64_t offset, std::string_view what) {
  return absl::DataLossError(StrCat("damaged at byte ", offset, ": ", what));
}

}  // namespace trainyard::data
