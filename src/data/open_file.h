// Opening one record file: what it is, and where its records are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "data/file_bytes.h"
#include "data/format.h"
#include "data/open.h"
#include "data/record_file.h"

namespace trainyard::data {

// By the file's first bytes; CSV, which has none of its own, by the name's end. kAuto for an empty file,
// which has no records in any format that allows it. InvalidArgument: it cannot be told; the message names
// the file.
absl::StatusOr<Format> DetectFormat(const std::string& path, std::string_view bytes);

// The index of a file of that format. `bytes` are the file's own; they become what it unpacks to if gzip has
// packed it. Messages are without the file's name. `options` may say another format.
absl::StatusOr<std::unique_ptr<const RecordFile>> IndexFile(Format format, const OpenOptions& options,
                                                            std::shared_ptr<const FileBytes>& bytes);

}  // namespace trainyard::data
