// Kubernetes' strategic merge: as a merge patch, but lists are merged item by item where the schema says by
// which key, and keys that begin with '$' say what a merge alone cannot.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "apiserver/patch/list_order.h"
#include "apiserver/patch/patch.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetOrder = "$setElementOrder";
constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList";

absl::Status MergeObject(Document& target, const Object& patch, const Schema* schema);

bool IsDirective(std::string_view key) {
  return key == kDirective || key == kRetainKeys || key.starts_with(kSetOrder) ||
         key.starts_with(kDeleteFrom);
}

// "merge" where nothing else is said.
absl::StatusOr<std::string_view> DirectiveOf(const Object& patch) {
  const Document* found = patch.if_contains(kDirective);
  if (found == nullptr) return "merge";
  const std::string_view directive = Text(*found);
  if (directive == "replace" || directive == "delete" || directive == "merge") return directive;
  return BadPatch(StrCat("unknown patch type ", PrintJson(*found), ": ", kDirective,
                         " is one of replace, delete and merge"));
}

// The field that "$setElementOrder/env" is about.
absl::StatusOr<std::string_view> FieldOf(std::string_view key, std::string_view directive) {
  if (key.size() <= directive.size() + 1 || key[directive.size()] != '/') {
    return BadPatch(StrCat("\"", key, "\" does not name a list: write ", directive, "/NAME"));
  }
  return key.substr(directive.size() + 1);
}

// What the patch says of a value that is not there yet: without nulls, directives and items to delete.
Document Fresh(const Document& patch) {
  if (const Array* list = patch.if_array()) {
    Array fresh;
    for (const Document& item : *list) {
      const Object* object = item.if_object();
      const Document* directive = object != nullptr ? object->if_contains(kDirective) : nullptr;
      if (directive == nullptr || Text(*directive) == "merge") fresh.push_back(Fresh(item));
    }
    return fresh;
  }
  const Object* object = patch.if_object();
  if (object == nullptr) return patch;
  Object fresh;
  for (const auto& member : *object) {
    if (member.value().is_null() || IsDirective(Key(member))) continue;
    fresh[member.key()] = Fresh(member.value());
  }
  return fresh;
}

const Schema* FieldSchema(const Schema* schema, std::string_view key) {
  if (schema == nullptr) return nullptr;
  const auto property = schema->properties.find(key);
  return property != schema->properties.end() ? property->second.get() : schema->additional.get();
}

// How a list is merged.
struct ListRule {
  explicit ListRule(const Schema* schema)
      : merged(schema != nullptr && (!schema->merge_key.empty() || schema->merge_primitives)),
        key(schema != nullptr ? std::string_view(schema->merge_key) : std::string_view()),
        items(schema != nullptr ? schema->items.get() : nullptr) {}
  bool merged;
  std::string_view key;
  const Schema* items;
};

absl::Status CheckItem(const Document& item, const ListRule& rule, std::string_view field) {
  if (item.is_array()) return UnfitPatch(StrCat("\"", field, "\": lists of lists are not supported"));
  if (rule.key.empty()) {
    if (item.is_primitive()) return absl::OkStatus();
    return BadPatch(StrCat("\"", field, "\": its items have no merge key; replace the list as a whole"));
  }
  const Object* object = item.if_object();
  if (object == nullptr) return BadPatch(StrCat("\"", field, "\": an item is no object: ", PrintJson(item)));
  if (object->contains(rule.key)) return absl::OkStatus();
  return BadPatch(StrCat("\"", field, "\": an item does not contain the merge key \"", rule.key,
                         "\": ", PrintJson(item)));
}

// The patch's items, those that direct set apart.
struct PatchItems {
  bool replace = false;
  absl::flat_hash_set<std::string> deleted;
  std::vector<const Document*> plain;
};

absl::StatusOr<PatchItems> SortOut(const Array& patch, const ListRule& rule, std::string_view field) {
  PatchItems items;
  for (const Document& item : patch) {
    std::string_view directive = "merge";
    if (const Object* object = item.if_object()) {
      TY_ASSIGN_OR_RETURN(directive, DirectiveOf(*object));
    }
    if (directive == "replace") {
      items.replace = true;
      continue;
    }
    TY_RETURN_IF_ERROR(CheckItem(item, rule, field));
    if (directive == "delete") {
      items.deleted.insert(KeyIdentityOf(item, rule.key));
    } else {
      items.plain.push_back(&item);
    }
  }
  return items;
}

struct MergedList {
  Array items;
  Order live;    // without what was deleted
  Order listed;  // by the patch
};

absl::StatusOr<MergedList> MergeList(Array live, const Array& patch, const ListRule& rule,
                                     std::string_view field) {
  if (!rule.merged) return MergedList{.items = Fresh(patch).get_array()};
  TY_ASSIGN_OR_RETURN(const PatchItems changes, SortOut(patch, rule, field));
  MergedList merged;
  if (changes.replace) live.clear();
  Order place;
  for (Document& item : live) {
    TY_RETURN_IF_ERROR(CheckItem(item, rule, field));
    std::string identity = KeyIdentityOf(item, rule.key);
    if (changes.deleted.contains(identity)) continue;
    if (rule.key.empty() && place.contains(identity)) continue;
    place.try_emplace(std::move(identity), merged.items.size());
    merged.items.push_back(std::move(item));
  }
  merged.live = place;
  for (const Document* change : changes.plain) {
    std::string identity = KeyIdentityOf(*change, rule.key);
    merged.listed.try_emplace(identity, merged.listed.size());
    const auto [at, fresh] = place.try_emplace(std::move(identity), merged.items.size());
    if (fresh) {
      merged.items.push_back(Fresh(*change));
    } else if (const Object* object = change->if_object()) {
      TY_RETURN_IF_ERROR(MergeObject(merged.items[at->second], *object, rule.items));
    }
  }
  return merged;
}

// Puts a list in the place of one that was there. What a patch has emptied is gone, as an API server never
// shows an empty list that nobody wrote.
void SetList(Object& target, std::string_view field, Array list, bool had_items) {
  if (list.empty() && had_items) {
    Remove(target, field);
  } else {
    target[field] = std::move(list);
  }
}

absl::Status MergeListField(Object& target, std::string_view field, const Array& patch,
                            const Schema* schema) {
  const ListRule rule(schema);
  Array& live = target[field].get_array();
  const bool had_items = !live.empty();
  TY_ASSIGN_OR_RETURN(MergedList merged, MergeList(std::move(live), patch, rule, field));
  if (!rule.merged) {
    target[field] = std::move(merged.items);
    return absl::OkStatus();
  }
  SetList(target, field, Arrange(std::move(merged.items), merged.listed, merged.live, rule.key), had_items);
  return absl::OkStatus();
}

// The items of the patch must come in the order that $setElementOrder gives, or the two contradict.
absl::Status CheckOrder(const Array& patch, const Order& order, std::string_view merge_key,
                        std::string_view field) {
  std::size_t least = 0;
  for (const Document& item : patch) {
    if (item.is_object() && item.get_object().contains(kDirective)) continue;
    const auto found = order.find(KeyIdentityOf(item, merge_key));
    if (found == order.end() || found->second < least) {
      return BadPatch(StrCat("the order of \"", field, "\" does not match ", kSetOrder, "/", field));
    }
    least = found->second;
  }
  return absl::OkStatus();
}

const Array* ListIn(const Object& object, std::string_view field) {
  const Document* found = object.if_contains(field);
  return found != nullptr ? found->if_array() : nullptr;
}

// What a patch says of one list beside its order.
struct ListChange {
  const Array* items;  // null: nothing
  const Schema* schema;
};

absl::Status MergeInOrder(Object& target, std::string_view field, const Document& order_list,
                          const ListChange& change) {
  if (!order_list.is_array()) return BadPatch(StrCat(kSetOrder, "/", field, " must be a list"));
  const ListRule rule(change.schema);
  for (const Document& item : order_list.get_array()) TY_RETURN_IF_ERROR(CheckItem(item, rule, field));
  const Order order = OrderOf(order_list.get_array(), rule.key);
  const Array* live = ListIn(target, field);
  if (change.items == nullptr && live == nullptr) return absl::OkStatus();
  const Array nothing;
  const Array& changes = change.items != nullptr ? *change.items : nothing;
  TY_RETURN_IF_ERROR(CheckOrder(changes, order, rule.key, field));
  const bool had_items = live != nullptr && !live->empty();
  MergedList merged;
  if (change.items == nullptr) {
    merged = {.items = *live, .live = OrderOf(*live, rule.key)};
  } else {
    TY_ASSIGN_OR_RETURN(merged, MergeList(live != nullptr ? *live : nothing, changes, rule, field));
    // What is new takes the places of what was deleted, so that a renamed item stays about where it was.
    const std::size_t places = std::min(live != nullptr ? live->size() : 0, merged.items.size());
    merged.live = OrderOf(Array(merged.items.begin(), merged.items.begin() + places), rule.key);
  }
  SetList(target, field, Arrange(std::move(merged.items), order, merged.live, rule.key), had_items);
  return absl::OkStatus();
}

absl::Status RetainKeys(Object& target, const Object& patch) {
  const Document* directive = patch.if_contains(kRetainKeys);
  if (directive == nullptr) return absl::OkStatus();
  if (!directive->is_array()) return BadPatch(StrCat(kRetainKeys, " must be a list of keys"));
  absl::flat_hash_set<std::string> kept;
  for (const Document& key : directive->get_array()) kept.emplace(Text(key));
  for (const auto& member : patch) {
    if (member.value().is_null() || IsDirective(Key(member)) || kept.contains(std::string(Key(member))))
      continue;
    return BadPatch(StrCat("\"", Key(member), "\" is in the patch, but not in its ", kRetainKeys));
  }
  RemoveIf(target, [&](std::string_view key, const Document&) { return !kept.contains(std::string(key)); });
  return absl::OkStatus();
}

void DeleteFromList(Object& target, std::string_view field, const Document& values) {
  Document* live = target.if_contains(field);
  if (live == nullptr || !live->is_array() || !values.is_array()) return;
  const Order deleted = OrderOf(values.get_array(), "");
  Array kept;
  for (Document& item : live->get_array()) {
    if (!deleted.contains(KeyIdentityOf(item, ""))) kept.push_back(std::move(item));
  }
  SetList(target, field, std::move(kept), !live->get_array().empty());
}

absl::Status MergeField(Object& target, const boost::json::key_value_pair& change, const Schema* schema) {
  const Document& value = change.value();
  Document* live = target.if_contains(change.key());
  if (live != nullptr && live->is_object() && value.is_object()) {
    return MergeObject(*live, value.get_object(), schema);
  }
  if (live != nullptr && live->is_array() && value.is_array()) {
    return MergeListField(target, Key(change), value.get_array(), schema);
  }
  target[change.key()] = Fresh(value);
  return absl::OkStatus();
}

absl::Status MergeObject(Document& target, const Object& patch, const Schema* schema) {
  TY_ASSIGN_OR_RETURN(const std::string_view directive, DirectiveOf(patch));
  if (directive != "merge") {
    target = directive == "replace" ? Fresh(patch) : Document(Object());
    return absl::OkStatus();
  }
  if (!target.is_object()) target.emplace_object();
  Object& object = target.get_object();
  TY_RETURN_IF_ERROR(RetainKeys(object, patch));
  absl::flat_hash_set<std::string_view> done;
  for (const auto& member : patch) {
    if (!Key(member).starts_with(kSetOrder)) continue;
    TY_ASSIGN_OR_RETURN(const std::string_view field, FieldOf(Key(member), kSetOrder));
    const Document* changes = patch.if_contains(field);
    if (changes != nullptr && !changes->is_array()) continue;
    TY_RETURN_IF_ERROR(MergeInOrder(object, field, member.value(),
                                    {.items = changes != nullptr ? &changes->get_array() : nullptr,
                                     .schema = FieldSchema(schema, field)}));
    done.insert(field);
  }
  for (const auto& member : patch) {
    if (!Key(member).starts_with(kDeleteFrom)) continue;
    TY_ASSIGN_OR_RETURN(const std::string_view field, FieldOf(Key(member), kDeleteFrom));
    DeleteFromList(object, field, member.value());
  }
  absl::flat_hash_set<std::string_view> removed;
  for (const auto& member : patch) {
    if (IsDirective(Key(member)) || done.contains(Key(member))) continue;
    if (member.value().is_null()) {
      removed.insert(Key(member));
    } else {
      TY_RETURN_IF_ERROR(MergeField(object, member, FieldSchema(schema, Key(member))));
    }
  }
  if (!removed.empty())
    RemoveIf(object, [&](std::string_view key, const Document&) { return removed.contains(key); });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Document> ApplyStrategicPatch(Document object, const Document& patch, const Schema& schema) {
  if (!patch.is_object()) return BadPatch("a strategic merge patch must be an object");
  TY_RETURN_IF_ERROR(MergeObject(object, patch.get_object(), &schema));
  return object;
}

}  // namespace trainyard::apiserver
