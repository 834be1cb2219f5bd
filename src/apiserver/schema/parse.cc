// Reading the schema of a CustomResourceDefinition.
#include <array>
#include <cmath>

#include "apiserver/schema/field_error.h"
#include "apiserver/schema/schema.h"
#include "apiserver/schema/structural.h"
#include "base/status.h"
#include "base/text.h"
#include "re2/re2.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kListType = "x-kubernetes-list-type";
constexpr std::string_view kListKeys = "x-kubernetes-list-map-keys";
constexpr std::string_view kMapType = "x-kubernetes-map-type";
constexpr std::string_view kRulesKey = "x-kubernetes-validations";

absl::Status WrongSchema(const FieldPath& path, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(path.Str(), ": ", what));
}

bool IsTooDeep(const Document& value, std::size_t depth) {
  if (depth == 0) return true;
  if (const auto* array = value.if_array()) {
    for (const Document& item : *array) {
      if (IsTooDeep(item, depth - 1)) return true;
    }
  } else if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (IsTooDeep(member.value(), depth - 1)) return true;
    }
  }
  return false;
}

// One node of the schema, read key by key. A value of the wrong type is an error with the key's path.
class Node {
 public:
  Node(const Object& object, const FieldPath& path) : object_(object), path_(path) {}

  const Document* Find(std::string_view key) const {
    const Document* value = object_.if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  absl::Status Read(std::string_view key, std::string& out) const {
    return ReadAs(key, "a text", [&](const Document& value) {
      if (!value.is_string()) return false;
      out = Text(value);
      return true;
    });
  }
  absl::Status Read(std::string_view key, bool& out) const {
    return ReadAs(key, "true or false", [&](const Document& value) {
      if (!value.is_bool()) return false;
      out = value.get_bool();
      return true;
    });
  }
  absl::Status Read(std::string_view key, std::optional<double>& out) const {
    return ReadAs(key, "a number", [&](const Document& value) {
      if (!value.is_number()) return false;
      out = value.to_number<double>();
      return true;
    });
  }
  absl::Status Read(std::string_view key, std::optional<std::int64_t>& out) const {
    return ReadAs(key, "a whole number", [&](const Document& value) {
      if (value.is_double() && std::abs(value.get_double()) < 9e15 &&
          std::trunc(value.get_double()) == value.get_double()) {
        out = static_cast<std::int64_t>(value.get_double());
        return true;
      }
      if (!value.is_int64()) return false;
      out = value.get_int64();
      return true;
    });
  }
  absl::Status Read(std::string_view key, std::vector<std::string>& out) const {
    return ReadAs(key, "a list of texts", [&](const Document& value) {
      if (!value.is_array()) return false;
      for (const Document& item : value.get_array()) {
        if (!item.is_string()) return false;
        out.emplace_back(Text(item));
      }
      return true;
    });
  }
  absl::Status Read(std::string_view key, Array& out) const {
    return ReadAs(key, "a list", [&](const Document& value) {
      if (!value.is_array()) return false;
      out = value.get_array();
      return true;
    });
  }

 private:
  template <typename Take>
  absl::Status ReadAs(std::string_view key, std::string_view what, const Take& take) const {
    const Document* value = Find(key);
    if (value == nullptr || take(*value)) return absl::OkStatus();
    return WrongSchema(path_.Child(key), StrCat("must be ", what));
  }

  const Object& object_;
  const FieldPath& path_;
};

class Parser {
 public:
  explicit Parser(std::vector<std::string>* warnings) : warnings_(warnings) {}

  absl::StatusOr<SchemaPtr> Parse(const Document& document, const FieldPath& path, SchemaPlace place,
                                  int depth);

 private:
  absl::Status ReadType(const Node& node, const FieldPath& path, Schema& schema) const;
  absl::Status ReadBounds(const Node& node, Schema& schema) const;
  absl::Status ReadPattern(const Node& node, const FieldPath& path, Schema& schema) const;
  absl::Status ReadLists(const Node& node, const FieldPath& path, Schema& schema) const;
  absl::Status ReadChildren(const Node& node, const FieldPath& path, SchemaPlace place, Schema& schema,
                            int depth);
  absl::Status ReadAlternatives(const Node& node, const FieldPath& path, Schema& schema, int depth);
  absl::Status ReadValues(const Node& node, const FieldPath& path, Schema& schema);

  std::vector<std::string>* warnings_;
};

absl::Status Parser::ReadType(const Node& node, const FieldPath& path, Schema& schema) const {
  constexpr std::array<std::pair<std::string_view, SchemaType>, 6> kTypes = {{
      {"object", SchemaType::kObject},
      {"array", SchemaType::kArray},
      {"string", SchemaType::kString},
      {"integer", SchemaType::kInteger},
      {"number", SchemaType::kNumber},
      {"boolean", SchemaType::kBoolean},
  }};
  std::string type;
  TY_RETURN_IF_ERROR(node.Read("type", type));
  if (!type.empty()) {
    const auto* found = std::ranges::find(kTypes, type, &std::pair<std::string_view, SchemaType>::first);
    if (found == kTypes.end()) {
      return WrongSchema(path.Child("type"),
                         StrCat("unsupported type \"", Escaped(type),
                                "\": it must be array, boolean, integer, number, object or string",
                                type == "null" ? "; use nullable: true for what may be null" : ""));
    }
    schema.type = found->second;
  }
  bool int_or_string = false;
  TY_RETURN_IF_ERROR(node.Read("x-kubernetes-int-or-string", int_or_string));
  if (int_or_string) schema.type = SchemaType::kIntOrString;
  TY_RETURN_IF_ERROR(node.Read("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown));
  if (!schema.preserve_unknown && node.Find("x-kubernetes-preserve-unknown-fields") != nullptr)
    return WrongSchema(path.Child("x-kubernetes-preserve-unknown-fields"), "must be true or left out");
  TY_RETURN_IF_ERROR(node.Read("x-kubernetes-embedded-resource", schema.embedded_resource));
  TY_RETURN_IF_ERROR(node.Read("nullable", schema.nullable));
  TY_RETURN_IF_ERROR(node.Read("description", schema.description));
  return node.Read("format", schema.format);
}

absl::Status Parser::ReadBounds(const Node& node, Schema& schema) const {
  TY_RETURN_IF_ERROR(node.Read("minimum", schema.minimum));
  TY_RETURN_IF_ERROR(node.Read("maximum", schema.maximum));
  TY_RETURN_IF_ERROR(node.Read("exclusiveMinimum", schema.exclusive_minimum));
  TY_RETURN_IF_ERROR(node.Read("exclusiveMaximum", schema.exclusive_maximum));
  TY_RETURN_IF_ERROR(node.Read("multipleOf", schema.multiple_of));
  TY_RETURN_IF_ERROR(node.Read("minLength", schema.min_length));
  TY_RETURN_IF_ERROR(node.Read("maxLength", schema.max_length));
  TY_RETURN_IF_ERROR(node.Read("minItems", schema.min_items));
  TY_RETURN_IF_ERROR(node.Read("maxItems", schema.max_items));
  TY_RETURN_IF_ERROR(node.Read("minProperties", schema.min_properties));
  TY_RETURN_IF_ERROR(node.Read("maxProperties", schema.max_properties));
  return node.Read("required", schema.required);
}

absl::Status Parser::ReadPattern(const Node& node, const FieldPath& path, Schema& schema) const {
  TY_RETURN_IF_ERROR(node.Read("pattern", schema.pattern));
  if (schema.pattern.empty()) return absl::OkStatus();
  auto regex = CompilePattern(schema.pattern);
  if (!regex.ok()) return WrongSchema(path.Child("pattern"), Message(regex.status()));
  schema.regex = *std::move(regex);
  return absl::OkStatus();
}

absl::Status Parser::ReadLists(const Node& node, const FieldPath& path, Schema& schema) const {
  std::string list_type;
  std::string map_type;
  TY_RETURN_IF_ERROR(node.Read(kListType, list_type));
  TY_RETURN_IF_ERROR(node.Read(kListKeys, schema.list_keys));
  TY_RETURN_IF_ERROR(node.Read(kMapType, map_type));
  if (list_type == "set") {
    schema.list_type = ListType::kSet;
  } else if (list_type == "map") {
    schema.list_type = ListType::kMap;
  } else if (!list_type.empty() && list_type != "atomic") {
    return WrongSchema(path.Child(kListType), "must be atomic, set or map");
  }
  schema.unique_keys = schema.list_type != ListType::kAtomic;
  if (!list_type.empty() && schema.type != SchemaType::kArray)
    return WrongSchema(path.Child("type"), StrCat("must be array where ", kListType, " is given"));
  if (!map_type.empty() && map_type != "atomic" && map_type != "granular")
    return WrongSchema(path.Child(kMapType), "must be atomic or granular");
  if (!map_type.empty() && schema.type != SchemaType::kObject)
    return WrongSchema(path.Child("type"), StrCat("must be object where ", kMapType, " is given"));
  schema.atomic_map = map_type == "atomic";
  if (schema.list_type == ListType::kMap && schema.list_keys.empty())
    return WrongSchema(path.Child(kListKeys), StrCat("is required where ", kListType, " is map"));
  if (schema.list_type != ListType::kMap && !schema.list_keys.empty())
    return WrongSchema(path.Child(kListType), StrCat("must be map where ", kListKeys, " is given"));
  return absl::OkStatus();
}

absl::Status Parser::ReadChildren(const Node& node, const FieldPath& path, SchemaPlace place, Schema& schema,
                                  int depth) {
  const bool nested = place == SchemaPlace::kAlternative;
  if (const Document* items = node.Find("items")) {
    TY_ASSIGN_OR_RETURN(schema.items,
                        Parse(*items, path.Child("items"), nested ? place : SchemaPlace::kItems, depth + 1));
  }
  if (const Document* properties = node.Find("properties")) {
    const FieldPath below = path.Child("properties");
    if (!properties->is_object()) return WrongSchema(below, "must be an object of schemas");
    for (const auto& member : properties->get_object()) {
      TY_ASSIGN_OR_RETURN(
          schema.properties[std::string(Key(member))],
          Parse(member.value(), below.Key(Key(member)), nested ? place : SchemaPlace::kField, depth + 1));
    }
  }
  if (const Document* additional = node.Find("additionalProperties")) {
    const FieldPath below = path.Child("additionalProperties");
    if (additional->is_bool()) {
      // False: fields are kept, so that validation can refuse them.
      auto any = std::make_shared<Schema>();
      if (!additional->get_bool()) any->negated = std::make_shared<Schema>();
      schema.additional = std::move(any);
    } else {
      TY_ASSIGN_OR_RETURN(schema.additional, Parse(*additional, below, SchemaPlace::kField, depth + 1));
    }
    const bool allows_all = additional->is_bool() && additional->get_bool();
    if (!schema.properties.empty() && !allows_all)
      return WrongSchema(below, "must not be used together with properties");
    if (!schema.properties.empty()) schema.additional = nullptr;
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadAlternatives(const Node& node, const FieldPath& path, Schema& schema, int depth) {
  const auto read = [&](std::string_view key, std::vector<SchemaPtr>& out) -> absl::Status {
    const Document* list = node.Find(key);
    if (list == nullptr) return absl::OkStatus();
    const FieldPath below = path.Child(key);
    if (!list->is_array()) return WrongSchema(below, "must be a list of schemas");
    for (const Document& item : list->get_array()) {
      TY_ASSIGN_OR_RETURN(out.emplace_back(),
                          Parse(item, below.Index(out.size() - 1), SchemaPlace::kAlternative, depth + 1));
    }
    return absl::OkStatus();
  };
  TY_RETURN_IF_ERROR(read("allOf", schema.all_of));
  TY_RETURN_IF_ERROR(read("anyOf", schema.any_of));
  TY_RETURN_IF_ERROR(read("oneOf", schema.one_of));
  if (const Document* negated = node.Find("not")) {
    TY_ASSIGN_OR_RETURN(schema.negated,
                        Parse(*negated, path.Child("not"), SchemaPlace::kAlternative, depth + 1));
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadValues(const Node& node, const FieldPath& path, Schema& schema) {
  for (const std::string_view key : {"default", "enum"}) {
    const Document* value = node.Find(key);
    if (value != nullptr && IsTooDeep(*value, kMaxDocumentDepth))
      return WrongSchema(path.Child(key), "is nested too deep");
  }
  Array values;
  TY_RETURN_IF_ERROR(node.Read("enum", values));
  schema.one_of_values.assign(values.begin(), values.end());
  if (const Document* value = node.Find("default")) schema.default_value = *value;
  TY_RETURN_IF_ERROR(node.Read(kRulesKey, schema.rules));
  if (!schema.rules.empty() && warnings_ != nullptr) {
    warnings_->push_back(StrCat(path.Child(kRulesKey).Str(),
                                ": this server keeps CEL rules but does not evaluate them; ",
                                "a value that breaks one is accepted"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SchemaPtr> Parser::Parse(const Document& document, const FieldPath& path, SchemaPlace place,
                                        int depth) {
  if (depth > kMaxSchemaDepth) {
    return absl::InvalidArgumentError(
        StrCat("the schema is nested more than ", kMaxSchemaDepth,
               " levels deep; use x-kubernetes-preserve-unknown-fields for what "
               "has no bound"));
  }
  if (!document.is_object()) return WrongSchema(path, "must be a schema, which is an object");
  const Node node(document.get_object(), path);
  for (const std::string_view key :
       {"$ref", "id", "$schema", "patternProperties", "dependencies", "additionalItems", "definitions"}) {
    if (node.Find(key) != nullptr) return WrongSchema(path.Child(key), "is not supported");
  }
  auto schema = std::make_shared<Schema>();
  TY_RETURN_IF_ERROR(ReadType(node, path, *schema));
  TY_RETURN_IF_ERROR(ReadBounds(node, *schema));
  TY_RETURN_IF_ERROR(ReadPattern(node, path, *schema));
  TY_RETURN_IF_ERROR(ReadLists(node, path, *schema));
  TY_RETURN_IF_ERROR(ReadChildren(node, path, place, *schema, depth));
  TY_RETURN_IF_ERROR(ReadAlternatives(node, path, *schema, depth));
  TY_RETURN_IF_ERROR(ReadValues(node, path, *schema));
  bool unique_items = false;
  TY_RETURN_IF_ERROR(node.Read("uniqueItems", unique_items));
  if (unique_items)
    return WrongSchema(path.Child("uniqueItems"), StrCat("must not be true; use ", kListType, ": set"));
  TY_RETURN_IF_ERROR(CheckStructural(*schema, path, place));
  if (place == SchemaPlace::kRoot || schema->embedded_resource) AddObjectFields(*schema);
  TY_RETURN_IF_ERROR(CheckDefault(*schema, path));
  return schema;
}

}  // namespace

absl::StatusOr<SchemaPtr> ParseOpenApiSchema(const Document& document, std::vector<std::string>* warnings) {
  const FieldPath root;
  const FieldPath path = root.Child("openAPIV3Schema");
  return Parser(warnings).Parse(document, path, SchemaPlace::kRoot, 0);
}

}  // namespace trainyard::apiserver
