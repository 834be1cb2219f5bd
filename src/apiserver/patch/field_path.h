// One step on the way to a field, as FieldsV1 writes it: "f:spec" is a field, "k:{"name":"x"}" the item of a
// list that has that key, "v:"x"" the item of a set that is that value, "i:3" the item at that place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/schema/schema.h"
#include "base/document.h"

namespace trainyard::apiserver {

std::string FieldStep(std::string_view name);

// The step to an item of a list that is a set or has keys. Nothing: a key is missing and has no default, or
// the item is of the wrong kind.
std::optional<std::string> ItemStep(const Schema& list, const Document& item);

// The step in the one form in which we write it; nothing if it is none.
std::optional<std::string> CanonicalStep(std::string_view step);

// Fields by name, then items by key, by value and by place; numbers by what they count.
bool StepLess(std::string_view a, std::string_view b);

// For people: .spec, [name="x"], [="x"], [3].
std::string ShowStep(std::string_view step);

}  // namespace trainyard::apiserver
