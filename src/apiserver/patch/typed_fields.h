// An object seen as server-side apply sees it: which of its values are one field, which have fields of their
// own, and what changed between two versions of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/patch/field_set.h"
#include "apiserver/schema/schema.h"
#include "base/document.h"

namespace trainyard::apiserver {

// kLeaf is owned as a whole: a scalar, an atomic map or list. kFields and kItems are owned piece by piece.
enum class Shape : std::uint8_t { kLeaf, kFields, kItems };

// A null schema is that of a value of which nothing is known: its objects have fields, its lists are leaves.
Shape ShapeOf(const Schema* schema, const Document& value);

struct ChildSchema {
  const Schema* schema = nullptr;
  bool named = false;     // a field that the schema names, not a key of a map
  bool declared = false;  // the schema allows it at all
};
ChildSchema ChildOf(const Schema* schema, std::string_view key);

// The schema of the items of a list; null if nothing is known of them.
inline const Schema* ItemsOf(const Schema* list) { return list != nullptr ? list->items.get() : nullptr; }

// The steps to a list's items, in their order. Nothing if two items have the same, or one has none: such a
// list is a leaf.
std::optional<std::vector<std::string>> StepsOf(const Schema& list, const Array& items);

// Where in the object a value stands. The server itself fills in some of the metadata, and nobody owns that.
enum class Place : std::uint8_t { kRoot, kMetadata, kElsewhere };
Place PlaceBelow(Place place, std::string_view key);
bool NeverOwned(Place place, std::string_view key);

// All that the object says: leaves, items of lists, keys of maps.
FieldSet FieldsOf(const Document& object, const Schema& schema);

// The set and all fields above its own that the schema names.
FieldSet WithNamedFields(const FieldSet& set, const Schema& schema);

struct Changes {
  FieldSet set;      // new, or with another value
  FieldSet removed;  // no longer there
  bool empty() const { return set.empty() && removed.empty(); }
};
// An object that is null or empty is one that does not exist yet.
Changes CompareFields(const Document& before, const Document& after, const Schema& schema);

}  // namespace trainyard::apiserver
