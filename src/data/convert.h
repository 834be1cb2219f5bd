// Converting record files of any format to RecordIO.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "data/field_spec.h"
#include "data/open.h"
#include "data/record_output.h"

namespace trainyard::data {

struct ConvertOptions {
  OpenOptions open;
  bool zip = false;               // each path is a source; a record is made of one of each, by number
  std::vector<FieldSpec> fields;  // none: records are as they were
  OutputOptions output;
};

struct Converted {
  std::uint64_t records = 0;
  OutputSize output;
  bool operator==(const Converted&) const = default;
};

struct ConvertProgress {
  std::uint64_t done = 0;
  std::uint64_t records = 0;
};

// `progress` is called now and then; an error of its own ends the conversion, which returns it. After any
// error there is nothing new under the output's name.
//   InvalidArgument   sources of different lengths, fields that do not fit, a record that is not what its
//   fields
//                     say or too large for a chunk; and what OpenRecords() and RecordOutput return
absl::StatusOr<Converted> Convert(const std::vector<std::string>& paths, const ConvertOptions& options,
                                  absl::FunctionRef<absl::Status(ConvertProgress)> progress);

}  // namespace trainyard::data
