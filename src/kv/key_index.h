// Pure: which versions of which keys there are, and where their records lie. Held in memory; the values are
// not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "kv/journal.h"
#include "kv/store.h"

namespace trainyard::kv {

struct Version {
  Revision mod_revision = 0;
  Revision create_revision = 0;
  std::int64_t version = 0;
  LeaseId lease = kNoLease;
  Location location;
  std::uint32_t sub = 0;  // order within the revision
  bool deleted = false;   // the key's end
  bool operator==(const Version&) const = default;
};

inline KeyValue ToKeyValue(std::string_view key, const Version& version, std::string value = "") {
  return {.key = std::string(key),
          .value = std::move(value),
          .create_revision = version.create_revision,
          .mod_revision = version.mod_revision,
          .version = version.version,
          .lease = version.lease};
}

class KeyIndex {
 public:
  // The key as it was at revision `at`; null if it did not exist then. Valid until the index changes.
  const Version* Find(std::string_view key, Revision at) const;

  // Calls visit(key, version) for each key that existed at `at`, in order, until it returns false.
  template <typename Visit>
  void ForEach(const KeyRange& range, Revision at, Visit visit) const;

  // Calls visit(key, version, previous) for each version of revision `from` or later, ends of keys too, in
  // the order of the keys. `previous` is the key as it was before, or null.
  template <typename Visit>
  void ForEachChange(const KeyRange& range, Revision from, Visit visit) const;

  // `version` is newer than all that the key has.
  void Add(std::string_view key, const Version& version);
  // Takes back the last Add() of this key.
  void RemoveNewest(std::string_view key);
  // Forgets what was superseded before `at`, and keys that ended before it; returns what it forgot.
  std::vector<Version> Compact(Revision at);
  // The version that `mod_revision` made lies elsewhere now. False if it is not here any more.
  bool Relocate(std::string_view key, Revision mod_revision, const Location& location);

  std::size_t size() const { return keys_.size(); }

 private:
  using Versions = absl::InlinedVector<Version, 1>;  // oldest first
  using Keys = absl::btree_map<std::string, Versions, std::less<>>;

  static const Version* At(const Versions& versions, Revision at);
  // Where the range starts and ends; the same place if it is empty, also when its end lies before its start.
  std::pair<Keys::const_iterator, Keys::const_iterator> Bounds(const KeyRange& range) const {
    if (range.Empty()) return {keys_.end(), keys_.end()};
    return {keys_.lower_bound(range.begin), range.end ? keys_.lower_bound(*range.end) : keys_.end()};
  }

  Keys keys_;
};

inline const Version* KeyIndex::At(const Versions& versions, Revision at) {
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->mod_revision <= at) return it->deleted ? nullptr : &*it;
  }
  return nullptr;
}

template <typename Visit>
void KeyIndex::ForEach(const KeyRange& range, Revision at, Visit visit) const {
  for (auto [it, end] = Bounds(range); it != end; ++it) {
    const Version* version = At(it->second, at);
    if (version != nullptr && !visit(std::string_view(it->first), *version)) return;
  }
}

template <typename Visit>
void KeyIndex::ForEachChange(const KeyRange& range, Revision from, Visit visit) const {
  for (auto [it, end] = Bounds(range); it != end; ++it) {
    const Version* previous = nullptr;
    for (const Version& version : it->second) {
      if (version.mod_revision >= from) visit(std::string_view(it->first), version, previous);
      previous = version.deleted ? nullptr : &version;
    }
  }
}

}  // namespace trainyard::kv
