// A map of bounded size: the entry that has not been used for longest makes room for a new one.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace trainyard::kube {

template <typename V>
class LruMap {
 public:
  explicit LruMap(std::size_t most) : most_(most) { TY_CHECK(most > 0, "a map needs room for one entry"); }

  // The entry, made if there is none; it is the one used last then. Valid until another is made.
  V& Use(const std::string& key) {
    const auto found = places_.find(key);
    if (found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    if (entries_.size() == most_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, V());
    places_[entries_.front().first] = entries_.begin();
    return entries_.front().second;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const std::string, V>>;
  const std::size_t most_;
  Entries entries_;  // the one used last first
  std::unordered_map<std::string_view, typename Entries::iterator> places_;
};

}  // namespace trainyard::kube
