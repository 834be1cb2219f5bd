// Records as they are written: what is in a source's record, in the types that a user has asked for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "data/csv/lines.h"
#include "data/field_spec.h"
#include "data/record_source.h"

namespace trainyard::data {

// Used by one thread.
class RecordEncoder {
 public:
  virtual ~RecordEncoder() = default;
  // Appends what the record becomes. InvalidArgument: it is not what its fields say; whoever knows where it
  // lies says so.
  virtual absl::Status Append(std::string_view record, std::string& out) = 0;
};

// `fields` are DealFields()' for the source.
std::unique_ptr<RecordEncoder> MakeRecordEncoder(const RecordSource& source, const CsvOptions& csv,
                                                 std::vector<FieldSpec> fields);

}  // namespace trainyard::data
