#include "apiserver/schema/structural.h"

#include <algorithm>

#include "apiserver/schema/kind_table.h"
#include "base/status.h"
#include "base/text.h"
#include "re2/re2.h"

namespace trainyard::apiserver {
namespace {

absl::Status NotStructural(const FieldPath& path, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(path.Str(), ": ", what));
}

// anyOf: [{type: integer}, {type: string}], which generators write beside x-kubernetes-int-or-string.
bool IsIntOrString(const std::vector<SchemaPtr>& any_of) {
  return any_of.size() == 2 && any_of[0]->type == SchemaType::kInteger &&
         any_of[1]->type == SchemaType::kString;
}

template <typename Visit>
absl::Status ForEachAlternative(const Schema& schema, const FieldPath& path, const Visit& visit) {
  const auto walk = [&](const std::vector<SchemaPtr>& list, std::string_view key) -> absl::Status {
    const FieldPath below = path.Child(key);
    for (std::size_t i = 0; i < list.size(); ++i) TY_RETURN_IF_ERROR(visit(*list[i], below.Index(i)));
    return absl::OkStatus();
  };
  TY_RETURN_IF_ERROR(walk(schema.all_of, "allOf"));
  TY_RETURN_IF_ERROR(walk(schema.any_of, "anyOf"));
  TY_RETURN_IF_ERROR(walk(schema.one_of, "oneOf"));
  return schema.negated ? visit(*schema.negated, path.Child("not")) : absl::OkStatus();
}

absl::Status CheckAlternatives(const Schema& schema, const Schema* around, const FieldPath& path);

// An alternative, or a field of one: it says nothing of types. If `around` is given, every field that it
// speaks of is also a field of that; the original asks this of alternatives at the root only.
absl::Status CheckAlternative(const Schema& schema, const Schema* around, const FieldPath& path,
                              bool may_have_type) {
  const auto forbid = [&](bool given, std::string_view key) {
    return given
               ? NotStructural(path.Child(key),
                               "must not be given inside allOf, anyOf, oneOf or not; say it outside of them")
               : absl::OkStatus();
  };
  TY_RETURN_IF_ERROR(forbid(schema.type == SchemaType::kIntOrString, "x-kubernetes-int-or-string"));
  TY_RETURN_IF_ERROR(forbid(schema.type != SchemaType::kAny && !may_have_type, "type"));
  TY_RETURN_IF_ERROR(forbid(schema.additional != nullptr, "additionalProperties"));
  TY_RETURN_IF_ERROR(forbid(schema.default_value.has_value(), "default"));
  TY_RETURN_IF_ERROR(forbid(!schema.description.empty(), "description"));
  TY_RETURN_IF_ERROR(forbid(schema.nullable, "nullable"));
  TY_RETURN_IF_ERROR(forbid(schema.preserve_unknown, "x-kubernetes-preserve-unknown-fields"));
  TY_RETURN_IF_ERROR(forbid(schema.embedded_resource, "x-kubernetes-embedded-resource"));
  TY_RETURN_IF_ERROR(forbid(!schema.rules.empty(), "x-kubernetes-validations"));
  const FieldPath properties = path.Child("properties");
  for (const auto& [key, below] : schema.properties) {
    if (key == "metadata")
      return NotStructural(properties.Key(key), "must not be given inside allOf, anyOf, oneOf or not");
    const auto found = around == nullptr ? schema.properties.end() : around->properties.find(key);
    if (around != nullptr && found == around->properties.end())
      return NotStructural(properties.Key(key),
                           "speaks of a field that must also stand outside of the alternatives");
    const Schema* outside = around == nullptr ? nullptr : found->second.get();
    TY_RETURN_IF_ERROR(CheckAlternative(*below, outside, properties.Key(key), false));
  }
  if (schema.items) {
    if (around != nullptr && !around->items)
      return NotStructural(path.Child("items"), "must also stand outside of the alternatives");
    const Schema* outside = around == nullptr ? nullptr : around->items.get();
    TY_RETURN_IF_ERROR(CheckAlternative(*schema.items, outside, path.Child("items"), false));
  }
  return CheckAlternatives(schema, around, path);
}

absl::Status CheckAlternatives(const Schema& schema, const Schema* around, const FieldPath& path) {
  const bool types = IsIntOrString(schema.any_of);
  return ForEachAlternative(schema, path, [&](const Schema& each, const FieldPath& below) {
    const bool may_have_type = types && (&each == schema.any_of[0].get() || &each == schema.any_of[1].get());
    return CheckAlternative(each, around, below, may_have_type);
  });
}

absl::Status CheckType(const Schema& schema, const FieldPath& path, SchemaPlace place) {
  const bool object = schema.type == SchemaType::kObject;
  if (place == SchemaPlace::kRoot && !object)
    return NotStructural(path.Child("type"), "must be object at the root");
  if (schema.embedded_resource && !object)
    return NotStructural(path.Child("type"), "must be object where x-kubernetes-embedded-resource is true");
  if (schema.type == SchemaType::kAny && !schema.preserve_unknown) {
    return NotStructural(path.Child("type"),
                         place == SchemaPlace::kItems
                             ? "is required for the items of a list"
                             : "is required for a field; or give "
                               "x-kubernetes-preserve-unknown-fields: true for any value");
  }
  if (schema.type == SchemaType::kArray && !schema.items)
    return NotStructural(path.Child("items"), "is required where type is array");
  if (schema.type == SchemaType::kIntOrString && (schema.preserve_unknown || schema.embedded_resource)) {
    return NotStructural(
        path.Child("x-kubernetes-int-or-string"),
        "goes with neither x-kubernetes-preserve-unknown-fields nor x-kubernetes-embedded-resource");
  }
  return absl::OkStatus();
}

absl::Status CheckResource(const Schema& schema, const FieldPath& path, SchemaPlace place) {
  if (schema.additional)
    return NotStructural(path.Child("additionalProperties"), "must not be used at the root of a resource");
  const FieldPath properties = path.Child("properties");
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const auto field = schema.properties.find(key);
    if (field != schema.properties.end() && field->second->type != SchemaType::kString)
      return NotStructural(properties.Key(key), "must be of type string");
  }
  const auto metadata = schema.properties.find("metadata");
  if (metadata != schema.properties.end()) {
    const FieldPath below = properties.Key("metadata");
    if (metadata->second->type != SchemaType::kObject) return NotStructural(below, "must be of type object");
    for (const auto& [key, ignored] : metadata->second->properties) {
      if (place == SchemaPlace::kRoot && key != "name" && key != "generateName")
        return NotStructural(
            below, "must say nothing but name and generateName; the rest is the same for all kinds");
    }
  }
  if (schema.embedded_resource && !schema.preserve_unknown && schema.properties.empty())
    return NotStructural(
        properties,
        "is required where x-kubernetes-embedded-resource is true, unless unknown fields are kept");
  return absl::OkStatus();
}

absl::Status CheckKeys(const Schema& schema, const FieldPath& path) {
  if (schema.list_type == ListType::kAtomic) return absl::OkStatus();
  const FieldPath items = path.Child("items");
  if (schema.items->nullable)
    return NotStructural(items.Child("nullable"), "must not be true in a list that is a set or map");
  if (schema.list_type == ListType::kSet) {
    if (schema.items->type == SchemaType::kObject && !schema.items->atomic_map)
      return NotStructural(items.Child("x-kubernetes-map-type"), "must be atomic for the items of a set");
    return absl::OkStatus();
  }
  if (schema.items->type != SchemaType::kObject)
    return NotStructural(items.Child("type"), "must be object where x-kubernetes-list-type is map");
  const FieldPath properties = items.Child("properties");
  for (const std::string& key : schema.list_keys) {
    const auto field = schema.items->properties.find(key);
    if (field == schema.items->properties.end())
      return NotStructural(path.Child("x-kubernetes-list-map-keys"),
                           StrCat("\"", key, "\" is no property of the items"));
    if (std::ranges::count(schema.list_keys, key) > 1)
      return NotStructural(path.Child("x-kubernetes-list-map-keys"),
                           StrCat("\"", key, "\" stands there twice"));
    const Schema& below = *field->second;
    if (below.type == SchemaType::kArray || below.type == SchemaType::kObject)
      return NotStructural(properties.Key(key), "is a list key and must be of a scalar type");
    const bool required = std::ranges::find(schema.items->required, key) != schema.items->required.end();
    if (!required && !below.default_value)
      return NotStructural(properties.Key(key), "is a list key and must be required or have a default");
    if (below.nullable) return NotStructural(properties.Key(key), "is a list key and must not be nullable");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStructural(const Schema& schema, const FieldPath& path, SchemaPlace place) {
  if (place == SchemaPlace::kAlternative) return absl::OkStatus();  // checked with what is around it
  TY_RETURN_IF_ERROR(CheckType(schema, path, place));
  if (place == SchemaPlace::kRoot || schema.embedded_resource)
    TY_RETURN_IF_ERROR(CheckResource(schema, path, place));
  TY_RETURN_IF_ERROR(CheckKeys(schema, path));
  return CheckAlternatives(schema, place == SchemaPlace::kRoot ? &schema : nullptr, path);
}

absl::Status CheckDefault(const Schema& schema, const FieldPath& path) {
  if (!schema.default_value) return absl::OkStatus();
  const FieldPath at = path.Child("default");
  Document value = *schema.default_value;
  if (const auto unknown = Prune(schema, value); !unknown.empty())
    return NotStructural(at, StrCat("has the unknown field ", unknown.front()));
  if (const auto causes = Validate(schema, value, 1); !causes.empty()) {
    return NotStructural(at,
                         StrCat("does not validate: ", causes[0].field.empty() ? "" : causes[0].field + ": ",
                                causes[0].message));
  }
  return absl::OkStatus();
}

void AddObjectFields(Schema& schema) {
  const auto text = [](std::string_view description) {
    auto field = std::make_shared<Schema>();
    field->type = SchemaType::kString;
    field->description = description;
    return field;
  };
  schema.properties.try_emplace("apiVersion", text("Group and version of the kind."));
  schema.properties.try_emplace("kind", text("Which kind of object this is."));
  const SchemaPtr common = BuiltInKinds().FindType("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  SchemaPtr& slot = schema.properties["metadata"];
  if (slot && !slot->properties.empty()) {
    auto metadata = std::make_shared<Schema>(*common);
    metadata->all_of.push_back(slot);
    slot = std::move(metadata);
  } else {
    slot = common;
  }
}

absl::StatusOr<std::shared_ptr<const re2::RE2>> CompilePattern(std::string_view pattern) {
  auto regex = std::make_shared<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), RE2::Quiet);
  if (!regex->ok())
    return absl::InvalidArgumentError(StrCat("is no valid regular expression: ", regex->error()));
  return regex;
}

}  // namespace trainyard::apiserver
