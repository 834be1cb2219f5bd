// Which objects are garbage: pure decisions about owners and dependents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "kube/api.h"
#include "kube/object_meta.h"

namespace trainyard::controllers {

inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";
inline constexpr std::string_view kOrphanFinalizer = "orphan";

// What is known of an owner that an object names.
enum class OwnerState : std::uint8_t {
  kAlive,
  kWaiting,  // being deleted, and waits for its dependents
  kAbsent,   // the server has no object of that name and uid
  kUnknown,  // could not be found out; never taken for absent
};

struct GarbageView {
  bool being_deleted = false;
  bool foreground = false;  // has the finalizer
  bool orphan = false;      // has the finalizer
  std::vector<OwnerState> owners;

  // The objects that name it as owner.
  bool dependents_known = true;  // false: there may be more
  std::size_t dependents = 0;
  std::size_t blocking = 0;      // those that it has to wait for
  bool dependent_waits = false;  // one of them waits for dependents of its own
};

enum class GarbageVerdict : std::uint8_t {
  kKeep,
  kLookAgain,         // something is not known that the decision hangs on
  kDelete,            // as `propagation` says
  kDropReferences,    // to owners that are absent or wait: another one keeps the object
  kAwaitDependents,   // it is deleted once they are gone
  kEndForeground,     // they are gone: the finalizer is to be removed
  kOrphanDependents,  // they are to lose their reference, and then it its finalizer
};

struct GarbageDecision {
  GarbageVerdict verdict = GarbageVerdict::kKeep;
  kube::Propagation propagation = kube::Propagation::kBackground;
  // Before it is deleted, its owners are told not to wait for it: they and it would wait for each other.
  bool unblock = false;
  bool operator==(const GarbageDecision&) const = default;
};

GarbageDecision DecideGarbage(const GarbageView& view);

// ---- changes to objects; false: nothing is to be changed

// Removes the references to owners whose place in `states` says that they are absent or wait.
bool DropReferences(Document& object, const std::vector<OwnerState>& states);
// Removes the reference to one owner.
bool DropReference(Document& object, std::string_view owner_uid);
bool UnblockOwners(Document& object);

}  // namespace trainyard::controllers
