// The fields of a CSV record.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "data/csv/lines.h"
#include "data/record_source.h"

namespace trainyard::data {

// Used by one thread, for many records.
class CsvFields {
 public:
  explicit CsvFields(const CsvOptions& options = {}) : options_(options) {}

  // The fields without the quotes around them, and with one quote for two within. They are valid until the
  // next call, and as long as the record; an empty record has one empty field. InvalidArgument: a quote is
  // not closed, or something stands between a closing quote and the delimiter; the message names the field,
  // from 1 on.
  absl::StatusOr<std::span<const std::string_view>> Split(std::string_view record);

  // The same of a record that has a number in a source: the message also names the file and the line.
  absl::StatusOr<std::span<const std::string_view>> Split(std::string_view record, const RecordSource& source,
                                                          std::uint64_t number);

 private:
  // Appends the quoted field at `at`; returns where it ends.
  absl::StatusOr<std::size_t> Unquote(std::string_view record, std::size_t at);

  const CsvOptions options_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> changed_;  // fields that are not in the record as they are
};

}  // namespace trainyard::data
