#include "apiserver/schema/print.h"

#include <algorithm>

#include "apiserver/schema/kind_table.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

Document Number(double value) {
  const auto whole = static_cast<std::int64_t>(value >= -9e15 && value <= 9e15 ? value : 0);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

Array Texts(const std::vector<std::string>& texts) { return Array(texts.begin(), texts.end()); }

void PrintBounds(const Schema& schema, Object& out) {
  const auto print = [&](std::string_view key, const auto& value) {
    if (!value) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(*value)>, double>) {
      out[key] = Number(*value);
    } else {
      out[key] = *value;
    }
  };
  print("minimum", schema.minimum);
  print("maximum", schema.maximum);
  if (schema.exclusive_minimum) out["exclusiveMinimum"] = true;
  if (schema.exclusive_maximum) out["exclusiveMaximum"] = true;
  print("multipleOf", schema.multiple_of);
  print("minLength", schema.min_length);
  print("maxLength", schema.max_length);
  print("minItems", schema.min_items);
  print("maxItems", schema.max_items);
  print("minProperties", schema.min_properties);
  print("maxProperties", schema.max_properties);
  if (schema.unique_items) out["uniqueItems"] = true;
  if (!schema.pattern.empty()) out["pattern"] = schema.pattern;
  if (!schema.one_of_values.empty())
    out["enum"] = Array(schema.one_of_values.begin(), schema.one_of_values.end());
}

// How lists and maps are merged.
void PrintMerging(const Schema& schema, Object& out) {
  if (schema.list_type == ListType::kSet) out["x-kubernetes-list-type"] = "set";
  if (schema.list_type == ListType::kMap) {
    out["x-kubernetes-list-type"] = "map";
    out["x-kubernetes-list-map-keys"] = Texts(schema.list_keys);
  }
  if (schema.atomic_map) out["x-kubernetes-map-type"] = "atomic";
  if (!schema.merge_key.empty()) out["x-kubernetes-patch-merge-key"] = schema.merge_key;
  const bool merged = !schema.merge_key.empty() || schema.merge_primitives;
  if (merged || schema.retain_keys) {
    out["x-kubernetes-patch-strategy"] = !schema.retain_keys ? "merge"
                                         : merged            ? "merge,retainKeys"
                                                             : "retainKeys";
  }
}

Array EitherType(std::string_view first, std::string_view second) {
  return {Object{{"type", first}}, Object{{"type", second}}};
}

}  // namespace

void SchemaPrinter::PrintType(const Schema& schema, Object& out) const {
  const bool either = schema.type == SchemaType::kIntOrString;
  if (either && schema.name.empty()) out["x-kubernetes-int-or-string"] = true;
  if (schema.format == "quantity" || (either && !schema.name.empty())) {
    if (either) out["format"] = "int-or-string";
    if (v2_) {
      out["type"] = "string";
    } else {
      out["oneOf"] = either ? EitherType("integer", "string") : EitherType("string", "number");
    }
    return;
  }
  // kubectl before 1.27 takes a type without its items or fields for one that has none.
  const bool hidden =
      v2_ && (schema.nullable || (schema.preserve_unknown && schema.type != SchemaType::kString));
  if (!hidden && !either && schema.type != SchemaType::kAny) out["type"] = TypeName(schema.type);
  if (!schema.format.empty()) out["format"] = schema.format;
  if (schema.nullable && !v2_) out["nullable"] = true;
}

Object SchemaPrinter::PrintBelow(const Schema& schema) const {
  if (referenced_ == nullptr || schema.name.empty()) return Print(schema);
  referenced_->insert(schema.name);
  const std::string target = StrCat(v2_ ? "#/definitions/" : "#/components/schemas/", schema.name);
  Object out;
  // What the definition says of itself is not said again.
  const SchemaPtr definition = BuiltInKinds().FindType(schema.name);
  if (definition == nullptr || definition->description != schema.description)
    out["description"] = schema.description;
  if (v2_) {
    out["$ref"] = target;
  } else {
    if (schema.default_value) out["default"] = *schema.default_value;
    out["allOf"] = Array{Object{{"$ref", target}}};
  }
  return out;
}

void SchemaPrinter::PrintChildren(const Schema& schema, Object& out) const {
  if (v2_ && (schema.nullable || schema.preserve_unknown)) return;
  if (schema.items) out["items"] = PrintBelow(*schema.items);
  if (!schema.properties.empty()) {
    Object& properties = out["properties"].emplace_object();
    for (const auto& [key, below] : schema.properties) properties[key] = PrintBelow(*below);
  }
  if (schema.additional) {
    const bool any = schema.additional->type == SchemaType::kAny && !schema.additional->preserve_unknown;
    out["additionalProperties"] =
        any ? Document(schema.additional->negated == nullptr) : Document(PrintBelow(*schema.additional));
  }
}

void SchemaPrinter::PrintAlternatives(const Schema& schema, Object& out) const {
  if (v2_) return;
  const auto print = [&](std::string_view key, const std::vector<SchemaPtr>& list) {
    if (list.empty()) return;
    Array& array = out[key].emplace_array();
    for (const SchemaPtr& each : list) array.push_back(Print(*each));
  };
  print("allOf", schema.all_of);
  print("anyOf", schema.any_of);
  print("oneOf", schema.one_of);
  if (schema.negated) out["not"] = Print(*schema.negated);
}

Object SchemaPrinter::Print(const Schema& schema) const {
  Object out;
  if (!schema.description.empty()) out["description"] = schema.description;
  PrintType(schema, out);
  if (schema.default_value && !v2_) out["default"] = *schema.default_value;
  std::vector<std::string> required = schema.required;
  if (v2_) {
    if (schema.nullable || schema.preserve_unknown) required.clear();
    std::erase_if(required, [&](const std::string& key) {
      const auto field = schema.properties.find(key);
      return field != schema.properties.end() && field->second->nullable;
    });
  }
  if (!required.empty()) out["required"] = Texts(required);
  PrintChildren(schema, out);
  PrintBounds(schema, out);
  PrintAlternatives(schema, out);
  if (schema.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (schema.embedded_resource) out["x-kubernetes-embedded-resource"] = true;
  PrintMerging(schema, out);
  if (!schema.rules.empty()) out["x-kubernetes-validations"] = schema.rules;
  return out;
}

Document ToOpenApi(const Schema& schema, OpenApiVersion version) {
  return SchemaPrinter(version).Print(schema);
}

}  // namespace trainyard::apiserver
