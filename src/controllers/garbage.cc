#include "controllers/garbage.h"

#include <algorithm>
#include <functional>

namespace trainyard::controllers {
namespace {

bool HasState(const GarbageView& view, OwnerState state) {
  return std::ranges::find(view.owners, state) != view.owners.end();
}

GarbageDecision DecideEnding(const GarbageView& view) {
  if (!view.orphan && !view.foreground) return {};
  if (!view.dependents_known) return {.verdict = GarbageVerdict::kLookAgain};
  if (view.orphan) return {.verdict = GarbageVerdict::kOrphanDependents};
  return {.verdict = view.blocking > 0 ? GarbageVerdict::kAwaitDependents : GarbageVerdict::kEndForeground};
}

// Keeps the references for which `keep(place)` is true.
bool FilterReferences(Document& object, const std::function<bool(std::size_t)>& keep) {
  Array* references = ArrayAt(object, {"metadata", "ownerReferences"});
  if (references == nullptr) return false;
  Array kept;
  for (std::size_t i = 0; i < references->size(); ++i) {
    if (keep(i)) kept.push_back((*references)[i]);
  }
  if (kept.size() == references->size()) return false;
  if (kept.empty()) {
    Remove(*ObjectAt(object, {"metadata"}), "ownerReferences");
  } else {
    *references = std::move(kept);
  }
  return true;
}

}  // namespace

GarbageDecision DecideGarbage(const GarbageView& view) {
  if (view.being_deleted) return DecideEnding(view);
  if (view.owners.empty()) return {};
  if (HasState(view, OwnerState::kUnknown)) return {.verdict = GarbageVerdict::kLookAgain};
  const bool waiting = HasState(view, OwnerState::kWaiting);
  if (HasState(view, OwnerState::kAlive)) {
    const bool stale = waiting || HasState(view, OwnerState::kAbsent);
    return {.verdict = stale ? GarbageVerdict::kDropReferences : GarbageVerdict::kKeep};
  }
  if (waiting && !view.dependents_known) return {.verdict = GarbageVerdict::kLookAgain};
  if (waiting && view.dependents > 0) {
    return {.verdict = GarbageVerdict::kDelete,
            .propagation = kube::Propagation::kForeground,
            .unblock = view.dependent_waits};
  }
  const kube::Propagation propagation = view.orphan       ? kube::Propagation::kOrphan
                                        : view.foreground ? kube::Propagation::kForeground
                                                          : kube::Propagation::kBackground;
  return {.verdict = GarbageVerdict::kDelete, .propagation = propagation};
}

bool DropReferences(Document& object, const std::vector<OwnerState>& states) {
  return FilterReferences(object, [&](std::size_t i) {
    return i >= states.size() || (states[i] != OwnerState::kAbsent && states[i] != OwnerState::kWaiting);
  });
}

bool DropReference(Document& object, std::string_view owner_uid) {
  const Array* references = ArrayAt(object, {"metadata", "ownerReferences"});
  if (references == nullptr) return false;
  return FilterReferences(object,
                          [&](std::size_t i) { return StringAt((*references)[i], {"uid"}) != owner_uid; });
}

bool UnblockOwners(Document& object) {
  Array* references = ArrayAt(object, {"metadata", "ownerReferences"});
  if (references == nullptr) return false;
  bool changed = false;
  for (Document& reference : *references) {
    if (!BoolAt(reference, {"blockOwnerDeletion"})) continue;
    reference.get_object()["blockOwnerDeletion"] = false;
    changed = true;
  }
  return changed;
}

}  // namespace trainyard::controllers
