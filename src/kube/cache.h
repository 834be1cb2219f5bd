// What is known of a cluster's objects, in memory: typed, immutable, indexed. Filled by an Informer
// (kube/informer.h), read by whoever decides.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "base/check.h"
#include "base/mutex.h"
#include "kube/object_meta.h"
#include "kube/resource.h"

namespace trainyard::kube {

// One object as it was and as it is. One of the two may be null: it is new, or gone.
template <typename T>
struct Change {
  std::shared_ptr<const T> before;
  std::shared_ptr<const T> after;

  const T& Any() const { return after != nullptr ? *after : *before; }
};

// T has a member `meta` of type ObjectMeta. All calls may be made from many threads at once, except
// AddIndex(). What is read is as of one moment, stays as it is, and comes in the order of namespaces and
// names.
template <typename T>
class Cache {
 public:
  using Ptr = std::shared_ptr<const T>;
  // Adds the values under which an object is to be found.
  using IndexBy = std::function<void(const T& object, std::vector<std::string>& values)>;
  using Index = std::size_t;

  // Before there are objects.
  Index AddIndex(IndexBy by) {
    MutexLock lock(mu_);
    TY_CHECK(objects_.empty(), "indexes come before objects");
    indexes_.push_back({std::move(by), {}});
    return indexes_.size() - 1;
  }

  // Null if there is none.
  Ptr Get(const ObjectKey& key) const {
    MutexLock lock(mu_);
    const auto found = objects_.find(KeyView{key.ns, key.name});
    return found == objects_.end() ? nullptr : *found;
  }
  std::vector<Ptr> List() const {
    MutexLock lock(mu_);
    return {objects_.begin(), objects_.end()};
  }
  std::vector<Ptr> ListNamespace(std::string_view ns) const {
    MutexLock lock(mu_);
    std::vector<Ptr> found;
    for (auto at = objects_.lower_bound(KeyView{ns, ""}); at != objects_.end() && (*at)->meta.ns == ns;
         ++at) {
      found.push_back(*at);
    }
    return found;
  }
  std::vector<Ptr> ListBy(Index index, std::string_view value) const {
    MutexLock lock(mu_);
    const auto& by_value = indexes_.at(index).by_value;
    const auto found = by_value.find(value);
    if (found == by_value.end()) return {};
    return {found->second.begin(), found->second.end()};
  }
  std::size_t Size() const {
    MutexLock lock(mu_);
    return objects_.size();
  }

  // ---- for whoever fills it

  // Each returns what has changed. An object of the same version is no change; one of the same name with
  // another uid is two: the one is gone, the other is new.
  std::vector<Change<T>> Apply(Ptr object) {
    MutexLock lock(mu_);
    std::vector<Change<T>> changes;
    Apply(std::move(object), changes);
    return changes;
  }
  std::vector<Change<T>> Remove(const ObjectKey& key) {
    MutexLock lock(mu_);
    std::vector<Change<T>> changes;
    const auto found = objects_.find(KeyView{key.ns, key.name});
    if (found != objects_.end()) Erase(found, changes);
    return changes;
  }
  // Puts the objects in the place of all that were there, in one moment.
  std::vector<Change<T>> Replace(std::vector<Ptr> objects) {
    MutexLock lock(mu_);
    std::vector<Change<T>> changes;
    const Set wanted(objects.begin(), objects.end());
    for (auto at = objects_.begin(); at != objects_.end();) {
      at = wanted.contains(*at) ? std::next(at) : Erase(at, changes);
    }
    for (Ptr& object : objects) Apply(std::move(object), changes);
    return changes;
  }

 private:
  struct KeyView {
    std::string_view ns;
    std::string_view name;
    auto operator<=>(const KeyView&) const = default;
  };
  struct Less {
    using is_transparent = void;
    static KeyView ViewOf(const KeyView& key) { return key; }
    static KeyView ViewOf(const Ptr& object) { return {object->meta.ns.view(), object->meta.name}; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return ViewOf(a) < ViewOf(b);
    }
  };
  using Set = absl::btree_set<Ptr, Less>;
  struct IndexEntry {
    IndexBy by;
    std::map<std::string, Set, std::less<>> by_value;
  };

  void Apply(Ptr object, std::vector<Change<T>>& changes) TY_REQUIRES(mu_) {
    const auto found = objects_.find(object);
    Ptr before = found == objects_.end() ? nullptr : *found;
    if (before != nullptr && before->meta.uid != object->meta.uid) {
      Erase(found, changes);
      before = nullptr;
    }
    if (before != nullptr) {
      if (before->meta.resource_version == object->meta.resource_version) return;
      Unindex(before);
      objects_.erase(before);
    }
    for (IndexEntry& index : indexes_) {
      for (std::string& value : ValuesOf(index, *object)) index.by_value[std::move(value)].insert(object);
    }
    objects_.insert(object);
    changes.push_back({std::move(before), std::move(object)});
  }

  typename Set::iterator Erase(typename Set::iterator at, std::vector<Change<T>>& changes) TY_REQUIRES(mu_) {
    Ptr gone = *at;
    Unindex(gone);
    const auto next = objects_.erase(at);
    changes.push_back({std::move(gone), nullptr});
    return next;
  }

  void Unindex(const Ptr& object) TY_REQUIRES(mu_) {
    for (IndexEntry& index : indexes_) {
      for (const std::string& value : ValuesOf(index, *object)) {
        const auto found = index.by_value.find(value);
        if (found == index.by_value.end()) continue;
        found->second.erase(object);
        if (found->second.empty()) index.by_value.erase(found);
      }
    }
  }

  static std::vector<std::string> ValuesOf(const IndexEntry& index, const T& object) {
    std::vector<std::string> values;
    index.by(object, values);
    return values;
  }

  mutable Mutex mu_;
  Set objects_ TY_GUARDED_BY(mu_);
  std::vector<IndexEntry> indexes_ TY_GUARDED_BY(mu_);
};

// The usual index: by the value of a label.
template <typename T>
typename Cache<T>::IndexBy IndexByLabel(std::string label) {
  return [label = std::move(label)](const T& object, std::vector<std::string>& values) {
    if (const auto value = object.meta.labels.Find(label)) values.emplace_back(*value);
  };
}

}  // namespace trainyard::kube
