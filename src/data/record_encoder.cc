#include "data/record_encoder.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/fields.h"
#include "data/elements.h"

namespace trainyard::data {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(Number)>>(number);
  out.append(bytes.data(), bytes.size());
}

class RawEncoder final : public RecordEncoder {
 public:
  absl::Status Append(std::string_view record, std::string& out) override {
    out += record;
    return absl::OkStatus();
  }
};

template <typename Element>
class IdxEncoder final : public RecordEncoder {
 public:
  explicit IdxEncoder(std::vector<FieldSpec> fields) : fields_(std::move(fields)) {}

  absl::Status Append(std::string_view record, std::string& out) override {
    const char* from = record.data();
    for (const FieldSpec& field : fields_) {
      const bool stored = field.type == FieldType::kFloat32 ? AppendField<float>(field, from, out)
                                                            : AppendField<std::int64_t>(field, from, out);
      if (!stored) return absl::InvalidArgumentError("a number in it is too large for i64");
      from += *field.elements * sizeof(Element);
    }
    return absl::OkStatus();
  }

 private:
  template <typename Number>
  static bool AppendField(const FieldSpec& field, const char* from, std::string& out) {
    for (std::uint64_t i = 0; i < *field.elements; ++i, from += sizeof(Element)) {
      Number number{};
      if (!StoreElement(static_cast<double>(LoadBig<Element>(from)), field.scale, number)) return false;
      AppendNumber(number, out);
    }
    return true;
  }

  const std::vector<FieldSpec> fields_;
};

class CsvEncoder final : public RecordEncoder {
 public:
  CsvEncoder(const CsvOptions& csv, std::vector<FieldSpec> fields)
      : fields_(std::move(fields)), splitter_(csv) {
    for (const FieldSpec& field : fields_) columns_ += *field.elements;
  }

  absl::Status Append(std::string_view record, std::string& out) override {
    TY_ASSIGN_OR_RETURN(const auto columns, splitter_.Split(record));
    if (columns.size() != columns_) {
      return absl::InvalidArgumentError(
          StrCat("it has ", columns.size(), " columns, and the first record has ", columns_));
    }
    std::size_t at = 0;
    for (const FieldSpec& field : fields_) {
      for (const std::size_t end = at + *field.elements; at < end; ++at) {
        const bool parsed = field.type == FieldType::kFloat32
                                ? AppendColumn<float>(columns[at], field.scale, out)
                                : AppendColumn<std::int64_t>(columns[at], field.scale, out);
        if (!parsed) {
          return absl::InvalidArgumentError(StrCat("column ", at + 1, " is \"",
                                                   Shortened(Escaped(columns[at]), 40), "\", which is no ",
                                                   NameOf(field.type)));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename Number>
  static bool AppendColumn(std::string_view text, double scale, std::string& out) {
    Number number{};
    if (!ParseElement(text, scale, number)) return false;
    AppendNumber(number, out);
    return true;
  }

  const std::vector<FieldSpec> fields_;
  std::size_t columns_ = 0;
  CsvFields splitter_;
};

}  // namespace

std::unique_ptr<RecordEncoder> MakeRecordEncoder(const RecordSource& source, const CsvOptions& csv,
                                                 std::vector<FieldSpec> fields) {
  if (fields.front().type == FieldType::kRaw) return std::make_unique<RawEncoder>();
  if (source.format() == Format::kCsv) return std::make_unique<CsvEncoder>(csv, std::move(fields));
  return WithElementType(source.Shape()->type, [&](auto zero) -> std::unique_ptr<RecordEncoder> {
    return std::make_unique<IdxEncoder<decltype(zero)>>(std::move(fields));
  });
}

}  // namespace trainyard::data
