// An IDX file, read by the numbers of its items.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/file_bytes.h"
#include "data/record_file.h"

namespace trainyard::data {

// DataLoss: the header is damaged, or the file has not exactly the size that the header says.
absl::StatusOr<std::unique_ptr<const RecordFile>> OpenIdx(const FileBytes& bytes);

// Whether this is an IDX file that gzip has packed.
bool LooksLikePackedIdx(std::string_view packed);

// Unpacks it. What is allocated is what the unpacked file has, by its header. DataLoss: damaged.
// ResourceExhausted: that is more than `max_bytes`.
absl::StatusOr<std::shared_ptr<const FileBytes>> UnpackIdx(std::string_view packed, std::uint64_t max_bytes);

}  // namespace trainyard::data
