#include "ps/tables_reader.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::ps {

ObjectReader::ObjectReader(const Document& document) : object_(document.if_object()) {
  if (object_ == nullptr) first_ = absl::InvalidArgumentError("it is no JSON object");
}

const Document* ObjectReader::Find(std::string_view name) {
  asked_.insert(name);
  return object_ == nullptr ? nullptr : object_->if_contains(name);
}

const Document& ObjectReader::Any(std::string_view name) {
  static const Document kNull;
  const Document* value = Find(name);
  if (value == nullptr) Fail(name, "is missing");
  return value == nullptr ? kNull : *value;
}

std::string ObjectReader::Text(std::string_view name) {
  const Document& value = Any(name);
  if (!value.is_string()) Fail(name, "is no text");
  return std::string(trainyard::Text(value));
}

std::int64_t ObjectReader::IntOf(const Document& value, std::string_view name, std::int64_t least,
                                 std::int64_t most) {
  if (!value.is_int64()) {
    Fail(name, "is no whole number");
    return least;
  }
  const std::int64_t number = value.get_int64();
  if (number >= least && number <= most) return number;
  Fail(name, StrCat("is ", number, " and must be from ", least, " to ", most));
  return least;
}

std::int64_t ObjectReader::Int(std::string_view name, std::int64_t least, std::int64_t most) {
  return IntOf(Any(name), name, least, most);
}

std::optional<std::int64_t> ObjectReader::OptionalInt(std::string_view name, std::int64_t least) {
  const Document* value = Find(name);
  if (value == nullptr) return std::nullopt;
  return IntOf(*value, name, least, kNoLimit);
}

bool ObjectReader::Bool(std::string_view name) {
  const Document& value = Any(name);
  if (!value.is_bool()) Fail(name, "is neither true nor false");
  return value.is_bool() && value.get_bool();
}

const Array& ObjectReader::List(std::string_view name) {
  static const Array kEmpty;
  const Document& value = Any(name);
  if (!value.is_array()) Fail(name, "is no list");
  return value.is_array() ? value.get_array() : kEmpty;
}

const Object& ObjectReader::Map(std::string_view name) {
  static const Object kEmpty;
  const Document& value = Any(name);
  if (!value.is_object()) Fail(name, "is no object");
  return value.is_object() ? value.get_object() : kEmpty;
}

graph::Dims ObjectReader::Dims(std::string_view name) {
  graph::Dims dims;
  std::int64_t count = 1;
  for (const Document& value : List(name)) {
    const std::int64_t size = IntOf(value, name, 0, graph::kMaxElements);
    if (dims.rank() == graph::kMaxRank || count > graph::kMaxElements / std::max<std::int64_t>(1, size)) {
      Fail(name, "has too many dims or elements");
      return {};
    }
    count *= std::max<std::int64_t>(1, size);
    dims.Append(size);
  }
  return dims;
}

void ObjectReader::Fail(std::string_view name, std::string_view why) {
  if (first_.ok()) first_ = absl::InvalidArgumentError(StrCat(name, " ", why));
}

void ObjectReader::Fail(std::string_view name, const absl::Status& status) {
  if (first_.ok() && !status.ok()) first_ = Annotate(status, name);
}

absl::Status ObjectReader::Finish() const {
  if (!first_.ok()) return first_;
  for (const auto& member : *object_) {
    if (!asked_.contains(Key(member))) {
      return absl::InvalidArgumentError(
          StrCat("it has the field \"", Shortened(Escaped(Key(member)), 64), "\", which is not known"));
    }
  }
  return absl::OkStatus();
}

}  // namespace trainyard::ps
