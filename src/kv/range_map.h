// Pure: which of many key ranges contain a key, found without asking each: the cost of a lookup depends on
// how many lengths of prefix are in use, not on how many ranges there are.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kv/store.h"

namespace trainyard::kv {

template <typename T>
class RangeMap {
 public:
  void Insert(const KeyRange& range, T* item) {
    if (const auto key = range.AsKey()) {
      keys_[*key].push_back(item);
    } else if (const auto prefix = range.AsPrefix()) {
      prefixes_[*prefix].push_back(item);
      ++lengths_[prefix->size()];
    } else {
      others_.emplace_back(range, item);
    }
    ++size_;
  }

  // The range must be the one that the item was inserted with.
  void Erase(const KeyRange& range, T* item) {
    if (const auto key = range.AsKey()) {
      EraseFrom(keys_, *key, item);
    } else if (const auto prefix = range.AsPrefix()) {
      EraseFrom(prefixes_, *prefix, item);
      if (--lengths_[prefix->size()] == 0) lengths_.erase(prefix->size());
    } else {
      std::erase_if(others_, [&](const auto& other) { return other.second == item; });
    }
    --size_;
  }

  template <typename Visit>
  void ForEachContaining(std::string_view key, Visit visit) const {
    if (const auto it = keys_.find(key); it != keys_.end()) std::ranges::for_each(it->second, visit);
    for (const auto& [length, count] : lengths_) {
      if (length > key.size()) break;
      const auto it = prefixes_.find(key.substr(0, length));
      if (it != prefixes_.end()) std::ranges::for_each(it->second, visit);
    }
    for (const auto& [range, item] : others_) {
      if (range.Contains(key)) visit(item);
    }
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [key, items] : keys_) std::ranges::for_each(items, visit);
    for (const auto& [prefix, items] : prefixes_) std::ranges::for_each(items, visit);
    for (const auto& [range, item] : others_) visit(item);
  }

  std::size_t size() const { return size_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using ByText = absl::flat_hash_map<std::string, std::vector<T*>, Hash, std::equal_to<>>;

  static void EraseFrom(ByText& map, std::string_view text, T* item) {
    const auto it = map.find(text);
    std::erase(it->second, item);
    if (it->second.empty()) map.erase(it);
  }

  ByText keys_;
  ByText prefixes_;
  std::map<std::size_t, int> lengths_;  // of the prefixes in use → how many
  std::vector<std::pair<KeyRange, T*>> others_;
  std::size_t size_ = 0;
};

}  // namespace trainyard::kv
