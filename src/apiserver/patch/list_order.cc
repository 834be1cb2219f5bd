#include "apiserver/patch/list_order.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace trainyard::apiserver {
namespace {

struct Placed {
  std::size_t rank = 0;             // in the order of its own group
  std::size_t was = 0;              // in the list that is arranged; those of one rank keep their order
  std::optional<std::size_t> live;  // in the live list
  Document item;
};

std::optional<std::size_t> PlaceIn(const Order& order, const std::string& identity) {
  const auto found = order.find(identity);
  if (found == order.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::string KeyIdentityOf(const Document& item, std::string_view merge_key) {
  if (merge_key.empty()) return PrintJson(item);
  const Object* object = item.if_object();
  const Document* key = object != nullptr ? object->if_contains(merge_key) : nullptr;
  return key != nullptr ? PrintJson(*key) : std::string();
}

Order OrderOf(const Array& items, std::string_view merge_key) {
  Order order;
  for (std::size_t i = 0; i < items.size(); ++i) order.try_emplace(KeyIdentityOf(items[i], merge_key), i);
  return order;
}

Array Arrange(Array items, const Order& listed, const Order& live, std::string_view merge_key) {
  std::vector<Placed> first;
  std::vector<Placed> rest;
  for (Document& item : items) {
    const std::string identity = KeyIdentityOf(item, merge_key);
    const auto rank = PlaceIn(listed, identity);
    const auto at = PlaceIn(live, identity);
    auto& group = rank ? first : rest;
    group.push_back({rank ? *rank : at.value_or(0), group.size(), at, std::move(item)});
  }
  const auto order = [](const Placed& placed) { return std::pair(placed.rank, placed.was); };
  std::ranges::sort(first, {}, order);
  std::ranges::sort(rest, {}, order);

  Array arranged;
  arranged.reserve(items.size());
  auto left = rest.begin();
  for (Placed& placed : first) {
    while (left != rest.end() && left->live && placed.live && *left->live < *placed.live) {
      arranged.push_back(std::move((left++)->item));
    }
    arranged.push_back(std::move(placed.item));
  }
  while (left != rest.end()) arranged.push_back(std::move((left++)->item));
  return arranged;
}

}  // namespace trainyard::apiserver
