#include "data/csv/fields.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {

absl::StatusOr<std::span<const std::string_view>> CsvFields::Split(std::string_view record) {
  fields_.clear();
  changed_.clear();
  std::size_t at = 0;
  while (true) {
    if (options_.quotes && at < record.size() && record[at] == '"') {
      TY_ASSIGN_OR_RETURN(at, Unquote(record, at));
    } else {
      const std::size_t end = std::min(record.find(options_.delimiter, at), record.size());
      fields_.push_back(record.substr(at, end - at));
      at = end;
    }
    if (at == record.size()) return std::span<const std::string_view>(fields_);
    ++at;  // over the delimiter
  }
}

absl::StatusOr<std::size_t> CsvFields::Unquote(std::string_view record, std::size_t at) {
  std::size_t from = at + 1;
  std::string* joined = nullptr;
  while (true) {
    const std::size_t quote = record.find('"', from);
    if (quote == std::string_view::npos) {
      return absl::InvalidArgumentError(StrCat("field ", fields_.size() + 1, ": its quote is not closed"));
    }
    const std::string_view piece = record.substr(from, quote - from);
    const std::size_t behind = quote + 1;
    if (behind < record.size() && record[behind] == '"') {
      if (joined == nullptr) joined = &changed_.emplace_back();
      StrAppend(*joined, piece, '"');
      from = behind + 1;
      continue;
    }
    if (behind < record.size() && record[behind] != options_.delimiter) {
      return absl::InvalidArgumentError(StrCat("field ", fields_.size() + 1, ": '",
                                               Escaped(record.substr(behind, 1)),
                                               "' stands between its closing quote and the next delimiter"));
    }
    if (joined != nullptr) *joined += piece;
    fields_.push_back(joined == nullptr ? piece : std::string_view(*joined));
    return behind;
  }
}

absl::StatusOr<std::span<const std::string_view>> CsvFields::Split(std::string_view record,
                                                                   const RecordSource& source,
                                                                   std::uint64_t number) {
  auto fields = Split(record);
  if (!fields.ok()) return Annotate(fields.status(), source.Where(number));
  return fields;
}

}  // namespace trainyard::data
