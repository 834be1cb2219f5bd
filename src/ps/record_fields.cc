#include "ps/record_fields.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/fields.h"
#include "data/elements.h"

namespace trainyard::ps {
namespace {

using graph::DataType;
using graph::Tensor;

static_assert(std::endian::native == std::endian::little, "elements of RecordIO are copied as they are");

template <typename... Parts>
absl::Status WrongRecord(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

absl::Status TooLarge(const RecordField& field) {
  return WrongRecord("a number of ", field.name, " is too large for ", graph::Name(field.type));
}

template <typename T>
absl::Span<T> RowOf(const RecordField& field, std::int64_t row, absl::Span<Tensor> batch) {
  return batch[field.output].span<T>().subspan(static_cast<std::size_t>(row * field.elements),
                                               static_cast<std::size_t>(field.elements));
}

// Gives fields that begin behind another their beginning; where the last one ends.
std::int64_t Place(std::vector<RecordField>& fields, const auto& size_of) {
  std::int64_t behind = 0;
  std::int64_t end = 0;
  for (RecordField& field : fields) {
    if (field.begin < 0) field.begin = behind;
    behind = field.begin + size_of(field);
    end = std::max(end, behind);
  }
  return end;
}

class RawDecoder final : public RecordDecoder {
 public:
  explicit RawDecoder(std::vector<RecordField> fields) : fields_(std::move(fields)) {
    bytes_ = static_cast<std::size_t>(Place(fields_, [](const RecordField& field) {
      return field.elements * static_cast<std::int64_t>(graph::SizeOf(field.type));
    }));
  }

  absl::Status Decode(std::string_view record, std::int64_t row, absl::Span<Tensor> batch) override {
    if (record.size() != bytes_)
      return WrongRecord("it has ", record.size(), " bytes, and its fields have ", bytes_);
    for (const RecordField& field : fields_) {
      const char* from = record.data() + field.begin;
      TY_RETURN_IF_ERROR(field.type == DataType::kFloat32
                             ? Copy(from, field, RowOf<float>(field, row, batch))
                             : Copy(from, field, RowOf<std::int64_t>(field, row, batch)));
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static absl::Status Copy(const char* from, const RecordField& field, absl::Span<T> to) {
    std::memcpy(to.data(), from, to.size() * sizeof(T));
    if (field.scale == 1) return absl::OkStatus();
    for (T& number : to) {
      if (!data::StoreElement(static_cast<double>(number), field.scale, number)) return TooLarge(field);
    }
    return absl::OkStatus();
  }

  std::vector<RecordField> fields_;
  std::size_t bytes_ = 0;
};

template <typename Element>
class IdxDecoder final : public RecordDecoder {
 public:
  explicit IdxDecoder(std::vector<RecordField> fields) : fields_(std::move(fields)) {
    // Pixels: there are only so many.
    if constexpr (sizeof(Element) == 1) {
      for (const RecordField& field : fields_) {
        auto& table = tables_.emplace_back();
        for (std::size_t i = 0; i < table.size(); ++i) {
          const auto byte = static_cast<unsigned char>(i);
          data::StoreElement(static_cast<double>(std::bit_cast<Element>(byte)), field.scale, table[i]);
        }
      }
    }
  }

  absl::Status Decode(std::string_view record, std::int64_t row, absl::Span<Tensor> batch) override {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const RecordField& field = fields_[i];
      const char* from = record.data() + field.begin;
      if (field.type == DataType::kInt64) {
        TY_RETURN_IF_ERROR(Convert(from, field, RowOf<std::int64_t>(field, row, batch)));
      } else if constexpr (sizeof(Element) == 1) {
        for (float& number : RowOf<float>(field, row, batch))
          number = tables_[i][static_cast<unsigned char>(*from++)];
      } else {
        TY_RETURN_IF_ERROR(Convert(from, field, RowOf<float>(field, row, batch)));
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static absl::Status Convert(const char* from, const RecordField& field, absl::Span<T> to) {
    for (T& number : to) {
      if (!data::StoreElement(static_cast<double>(data::LoadBig<Element>(from)), field.scale, number))
        return TooLarge(field);
      from += sizeof(Element);
    }
    return absl::OkStatus();
  }

  std::vector<RecordField> fields_;
  std::vector<std::array<float, 256>> tables_;  // of bytes: what each is as an element of the field
};

absl::StatusOr<std::unique_ptr<RecordDecoder>> MakeIdxDecoder(const data::ItemShape& shape,
                                                              std::vector<RecordField> fields) {
  const auto size = static_cast<std::int64_t>(BytesOf(shape.type));
  const std::int64_t end = Place(fields, [&](const RecordField& field) { return field.elements * size; });
  const std::int64_t bytes = size * static_cast<std::int64_t>(shape.Elements());
  if (end != bytes)
    return WrongRecord("its items have ", bytes, " bytes, and the fields take ", end, " of them");
  for (const RecordField& field : fields) {
    if (field.begin % size != 0)
      return WrongRecord(field.name, " begins within an element, at byte ", field.begin);
  }
  return data::WithElementType(shape.type, [&](auto zero) -> std::unique_ptr<RecordDecoder> {
    return std::make_unique<IdxDecoder<decltype(zero)>>(std::move(fields));
  });
}

class CsvDecoder final : public RecordDecoder {
 public:
  explicit CsvDecoder(std::vector<RecordField> fields) : fields_(std::move(fields)) {
    columns_ =
        static_cast<std::size_t>(Place(fields_, [](const RecordField& field) { return field.elements; }));
  }

  absl::Status Decode(std::string_view record, std::int64_t row, absl::Span<Tensor> batch) override {
    TY_ASSIGN_OR_RETURN(const auto columns, splitter_.Split(record));
    if (columns.size() < columns_)
      return WrongRecord("it has ", columns.size(), " columns, and the fields need ", columns_);
    for (const RecordField& field : fields_) {
      const auto first = static_cast<std::size_t>(field.begin);
      for (std::size_t i = 0; i < static_cast<std::size_t>(field.elements); ++i) {
        const std::string_view text = columns[first + i];
        const bool parsed =
            field.type == DataType::kFloat32
                ? data::ParseElement(text, field.scale, RowOf<float>(field, row, batch)[i])
                : data::ParseElement(text, field.scale, RowOf<std::int64_t>(field, row, batch)[i]);
        if (!parsed)
          return WrongRecord("column ", first + i + 1, " is \"", Shortened(Escaped(text), 40),
                             "\", which is no ", graph::Name(field.type), " for ", field.name);
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<RecordField> fields_;
  std::size_t columns_ = 0;
  data::CsvFields splitter_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordDecoder>> MakeRecordDecoder(const data::RecordSource& source,
                                                                 std::vector<RecordField> fields) {
  switch (source.format()) {
    case data::Format::kCsv:
      return std::make_unique<CsvDecoder>(std::move(fields));
    case data::Format::kIdx:
      if (source.Shape() == nullptr) return WrongRecord("it has no items");
      return MakeIdxDecoder(*source.Shape(), std::move(fields));
    case data::Format::kRecordIo:
    case data::Format::kAuto:  // there are no records
      break;
  }
  return std::make_unique<RawDecoder>(std::move(fields));
}

}  // namespace trainyard::ps
