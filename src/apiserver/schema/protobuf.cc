#include "apiserver/schema/protobuf.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>

#include "absl/time/time.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kMaxDepth = 64;

absl::Status Broken(std::string_view what) {
  return absl::InvalidArgumentError(StrCat("the body is no protobuf of Kubernetes: ", what));
}

// One field as it stands on the wire.
struct Field {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::uint64_t value = 0;  // of one that is not
  std::string_view bytes;
};

// Goes through the fields of a message.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // Nothing at the end.
  absl::StatusOr<std::optional<Field>> Next() {
    if (rest_.empty()) return std::optional<Field>();
    TY_ASSIGN_OR_RETURN(const std::uint64_t tag, Varint());
    Field field{.number = static_cast<std::uint32_t>(tag >> 3U)};
    if (tag >> 3U == 0 || tag >> 3U > UINT32_MAX) return Broken("a field has an impossible number");
    switch (tag & 7U) {
      case 0: {
        TY_ASSIGN_OR_RETURN(field.value, Varint());
        return std::optional(field);
      }
      case 1:
        return Fixed(field, 8);
      case 2: {
        TY_ASSIGN_OR_RETURN(const std::uint64_t size, Varint());
        if (size > rest_.size()) return Broken("a field is longer than what holds it");
        field.is_bytes = true;
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return std::optional(field);
      }
      case 5:
        return Fixed(field, 4);
      default:
        return Broken("a field is of an unknown wire type");
    }
  }

 private:
  absl::StatusOr<std::uint64_t> Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return Broken("it ends within a number");
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80U) return value;
    }
    return Broken("a number is too long");
  }

  absl::StatusOr<std::optional<Field>> Fixed(Field field, std::size_t size) {
    if (rest_.size() < size) return Broken("it ends within a number");
    for (std::size_t i = size; i-- > 0;) {
      field.value = field.value << 8U | static_cast<std::uint8_t>(rest_[i]);
    }
    rest_.remove_prefix(size);
    return std::optional(field);
  }

  std::string_view rest_;
};

// The fields 1, 2 and 3 of a message that has few.
struct Small {
  std::uint64_t numbers[4] = {};
  std::string_view bytes[4] = {};
};
absl::StatusOr<Small> ReadSmall(std::string_view message) {
  Small small;
  Fields fields(message);
  while (true) {
    TY_ASSIGN_OR_RETURN(const auto field, fields.Next());
    if (!field) return small;
    if (field->number > 3) continue;
    small.numbers[field->number] = field->value;
    small.bytes[field->number] = field->bytes;
  }
}

absl::StatusOr<Document> TextValue(std::string_view bytes) {
  if (!IsUtf8(bytes)) return Broken("a text is not UTF-8");
  return Document(bytes);
}

class Decoder {
 public:
  absl::StatusOr<Object> Message(const Schema& schema, std::string_view bytes, int depth) {
    Object object;
    TY_RETURN_IF_ERROR(Part(schema, bytes, {}, depth, object));
    return object;
  }

 private:
  // `within`: the message is one that JSON does not show; its fields stand in the object itself.
  absl::Status Part(const Schema& schema, std::string_view bytes, const WirePath& within, int depth,
                    Object& object) {
    if (depth > kMaxDepth) return Broken("it nests too deep");
    Fields fields(bytes);
    while (true) {
      TY_ASSIGN_OR_RETURN(const auto field, fields.Next());
      if (!field) return absl::OkStatus();
      WirePath path = within;
      path.push_back(field->number);
      const auto at = std::ranges::find_if(schema.wire, [&path](const WireField& wire) {
        return wire.path.size() >= path.size() &&
               std::ranges::equal(path, wire.path | std::views::take(path.size()));
      });
      if (at == schema.wire.end()) continue;  // of a later version: dropped, as any unknown field
      if (at->path.size() > path.size()) {
        if (!field->is_bytes) return Broken("a number stands where a message belongs");
        TY_RETURN_IF_ERROR(Part(schema, field->bytes, path, depth + 1, object));
        continue;
      }
      TY_RETURN_IF_ERROR(Property(*schema.properties.find(at->property)->second, *at, *field, depth, object));
    }
  }

  absl::Status Property(const Schema& schema, const WireField& wire, const Field& field, int depth,
                        Object& object) {
    const std::string& name = wire.property;
    if (schema.type == SchemaType::kArray) {
      TY_ASSIGN_OR_RETURN(Document item, Value(*schema.items, name, field, depth));
      Document& list = object[name];
      if (!list.is_array()) list = Array();
      list.get_array().push_back(std::move(item));
      return absl::OkStatus();
    }
    if (schema.type == SchemaType::kObject && schema.additional != nullptr) {
      TY_ASSIGN_OR_RETURN(auto entry, MapEntry(*schema.additional, name, field, depth));
      Document& map = object[name];
      if (!map.is_object()) map = Object();
      map.get_object()[entry.first] = std::move(entry.second);
      return absl::OkStatus();
    }
    TY_ASSIGN_OR_RETURN(Document value, Value(schema, name, field, depth));
    // Go writes a field that it cannot leave out with its zero; in JSON the same field is not there.
    if (wire.zero_counts || !IsZero(value)) object[name] = std::move(value);
    return absl::OkStatus();
  }

  static bool IsZero(const Document& value) {
    return value.is_null() || (value.is_string() && value.get_string().empty()) ||
           (value.is_int64() && value.get_int64() == 0) || (value.is_bool() && !value.get_bool()) ||
           (value.is_double() && value.get_double() == 0);
  }

  absl::StatusOr<std::pair<std::string, Document>> MapEntry(const Schema& schema, std::string_view name,
                                                            const Field& field, int depth) {
    if (!field.is_bytes) return Broken(StrCat("'", name, "' is a number, not a map"));
    std::pair<std::string, Document> entry;
    std::optional<Field> value;
    Fields fields(field.bytes);
    while (true) {
      TY_ASSIGN_OR_RETURN(const auto part, fields.Next());
      if (!part) break;
      if (part->number == 1) {
        TY_ASSIGN_OR_RETURN(const Document key, TextValue(part->bytes));
        entry.first = Text(key);
      }
      if (part->number == 2) value = *part;
    }
    // What is left out on the wire is empty.
    const Field empty{.number = 2, .is_bytes = true};
    TY_ASSIGN_OR_RETURN(entry.second, Value(schema, name, value.value_or(empty), depth));
    return entry;
  }

  absl::StatusOr<Document> Value(const Schema& schema, std::string_view name, const Field& field, int depth) {
    const bool wants_number = schema.type == SchemaType::kBoolean || schema.type == SchemaType::kInteger ||
                              schema.type == SchemaType::kNumber;
    if (wants_number == field.is_bytes) return Broken(StrCat("'", name, "' is not what it has to be"));
    switch (schema.type) {
      case SchemaType::kBoolean:
        return Document(field.value != 0);
      case SchemaType::kInteger: {
        const auto value = static_cast<std::int64_t>(field.value);
        return Document(schema.format == "int32" ? static_cast<std::int32_t>(value) : value);
      }
      case SchemaType::kNumber:
        return Document(std::bit_cast<double>(field.value));
      default:
        break;
    }
    if (schema.type == SchemaType::kString) return String(schema, field.bytes);
    if (schema.type == SchemaType::kIntOrString) {
      TY_ASSIGN_OR_RETURN(const Small small, ReadSmall(field.bytes));
      if (small.numbers[1] != 0) return TextValue(small.bytes[3]);
      return Document(std::int64_t{static_cast<std::int32_t>(small.numbers[2])});
    }
    if (schema.type == SchemaType::kObject && !schema.wire.empty()) {
      TY_ASSIGN_OR_RETURN(Object object, Message(schema, field.bytes, depth + 1));
      return Document(std::move(object));
    }
    return Raw(name, field.bytes);
  }

  static absl::StatusOr<Document> String(const Schema& schema, std::string_view bytes) {
    if (schema.format == "byte") return Document(EncodeBase64(bytes));
    if (schema.format == "quantity") {
      TY_ASSIGN_OR_RETURN(const Small small, ReadSmall(bytes));
      return TextValue(small.bytes[1]);
    }
    if (schema.format == "date-time") {
      TY_ASSIGN_OR_RETURN(const Small small, ReadSmall(bytes));
      const auto seconds = static_cast<std::int64_t>(small.numbers[1]);
      const auto nanos = static_cast<std::int32_t>(small.numbers[2]);
      if (bytes.empty()) return Document(nullptr);
      const absl::Time time = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
      return Document(schema.name.ends_with("MicroTime") ? PrintMicroTime(time) : PrintTime(time));
    }
    return TextValue(bytes);
  }

  // Anything goes here, so it is JSON within a message.
  static absl::StatusOr<Document> Raw(std::string_view name, std::string_view bytes) {
    TY_ASSIGN_OR_RETURN(const Small small, ReadSmall(bytes));
    if (small.bytes[1].empty()) return Document(Object());
    auto value = ParseJson(small.bytes[1]);
    if (value.ok()) return value;
    return absl::UnimplementedError(
        StrCat("'", name, "' cannot be read from protobuf here; send it as JSON"));
  }
};

}  // namespace

absl::StatusOr<Document> DecodeProtobuf(std::string_view body, const KindTable& kinds) {
  if (!body.starts_with(kMagic)) return Broken("it does not begin with k8s\\0");
  body.remove_prefix(kMagic.size());
  TY_ASSIGN_OR_RETURN(const Small envelope, ReadSmall(body));
  TY_ASSIGN_OR_RETURN(const Small type, ReadSmall(envelope.bytes[1]));
  const std::string_view api_version = type.bytes[1];
  const std::string_view name = type.bytes[2];
  if (!IsUtf8(api_version) || !IsUtf8(name)) return Broken("its kind is not UTF-8");
  const std::size_t slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  const KindInfo* kind = kinds.Find(core ? "" : api_version.substr(0, slash),
                                    core ? api_version : api_version.substr(slash + 1), name);
  // Every group has it, and it is the same everywhere.
  if (name == "DeleteOptions") kind = kinds.Find("", "v1", name);
  if (kind == nullptr || kind->schema->wire.empty()) {
    return absl::UnimplementedError(
        StrCat("objects of kind ", api_version, " ", name, " cannot be read from protobuf here; send JSON"));
  }
  TY_ASSIGN_OR_RETURN(Object object, Decoder().Message(*kind->schema, envelope.bytes[2], 0));
  object["apiVersion"] = api_version;
  object["kind"] = name;
  return Document(std::move(object));
}

}  // namespace trainyard::apiserver
