// What a record file is, as far as its headers tell.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "data/format.h"
#include "data/open.h"
#include "data/record_source.h"
#include "data/recordio/layout.h"

namespace trainyard::data {

struct FileSummary {
  Format format = Format::kRecordIo;
  std::uint64_t bytes = 0;  // as it lies on the disk
  std::uint64_t records = 0;
  // Of RecordIO.
  std::uint64_t chunks = 0;
  std::set<Layout> layouts;
  std::set<Compressor> compressors;
  // Of IDX.
  bool packed = false;  // by gzip, as a whole
  std::optional<ItemShape> shape;
  // Of CSV: of its first record.
  std::optional<std::size_t> columns;
  bool operator==(const FileSummary&) const = default;
};

// RecordIO's headers and CSV's lines are gone through, and gzip is unpacked; no checksum of a chunk is
// verified. Errors are OpenRecords()'.
absl::StatusOr<FileSummary> InspectFile(const std::string& path, const OpenOptions& options);

}  // namespace trainyard::data
