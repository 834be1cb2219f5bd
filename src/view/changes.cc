#include "view/changes.h"

#include <utility>

namespace trainyard::view {

JobChanges::JobChanges(kube::Api& api, Clock& clock, std::string ns, std::vector<Kind> kinds)
    : clock_(clock),
      watches_(api, clock, {.ns = std::move(ns), .kinds = std::move(kinds)}, {.changed = [this] {
                 const MutexLock lock(mu_);
                 dirty_ = true;
                 changed_.SignalAll();
               }}) {}

bool JobChanges::Await(absl::Duration time) {
  const SteadyTime deadline = clock_.Steady() + time;
  const MutexLock lock(mu_);
  while (!dirty_ && clock_.Steady() < deadline) changed_.WaitUntil(mu_, deadline);
  return std::exchange(dirty_, false);
}

}  // namespace trainyard::view
