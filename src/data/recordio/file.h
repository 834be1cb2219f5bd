// A RecordIO file, read by the numbers of its records.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/file_bytes.h"
#include "data/record_file.h"

namespace trainyard::data {

// Indexes the file. DataLoss: see IndexChunks().
absl::StatusOr<std::unique_ptr<const RecordFile>> OpenRecordIo(const FileBytes& bytes,
                                                               std::uint64_t max_chunk_bytes);

}  // namespace trainyard::data
