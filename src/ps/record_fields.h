// How the bytes of a record become elements of tensors. A decoder is made for the records of one source and
// goes through them once for all fields.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/record_source.h"
#include "graph/kernel/tensor.h"

namespace trainyard::ps {

// One field of a record.
struct RecordField {
  std::string name;        // of the variable
  std::size_t output = 0;  // which of the batch's tensors it goes to
  graph::DataType type = graph::DataType::kFloat32;
  std::int64_t elements = 1;
  std::int64_t begin = -1;  // its first column (CSV) or byte; -1: behind the field before it
  double scale = 1;         // what each number is multiplied by
};

// Used by one thread.
class RecordDecoder {
 public:
  virtual ~RecordDecoder() = default;
  // Puts the fields into row `row` of their tensors, which have room. InvalidArgument: the record is not what
  // it should be; whoever knows where it lies says so.
  virtual absl::Status Decode(std::string_view record, std::int64_t row, absl::Span<graph::Tensor> batch) = 0;
};

// What a source's records are in each format:
//   recordio   the fields one behind the other, little-endian: 4 bytes for each f32, 8 for each i64, and
//   nothing else idx        one item, of any of the format's types, and the fields are all of it csv columns
//   of numbers; there may be more than the fields use
// An i64 that a scale gives a fraction loses it. InvalidArgument: the fields and the source do not go
// together.
absl::StatusOr<std::unique_ptr<RecordDecoder>> MakeRecordDecoder(const data::RecordSource& source,
                                                                 std::vector<RecordField> fields);

}  // namespace trainyard::ps
