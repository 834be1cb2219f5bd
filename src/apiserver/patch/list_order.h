// Which items of two lists are the same item, and in which order a merged list has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/document.h"

namespace trainyard::apiserver {

// What makes an item itself: the value of its merge key, or, without one, the whole item; printed.
std::string KeyIdentityOf(const Document& item, std::string_view merge_key);

// Places in a list, by identity; of items that are there twice, the first.
using Order = absl::flat_hash_map<std::string, std::size_t>;
Order OrderOf(const Array& items, std::string_view merge_key);

// Puts the items that `listed` names into its order, and the others into that of `live`. The others stand
// before the first of the listed ones that comes after them in `live`.
Array Arrange(Array items, const Order& listed, const Order& live, std::string_view merge_key);

}  // namespace trainyard::apiserver
