// The OpenAPI v2 document in protobuf: the messages of openapi.v2.Document that a document of ours fills,
// written by hand because they are few.
#include <bit>
#include <cstdint>
#include <string>

#include "apiserver/schema/openapi.h"

namespace trainyard::apiserver {
namespace {

class ProtoMessage {
 public:
  void Put(int field, std::string_view text) {
    if (text.empty()) return;
    PutBytes(field, text);
  }
  void Put(int field, const ProtoMessage& message) { PutBytes(field, message.bytes_); }
  void PutBool(int field, bool value) {
    if (value) PutInt(field, 1);
  }
  void PutInt(int field, std::int64_t value) {
    PutVarint(static_cast<std::uint64_t>(field) << 3U);
    PutVarint(static_cast<std::uint64_t>(value));
  }
  void PutDouble(int field, double value) {
    PutVarint(static_cast<std::uint64_t>(field) << 3U | 1U);
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8U) bytes_ += static_cast<char>(bits & 0xFFU);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  void PutBytes(int field, std::string_view bytes) {
    PutVarint(static_cast<std::uint64_t>(field) << 3U | 2U);
    PutVarint(bytes.size());
    bytes_ += bytes;
  }
  void PutVarint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

ProtoMessage Any(const Document& value) {
  ProtoMessage any;
  any.Put(2, PrintJson(value));  // yaml, which JSON is
  return any;
}

ProtoMessage Named(std::string_view name, const ProtoMessage& value) {
  ProtoMessage named;
  named.Put(1, name);
  named.Put(2, value);
  return named;
}

void PutExtensions(const Object& object, int field, ProtoMessage& out) {
  for (const auto& member : object) {
    if (Key(member).starts_with("x-")) out.Put(field, Named(Key(member), Any(member.value())));
  }
}

void PutTexts(const Document& list, int field, ProtoMessage& out) {
  if (const Array* array = list.if_array()) {
    for (const Document& item : *array) out.Put(field, Text(item));
  }
}

double Number(const Document& value) { return value.is_number() ? value.to_number<double>() : 0; }

ProtoMessage EncodeSchema(const Document& document);

ProtoMessage EncodeSchemas(const Object& object) {
  ProtoMessage out;
  for (const auto& member : object) out.Put(1, Named(Key(member), EncodeSchema(member.value())));
  return out;
}

struct SchemaField {
  std::string_view key;
  int field;
  enum class Form : std::uint8_t { kText, kNumber, kInteger, kBool } form;
};
constexpr SchemaField kSchemaFields[] = {
    {"$ref", 1, SchemaField::Form::kText},
    {"format", 2, SchemaField::Form::kText},
    {"title", 3, SchemaField::Form::kText},
    {"description", 4, SchemaField::Form::kText},
    {"multipleOf", 6, SchemaField::Form::kNumber},
    {"maximum", 7, SchemaField::Form::kNumber},
    {"exclusiveMaximum", 8, SchemaField::Form::kBool},
    {"minimum", 9, SchemaField::Form::kNumber},
    {"exclusiveMinimum", 10, SchemaField::Form::kBool},
    {"maxLength", 11, SchemaField::Form::kInteger},
    {"minLength", 12, SchemaField::Form::kInteger},
    {"pattern", 13, SchemaField::Form::kText},
    {"maxItems", 14, SchemaField::Form::kInteger},
    {"minItems", 15, SchemaField::Form::kInteger},
    {"uniqueItems", 16, SchemaField::Form::kBool},
    {"maxProperties", 17, SchemaField::Form::kInteger},
    {"minProperties", 18, SchemaField::Form::kInteger},
};

void PutScalars(const Object& object, ProtoMessage& out) {
  for (const SchemaField& each : kSchemaFields) {
    const Document* value = object.if_contains(each.key);
    if (value == nullptr) continue;
    switch (each.form) {
      case SchemaField::Form::kText:
        out.Put(each.field, Text(*value));
        break;
      case SchemaField::Form::kNumber:
        out.PutDouble(each.field, Number(*value));
        break;
      case SchemaField::Form::kInteger:
        out.PutInt(each.field, value->is_int64() ? value->get_int64() : 0);
        break;
      case SchemaField::Form::kBool:
        out.PutBool(each.field, value->is_bool() && value->get_bool());
        break;
    }
  }
}

ProtoMessage EncodeSchema(const Document& document) {
  ProtoMessage out;
  const Object* object = document.if_object();
  if (object == nullptr) return out;
  PutScalars(*object, out);
  if (const Document* required = object->if_contains("required")) PutTexts(*required, 19, out);
  if (const Array* values = ArrayAt(document, {"enum"})) {
    for (const Document& value : *values) out.Put(20, Any(value));
  }
  if (const Document* additional = object->if_contains("additionalProperties")) {
    ProtoMessage item;
    if (additional->is_bool()) {
      item.PutInt(2, additional->get_bool() ? 1 : 0);
    } else {
      item.Put(1, EncodeSchema(*additional));
    }
    out.Put(21, item);
  }
  if (const Document* type = object->if_contains("type")) {
    ProtoMessage item;
    item.Put(1, Text(*type));
    out.Put(22, item);
  }
  if (const Document* items = object->if_contains("items")) {
    ProtoMessage item;
    item.Put(1, EncodeSchema(*items));
    out.Put(23, item);
  }
  if (const Object* properties = ObjectAt(document, {"properties"})) out.Put(25, EncodeSchemas(*properties));
  PutExtensions(*object, 31, out);
  return out;
}

ProtoMessage EncodeParameter(const Document& parameter) {
  const std::string_view in = StringAt(parameter, {"in"});
  ProtoMessage inner;
  ProtoMessage outer;
  if (in == "body") {
    inner.Put(2, StringAt(parameter, {"name"}));
    inner.Put(3, in);
    inner.PutBool(4, BoolAt(parameter, {"required"}));
    if (const Document* schema = Find(parameter, {"schema"})) inner.Put(5, EncodeSchema(*schema));
    outer.Put(1, inner);
  } else {
    const bool query = in == "query";
    inner.PutBool(1, BoolAt(parameter, {"required"}));
    inner.Put(2, in);
    inner.Put(3, StringAt(parameter, {"description"}));
    inner.Put(4, StringAt(parameter, {"name"}));
    inner.Put(query ? 6 : 5, StringAt(parameter, {"type"}));
    inner.PutBool(query ? 20 : 19, BoolAt(parameter, {"uniqueItems"}));
    ProtoMessage non_body;
    non_body.Put(query ? 3 : 4, inner);
    outer.Put(2, non_body);
  }
  ProtoMessage item;
  item.Put(1, outer);
  return item;
}

void PutParameters(const Document& parent, int field, ProtoMessage& out) {
  if (const Array* parameters = ArrayAt(parent, {"parameters"})) {
    for (const Document& parameter : *parameters) out.Put(field, EncodeParameter(parameter));
  }
}

ProtoMessage EncodeResponses(const Object& responses) {
  ProtoMessage out;
  for (const auto& member : responses) {
    ProtoMessage response;
    response.Put(1, StringAt(member.value(), {"description"}));
    if (const Document* schema = Find(member.value(), {"schema"})) {
      ProtoMessage item;
      item.Put(1, EncodeSchema(*schema));
      response.Put(2, item);
    }
    ProtoMessage value;
    value.Put(1, response);
    out.Put(1, Named(Key(member), value));
  }
  return out;
}

ProtoMessage EncodeOperation(const Document& operation) {
  ProtoMessage out;
  out.Put(3, StringAt(operation, {"description"}));
  out.Put(5, StringAt(operation, {"operationId"}));
  if (const Document* list = Find(operation, {"produces"})) PutTexts(*list, 6, out);
  if (const Document* list = Find(operation, {"consumes"})) PutTexts(*list, 7, out);
  PutParameters(operation, 8, out);
  if (const Object* responses = ObjectAt(operation, {"responses"})) out.Put(9, EncodeResponses(*responses));
  if (const Document* list = Find(operation, {"schemes"})) PutTexts(*list, 10, out);
  if (const Object* object = operation.if_object()) PutExtensions(*object, 13, out);
  return out;
}

ProtoMessage EncodePath(const Document& path) {
  constexpr std::pair<std::string_view, int> kMethods[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  ProtoMessage out;
  for (const auto& [method, field] : kMethods) {
    if (const Document* operation = Find(path, {method})) out.Put(field, EncodeOperation(*operation));
  }
  PutParameters(path, 9, out);
  return out;
}

}  // namespace

std::string EncodeOpenApiV2(const Document& document) {
  ProtoMessage out;
  out.Put(1, StringAt(document, {"swagger"}));
  ProtoMessage info;
  info.Put(1, StringAt(document, {"info", "title"}));
  info.Put(2, StringAt(document, {"info", "version"}));
  out.Put(2, info);
  ProtoMessage paths;
  if (const Object* object = ObjectAt(document, {"paths"})) {
    for (const auto& member : *object) paths.Put(2, Named(Key(member), EncodePath(member.value())));
  }
  out.Put(8, paths);
  if (const Object* definitions = ObjectAt(document, {"definitions"}))
    out.Put(9, EncodeSchemas(*definitions));
  return std::move(out).Take();
}

}  // namespace trainyard::apiserver
