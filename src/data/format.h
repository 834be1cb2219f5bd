// What record files may be.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::data {

enum class Format : std::uint8_t { kAuto, kRecordIo, kCsv, kIdx };
// "auto", "recordio", "csv", "idx".
std::string_view NameOf(Format format);
absl::StatusOr<Format> ParseFormat(std::string_view name);

}  // namespace trainyard::data
