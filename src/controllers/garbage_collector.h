// Deletes what belongs to nobody any more: objects all of whose owners are gone. Owners that are deleted in
// the foreground wait for their dependents, and what is to be orphaned loses its owner first.
//
// The caches only say where to look. What is written follows from what the server says at that moment: of an
// owner that cannot be looked up nothing is concluded.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "controllers/actions.h"
#include "controllers/garbage.h"
#include "controllers/loop.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

// Used by one thread. What it is given must outlive it.
class GarbageCollector {
 public:
  GarbageCollector(kube::Api& api, Watches& watches, Clock& clock, IdSource random, Tell tell);

  // The served resources have changed: what could not be resolved is looked at again.
  void ResourcesChanged();
  Loop& loop() { return loop_; }

 private:
  // One object on its way through a pass.
  struct Item {
    std::size_t place;  // of its key
    ObjectRef ref;
    Document live;
    kube::ObjectMeta meta;           // of `live`
    std::vector<OwnerState> owners;  // as meta.owners
    absl::Status trouble;            // why an owner could not be looked up
    bool hopeless = false;           // an owner can never be looked up
    std::vector<Note> notes;
  };
  // Where an owner would be, or why that is not known.
  struct Place {
    std::optional<ObjectRef> ref;
    OwnerState otherwise = OwnerState::kUnknown;
  };

  void Observe(const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after);
  void AddDependents(std::string_view uid);
  void AddWaitingOwners(const kube::ObjectMeta& meta);
  void MarkDead(std::string_view uid);

  std::vector<kube::Outcome> Pass(const std::vector<kube::ObjectKey>& keys);
  bool MayBeGarbage(const kube::ObjectMeta& meta) const;
  std::vector<Item> ReadItems(const std::vector<kube::ObjectKey>& keys, std::vector<kube::Outcome>& outcomes);
  void ResolveOwners(std::vector<Item>& items);
  Place PlaceOf(Item& item, const kube::OwnerReference& owner);
  void NoteMisplaced(Item& item, const kube::OwnerReference& owner) const;
  GarbageView ViewOf(const Item& item) const;
  void Act(std::vector<Item>& items, std::vector<kube::Outcome>& outcomes);
  kube::Outcome PutOff(const Item& item);
  kube::Outcome Orphan(Item& item);
  void AddBlocking(const kube::ObjectMeta& owner);

  kube::Api& api_;
  Watches& watches_;
  const Tell tell_;
  // Uids of objects that are gone; an uid never comes back. The oldest are forgotten first.
  std::set<std::string, std::less<>> dead_;
  std::deque<std::string> dead_in_order_;
  std::set<kube::ObjectKey> unresolved_;  // keys whose owners are of kinds that are not served
  Loop loop_;
};

}  // namespace trainyard::controllers
