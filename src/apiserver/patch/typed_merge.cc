#include "apiserver/patch/typed_merge.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "apiserver/patch/field_path.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/typed_fields.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// ---- checking

absl::Status Wrong(const std::string& path, std::string_view what) {
  return BadPatch(StrCat("the applied configuration does not fit the schema: ", path, ": ", what));
}

absl::Status Check(const Document& value, const Schema* schema, std::string& path);

absl::Status CheckBelow(const Document& value, const Schema* schema, std::string& path,
                        std::string_view step) {
  const std::size_t length = path.size();
  path += ShowStep(step);
  TY_RETURN_IF_ERROR(Check(value, schema, path));
  path.resize(length);
  return absl::OkStatus();
}

absl::Status CheckFields(const Object& object, const Schema* schema, std::string& path) {
  for (const auto& member : object) {
    const ChildSchema child = ChildOf(schema, Key(member));
    const std::string step = FieldStep(Key(member));
    if (!child.declared) return Wrong(path + ShowStep(step), "field not declared in schema");
    TY_RETURN_IF_ERROR(CheckBelow(member.value(), child.schema, path, step));
  }
  return absl::OkStatus();
}

absl::Status CheckItems(const Array& items, const Schema& schema, std::string& path) {
  absl::flat_hash_map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto step = ItemStep(schema, items[i]);
    if (!step) {
      return Wrong(path, schema.list_type == ListType::kSet
                             ? StrCat("item ", i, " is not a plain value, as those of a set must be")
                             : StrCat("item ", i, " has not all of the keys by which items are told apart"));
    }
    if (!seen.emplace(*step, i).second) {
      return Wrong(path, StrCat("duplicate entries for key ", ShowStep(*step)));
    }
    TY_RETURN_IF_ERROR(CheckBelow(items[i], schema.items.get(), path, *step));
  }
  return absl::OkStatus();
}

absl::Status Check(const Document& value, const Schema* schema, std::string& path) {
  if (schema == nullptr || value.is_null()) return absl::OkStatus();
  switch (schema->type) {
    case SchemaType::kAny:
      return absl::OkStatus();
    case SchemaType::kObject:
      if (!value.is_object()) return Wrong(path, StrCat("expected an object, got ", PrintJson(value)));
      return schema->atomic_map ? absl::OkStatus() : CheckFields(value.get_object(), schema, path);
    case SchemaType::kArray:
      if (!value.is_array()) return Wrong(path, StrCat("expected a list, got ", PrintJson(value)));
      return schema->list_type == ListType::kAtomic ? absl::OkStatus()
                                                    : CheckItems(value.get_array(), *schema, path);
    case SchemaType::kString:
      return value.is_string() ? absl::OkStatus()
                               : Wrong(path, StrCat("expected a string, got ", PrintJson(value)));
    case SchemaType::kInteger:
    case SchemaType::kNumber:
      return value.is_number() ? absl::OkStatus()
                               : Wrong(path, StrCat("expected a number, got ", PrintJson(value)));
    case SchemaType::kBoolean:
      return value.is_bool() ? absl::OkStatus()
                             : Wrong(path, StrCat("expected a boolean, got ", PrintJson(value)));
    case SchemaType::kIntOrString:
      return value.is_string() || value.is_number()
                 ? absl::OkStatus()
                 : Wrong(path, StrCat("expected a number or a string, got ", PrintJson(value)));
  }
  return absl::OkStatus();
}

// ---- merging

Document Merge(const Document& live, const Document& applied, const Schema* schema);
Document Fresh(const Document& applied, const Schema* schema);

Document MergeFields(const Object& live, const Object& applied, const Schema* schema) {
  Object merged = live;
  for (const auto& member : applied) {
    const Schema* child = ChildOf(schema, Key(member)).schema;
    Document* there = merged.if_contains(member.key());
    const bool may_be_null = child == nullptr || child->nullable || child->type == SchemaType::kAny;
    if (member.value().is_null() && !may_be_null) {
      // A container that is applied as null is one of which nothing is said.
      if (there != nullptr && ShapeOf(child, *there) == Shape::kLeaf) Remove(merged, Key(member));
    } else if (there == nullptr) {
      merged[member.key()] = Fresh(member.value(), child);
    } else {
      *there = Merge(*there, member.value(), child);
    }
  }
  return merged;
}

Document MergeItems(const Array& live, const Array& applied, const Schema& schema) {
  const auto live_steps = StepsOf(schema, live);
  const auto new_steps = StepsOf(schema, applied);
  if (!live_steps || !new_steps) return applied;
  absl::flat_hash_map<std::string_view, std::size_t> live_at;
  for (std::size_t i = 0; i < live.size(); ++i) live_at.emplace((*live_steps)[i], i);
  absl::flat_hash_map<std::string_view, std::size_t> new_at;
  std::vector<std::size_t> shared;  // where what both have stands in the live list, in the applied order
  for (std::size_t i = 0; i < applied.size(); ++i) {
    new_at.emplace((*new_steps)[i], i);
    if (const auto at = live_at.find((*new_steps)[i]); at != live_at.end()) shared.push_back(at->second);
  }

  Array merged;
  std::size_t at = 0;
  auto next = shared.begin();
  const auto take_live_until = [&](std::size_t end) {
    for (; at < end; ++at) {
      if (!new_at.contains((*live_steps)[at])) merged.push_back(live[at]);
    }
  };
  for (std::size_t i = 0; i < applied.size(); ++i) {
    // Up to the next item that both have, or, if that was passed already, to the end.
    take_live_until(next != shared.end() && *next >= at ? *next : live.size());
    const auto there = live_at.find((*new_steps)[i]);
    if (there == live_at.end()) {
      merged.push_back(Fresh(applied[i], schema.items.get()));
      continue;
    }
    merged.push_back(Merge(live[there->second], applied[i], schema.items.get()));
    if (at == there->second) ++at;
    ++next;
  }
  take_live_until(live.size());
  return merged;
}

Document Merge(const Document& live, const Document& applied, const Schema* schema) {
  const Shape shape = ShapeOf(schema, applied);
  if (shape == Shape::kFields && live.is_object() && ShapeOf(schema, live) == Shape::kFields) {
    return MergeFields(live.get_object(), applied.get_object(), schema);
  }
  if (shape == Shape::kItems && live.is_array()) {
    return MergeItems(live.get_array(), applied.get_array(), *schema);
  }
  return Fresh(applied, schema);
}

// What is applied where there was nothing: all of it, but for nulls.
Document Fresh(const Document& applied, const Schema* schema) {
  switch (ShapeOf(schema, applied)) {
    case Shape::kLeaf:
      return applied;
    case Shape::kFields:
      return MergeFields(Object(), applied.get_object(), schema);
    case Shape::kItems: {
      Array items;
      for (const Document& item : applied.get_array()) items.push_back(Fresh(item, schema->items.get()));
      return items;
    }
  }
  return applied;
}

// ---- removing

Document Without(const Document& value, const FieldSet& fields, const Schema* schema);

Document WithoutSome(const Object& object, const FieldSet& fields, const Schema* schema) {
  Object out;
  for (const auto& member : object) {
    const FieldNode* node = FindNode(fields, FieldStep(Key(member)));
    if (node != nullptr && node->member) continue;
    if (node == nullptr) {
      out[member.key()] = member.value();
      continue;
    }
    Document rest = Without(member.value(), node->below, ChildOf(schema, Key(member)).schema);
    const bool emptied =
        (rest.is_object() && rest.get_object().empty()) || (rest.is_array() && rest.get_array().empty());
    if (!emptied) out[member.key()] = std::move(rest);
  }
  return out;
}

Document WithoutItems(const Array& items, const FieldSet& fields, const Schema& schema) {
  const auto steps = StepsOf(schema, items);
  if (!steps) return items;
  Array out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const FieldNode* node = FindNode(fields, (*steps)[i]);
    if (node != nullptr && node->member) continue;
    out.push_back(node != nullptr ? Without(items[i], node->below, schema.items.get()) : items[i]);
  }
  return out;
}

Document Without(const Document& value, const FieldSet& fields, const Schema* schema) {
  switch (ShapeOf(schema, value)) {
    case Shape::kLeaf:
      return value;
    case Shape::kFields:
      return WithoutSome(value.get_object(), fields, schema);
    case Shape::kItems:
      return WithoutItems(value.get_array(), fields, *schema);
  }
  return value;
}

}  // namespace

absl::Status CheckApplied(const Document& applied, const Schema& schema) {
  std::string path;
  return Check(applied, &schema, path);
}

Document MergeApplied(const Document& object, const Document& applied, const Schema& schema) {
  return Merge(object, applied, &schema);
}

Document WithoutFields(const Document& object, const FieldSet& fields, const Schema& schema) {
  return Without(object, fields, &schema);
}

}  // namespace trainyard::apiserver
