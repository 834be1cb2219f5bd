// A CSV file, read by the numbers of its records.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/csv/lines.h"
#include "data/file_bytes.h"
#include "data/record_file.h"

namespace trainyard::data {

// Reads all of the file once, to find its lines. DataLoss: see CsvIndex::Build().
absl::StatusOr<std::unique_ptr<const RecordFile>> OpenCsv(const FileBytes& bytes, const CsvOptions& options);

}  // namespace trainyard::data
