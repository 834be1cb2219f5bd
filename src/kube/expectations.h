// Own writes, remembered until the cache has seen them: a pass that looked at a cache without them would make
// the same pod twice, or count a deleted one as running.
//
// Two ways to know that a write has been seen:
//   by uid      what was created or deleted is known by its uid, once its name turns up in the cache
//   by version  a cache that has seen a later version has seen every earlier one
// What is not seen in time is given up and reported: a pass is never held up for ever.
//
// One for each kind of object. Its Seen() goes among the informer's handlers before the one that queues keys,
// or a pass could run for an event that it does not yet believe in.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/cache.h"
#include "kube/resource.h"

namespace trainyard::kube {

// Whether a cache that has seen version `seen` has seen version `wanted`. Versions are whole numbers at every
// API server there is; of those that are not, only equal ones are known to be.
bool IsVersionAtLeast(std::string_view seen, std::string_view wanted);

// All calls may be made from many threads at once. The clock must outlive it.
class Expectations {
 public:
  explicit Expectations(Clock& clock, absl::Duration patience = absl::Minutes(5))
      : clock_(clock), patience_(patience) {}

  // ---- around a write, on behalf of the owner whose pass makes it

  // Before the request, then one of the two when its result is there.
  void ExpectCreation(const ObjectKey& owner, const ObjectKey& object);
  void CreationDone(const ObjectKey& owner, const ObjectKey& object, std::string_view uid,
                    std::string_view version);
  void CreationFailed(const ObjectKey& owner, const ObjectKey& object);
  // Before the request. Seen when the object is gone or is known to be on its way out.
  void ExpectDeletion(const ObjectKey& owner, const ObjectKey& object, std::string_view uid);
  void DeletionFailed(const ObjectKey& owner, const ObjectKey& object, std::string_view uid);
  // After an update, with the version that it made. A version that is no number is not waited for.
  void ExpectVersion(const ObjectKey& owner, const ObjectKey& object, std::string_view version);

  // ---- what the cache has seen

  struct Sight {
    ObjectKey object;
    std::string_view uid;
    std::string_view version;
    bool leaving = false;  // gone, or being deleted
  };
  void Seen(const Sight& sight);
  template <typename T>
  void Seen(const Change<T>& change) {
    const auto& meta = change.Any().meta;
    Seen({.object = meta.Key(),
          .uid = meta.uid,
          .version = meta.resource_version,
          .leaving = change.after == nullptr || meta.deletion_time.has_value()});
  }
  // Everything up to that version.
  void SeenUpTo(std::string_view version);

  // ---- before a pass

  struct Verdict {
    bool caught_up = true;              // the cache has all of the owner's writes, or they were given up
    absl::Duration wait;                // else, until the first of them is given up
    std::vector<std::string> given_up;  // "creation of ns/x"; each is told once
  };
  Verdict Check(const ObjectKey& owner);
  // The owner is no more.
  void Forget(const ObjectKey& owner);

 private:
  enum class Kind { kCreation, kDeletion, kVersion };
  struct Pending {
    Kind kind;
    std::string uid;      // of a creation: empty until it is done
    std::string version;  // empty if not known
    SteadyTime since;
    std::set<std::string> seen_uids;  // of a creation that is not done: what turned up under its name
  };
  using Pendings = std::vector<Pending>;

  static bool IsFulfilledBy(Pending& pending, const Sight& sight);
  void Add(const ObjectKey& owner, const ObjectKey& object, Pending pending) TY_REQUIRES(mu_);
  Pending* Find(const ObjectKey& owner, Kind kind, const ObjectKey& object) TY_REQUIRES(mu_);
  // Removes what `done` says true to: of one object, or of all of the owner's.
  template <typename F>
  void Remove(const ObjectKey& owner, const ObjectKey& object, F&& done) TY_REQUIRES(mu_);
  template <typename F>
  void RemoveAll(const ObjectKey& owner, F&& done) TY_REQUIRES(mu_);
  void Raise(std::string_view version) TY_REQUIRES(mu_);

  Clock& clock_;
  const absl::Duration patience_;
  mutable Mutex mu_;
  std::map<ObjectKey, std::map<ObjectKey, Pendings>> owners_ TY_GUARDED_BY(mu_);  // by owner and by object
  std::map<ObjectKey, std::set<ObjectKey>> owners_of_ TY_GUARDED_BY(mu_);         // who waits for an object
  std::string newest_ TY_GUARDED_BY(mu_);                                         // version seen so far
};

}  // namespace trainyard::kube
