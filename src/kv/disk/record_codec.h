// Pure: a record as bytes. Each carries a checksum over all of it and over the place that it was written for,
// so that a flipped bit, a torn write and a block that strayed from elsewhere are all noticed.
//
//   offset  size  little-endian
//        0     4  CRC-32C of the place (segment, offset) and of all bytes from 4 on
//        4     4  length of the whole, a multiple of 8
//        8     8  offset at which the group of records starts that was written together
//       16     1  kind          17  1  flags (bit 0: ends its transaction)       18  2  zero
//       20     4  order within the revision
//       24     8  revision      32  8  create revision
//       40     8  version, or a lease's time to live in ms                        48  8  lease
//       56     4  length of the key                                               60  4  length of the value
//       64        key, value, zeros up to a multiple of 8
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kv/journal.h"

namespace trainyard::kv {

inline constexpr std::size_t kRecordHeader = 64;

// The place that a record is written to.
struct RecordPlace {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t group = 0;
};

struct DecodedRecord {
  Record record;  // points into the bytes
  std::uint32_t length = 0;
  std::uint64_t group = 0;
};

std::size_t EncodedLength(const Record& record);
void Encode(const Record& record, const RecordPlace& place, std::string& out);

// The record at the start of `bytes`, which lie at (segment, offset). Any error means: there is none, whole
// and true.
absl::StatusOr<DecodedRecord> Decode(std::string_view bytes, std::uint32_t segment, std::uint64_t offset);

}  // namespace trainyard::kv
