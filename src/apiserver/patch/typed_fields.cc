#include "apiserver/patch/typed_fields.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "apiserver/patch/field_path.h"
#include "apiserver/patch/same_value.h"

namespace trainyard::apiserver {
namespace {

SchemaPtr MakeObjectMeta() {
  const auto text = [] {
    auto schema = std::make_shared<Schema>();
    schema->type = SchemaType::kString;
    return schema;
  };
  const auto map = [&] {
    auto schema = std::make_shared<Schema>();
    schema->type = SchemaType::kObject;
    schema->additional = text();
    return schema;
  };
  auto finalizers = std::make_shared<Schema>();
  finalizers->type = SchemaType::kArray;
  finalizers->list_type = ListType::kSet;
  finalizers->items = text();
  auto owner = std::make_shared<Schema>();
  owner->type = SchemaType::kObject;
  owner->preserve_unknown = true;
  owner->atomic_map = true;
  auto owners = std::make_shared<Schema>();
  owners->type = SchemaType::kArray;
  owners->list_type = ListType::kMap;
  owners->list_keys = {"uid"};
  owners->items = owner;
  auto meta = std::make_shared<Schema>();
  meta->type = SchemaType::kObject;
  meta->preserve_unknown = true;
  meta->properties = {
      {"labels", map()}, {"annotations", map()}, {"finalizers", finalizers}, {"ownerReferences", owners}};
  return meta;
}

// For kinds whose schema leaves the metadata to the server, as those of custom resources do.
const Schema* ObjectMeta() {
  static const SchemaPtr* const schema = new SchemaPtr(MakeObjectMeta());
  return schema->get();
}

bool IsBare(const Schema& schema) {
  return schema.properties.empty() && !schema.additional && !schema.preserve_unknown;
}

// Which nodes above the leaves are fields too.
enum class Inner : std::uint8_t { kNamed, kAll };

void Collect(FieldNode& node, const Schema* schema, const Document& value, Place place, Inner inner);

FieldSet CollectFields(const Schema* schema, const Object& object, Place place, Inner inner) {
  FieldSet set;
  set.nodes.reserve(object.size());
  for (const auto& member : object) {
    const std::string_view key = Key(member);
    if (NeverOwned(place, key)) continue;
    const ChildSchema child = ChildOf(schema, key);
    FieldNode node{.step = FieldStep(key), .member = inner == Inner::kAll || !child.named};
    Collect(node, child.schema, member.value(), PlaceBelow(place, key), inner);
    if (place == Place::kRoot && key == "metadata") node.member = false;
    if (node.member || !node.below.empty()) set.nodes.push_back(std::move(node));
  }
  SortNodes(set);
  return set;
}

// Fills in what lies below the node, and makes it a member if it is a leaf.
void Collect(FieldNode& node, const Schema* schema, const Document& value, Place place, Inner inner) {
  const Shape shape = ShapeOf(schema, value);
  if (shape == Shape::kFields && !value.get_object().empty()) {
    node.below = CollectFields(schema, value.get_object(), place, inner);
    return;
  }
  if (shape == Shape::kItems) {
    const Array& items = value.get_array();
    auto steps = StepsOf(*schema, items);
    if (steps && items.empty()) return;
    if (steps) {
      node.below.nodes.reserve(items.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        FieldNode& item = node.below.nodes.emplace_back();
        item.step = std::move((*steps)[i]);
        item.member = true;
        Collect(item, ItemsOf(schema), items[i], Place::kElsewhere, inner);
      }
      SortNodes(node.below);
      return;
    }
  }
  node.member = true;
}

// ---- comparing

// One value in both versions: null where it is not there.
struct Pair {
  const Document* before = nullptr;
  const Document* after = nullptr;
};

void Compare(const Pair& pair, const Schema* schema, Place place, FieldNode& set, FieldNode& removed);

void CompareChild(const Pair& pair, std::string step, const ChildSchema& child, Place place,
                  Changes& changes) {
  FieldNode set;
  FieldNode removed;
  Compare(pair, child.schema, place, set, removed);
  const auto add = [&](FieldSet& to, FieldNode node) {
    if (place == Place::kMetadata) node.member = false;
    if (!node.member && node.below.empty()) return;
    node.step = step;
    to.nodes.push_back(std::move(node));
  };
  add(changes.set, std::move(set));
  add(changes.removed, std::move(removed));
}

void CompareFieldsOf(const Object& before, const Object& after, const Schema* schema, Place place,
                     Changes& changes) {
  const auto compare = [&](std::string_view key, const Pair& pair) {
    if (NeverOwned(place, key)) return;
    CompareChild(pair, FieldStep(key), ChildOf(schema, key), PlaceBelow(place, key), changes);
  };
  for (const auto& member : after) {
    const Document* old = before.if_contains(member.key());
    if (old != nullptr && SameValue(*old, member.value())) continue;
    compare(Key(member), {old, &member.value()});
  }
  for (const auto& member : before) {
    if (!after.contains(member.key())) compare(Key(member), {&member.value(), nullptr});
  }
  SortNodes(changes.set);
  SortNodes(changes.removed);
}

// False if the items of one of the lists cannot be told apart.
bool CompareItems(const Array& before, const Array& after, const Schema& schema, Changes& changes) {
  const auto old_steps = StepsOf(schema, before);
  const auto new_steps = StepsOf(schema, after);
  if (!old_steps || !new_steps) return false;
  absl::flat_hash_map<std::string_view, const Document*> old;
  for (std::size_t i = 0; i < before.size(); ++i) old.emplace((*old_steps)[i], &before[i]);
  const ChildSchema child{.schema = ItemsOf(&schema)};
  for (std::size_t i = 0; i < after.size(); ++i) {
    Pair pair{.after = &after[i]};
    if (const auto found = old.find((*new_steps)[i]); found != old.end()) {
      pair.before = found->second;
      old.erase(found);
      if (SameValue(*pair.before, *pair.after)) continue;
    }
    CompareChild(pair, (*new_steps)[i], child, Place::kElsewhere, changes);
  }
  for (const auto& [step, document] : old) {
    CompareChild({.before = document}, std::string(step), child, Place::kElsewhere, changes);
  }
  SortNodes(changes.set);
  SortNodes(changes.removed);
  return true;
}

// Null stands for an object or a list without anything in it, where one of them is meant.
const Object& FieldsIn(const Document& value) {
  static const Object* const none = new Object();
  return value.is_object() ? value.get_object() : *none;
}
const Array& ItemsIn(const Document& value) {
  static const Array* const none = new Array();
  return value.is_array() ? value.get_array() : *none;
}

bool IsEmpty(const Document& value) {
  return value.is_null() || (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty());
}

// The value differs, and both versions have it.
void CompareBoth(const Pair& pair, const Schema* schema, Place place, FieldNode& set, FieldNode& removed) {
  const Document& before = *pair.before;
  const Document& after = *pair.after;
  if (IsEmpty(before) && IsEmpty(after)) {
    set.member = true;
    return;
  }
  const Shape old_shape = before.is_null() ? ShapeOf(schema, after) : ShapeOf(schema, before);
  const Shape new_shape = after.is_null() ? old_shape : ShapeOf(schema, after);
  if (old_shape == new_shape && new_shape != Shape::kLeaf) {
    Changes below;
    bool compared = true;
    if (new_shape == Shape::kFields) {
      CompareFieldsOf(FieldsIn(before), FieldsIn(after), schema, place, below);
    } else {
      compared = CompareItems(ItemsIn(before), ItemsIn(after), *schema, below);
    }
    if (compared) {
      set.below = std::move(below.set);
      removed.below = std::move(below.removed);
      return;
    }
  }
  if (old_shape != new_shape) {
    Collect(removed, schema, before, place, Inner::kAll);
    Collect(set, schema, after, place, Inner::kAll);
  }
  removed.member = false;
  set.member = true;
}

void Compare(const Pair& pair, const Schema* schema, Place place, FieldNode& set, FieldNode& removed) {
  if (pair.before != nullptr && pair.after != nullptr) {
    CompareBoth(pair, schema, place, set, removed);
    return;
  }
  FieldNode& node = pair.after != nullptr ? set : removed;
  node.member = true;
  Collect(node, schema, pair.after != nullptr ? *pair.after : *pair.before, place, Inner::kAll);
}

// A kind that we define has its spec and its status from the first moment on, and in them the lists that it
// requires; so nobody sets those, but only what is in them.
void ForgetWhatIsAlwaysThere(FieldSet& set, const Schema& schema) {
  std::erase_if(set.nodes, [&](FieldNode& node) {
    const ChildSchema child = ChildOf(&schema, std::string_view(node.step).substr(2));
    if (child.schema == nullptr || child.schema->name.empty()) return false;
    if (child.schema->type != SchemaType::kObject || child.schema->atomic_map) return false;
    node.member = false;
    for (const std::string& required : child.schema->required) {
      const auto found = std::ranges::find(node.below.nodes, FieldStep(required), &FieldNode::step);
      if (found != node.below.nodes.end() && !found->below.empty()) found->member = false;
    }
    return node.below.empty();
  });
}

FieldSet AddNamed(const FieldSet& set, const Schema* schema, Place place) {
  FieldSet out;
  out.nodes.reserve(set.nodes.size());
  for (const FieldNode& node : set.nodes) {
    const std::string_view step = node.step;
    const bool field = step.starts_with("f:");
    const std::string_view key = field ? step.substr(2) : std::string_view();
    const ChildSchema child = field ? ChildOf(schema, key) : ChildSchema{.schema = ItemsOf(schema)};
    const bool metadata = place == Place::kRoot && key == "metadata";
    out.nodes.push_back(
        {node.step, node.member || (child.named && !metadata),
         AddNamed(node.below, child.schema, field ? PlaceBelow(place, key) : Place::kElsewhere)});
  }
  return out;
}

}  // namespace

Shape ShapeOf(const Schema* schema, const Document& value) {
  if (value.is_object()) {
    if (schema == nullptr) return Shape::kFields;
    if (schema->atomic_map) return Shape::kLeaf;
    return schema->type == SchemaType::kObject || schema->type == SchemaType::kAny ? Shape::kFields
                                                                                   : Shape::kLeaf;
  }
  if (value.is_array() && schema != nullptr && schema->type == SchemaType::kArray &&
      schema->list_type != ListType::kAtomic) {
    return Shape::kItems;
  }
  return Shape::kLeaf;
}

ChildSchema ChildOf(const Schema* schema, std::string_view key) {
  if (schema == nullptr) return {.declared = true};
  const auto property = schema->properties.find(key);
  if (property != schema->properties.end()) {
    const Schema* found = property->second.get();
    if (key == "metadata" && IsBare(*found) && found->type == SchemaType::kObject) found = ObjectMeta();
    return {.schema = found, .named = true, .declared = true};
  }
  if (schema->additional) return {.schema = schema->additional.get(), .declared = true};
  if (key == "metadata" && schema->type == SchemaType::kObject && !schema->properties.empty()) {
    return {.schema = ObjectMeta(), .named = true, .declared = true};
  }
  return {.declared = schema->preserve_unknown || schema->type == SchemaType::kAny};
}

std::optional<std::vector<std::string>> StepsOf(const Schema& list, const Array& items) {
  std::vector<std::string> steps;
  steps.reserve(items.size());
  for (const Document& item : items) {
    auto step = ItemStep(list, item);
    if (!step) return std::nullopt;
    steps.push_back(*std::move(step));
  }
  if (steps.size() > 1) {
    std::vector<std::string_view> sorted(steps.begin(), steps.end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return std::nullopt;
  }
  return steps;
}

Place PlaceBelow(Place place, std::string_view key) {
  return place == Place::kRoot && key == "metadata" ? Place::kMetadata : Place::kElsewhere;
}

bool NeverOwned(Place place, std::string_view key) {
  static constexpr std::array<std::string_view, 9> kMetadata = {
      "clusterName",     "creationTimestamp", "generation", "managedFields", "name", "namespace",
      "resourceVersion", "selfLink",          "uid"};
  if (place == Place::kRoot) return key == "apiVersion" || key == "kind";
  return place == Place::kMetadata && std::ranges::find(kMetadata, key) != kMetadata.end();
}

FieldSet FieldsOf(const Document& object, const Schema& schema) {
  if (!object.is_object()) return {};
  return CollectFields(&schema, object.get_object(), Place::kRoot, Inner::kNamed);
}

FieldSet WithNamedFields(const FieldSet& set, const Schema& schema) {
  return AddNamed(set, &schema, Place::kRoot);
}

Changes CompareFields(const Document& before, const Document& after, const Schema& schema) {
  Changes changes;
  CompareFieldsOf(FieldsIn(before), FieldsIn(after), &schema, Place::kRoot, changes);
  ForgetWhatIsAlwaysThere(changes.set, schema);
  return changes;
}

}  // namespace trainyard::apiserver
