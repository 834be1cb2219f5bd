// Does what a plan says: all of it at once, each write with its precondition, and remembers what it wrote
// until the caches have seen it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/plan.h"
#include "kube/api.h"
#include "reconcile/caches.h"
#include "reconcile/kind.h"

namespace trainyard::reconcile {

struct ActResult {
  int pods_created = 0;
  int pods_deleted = 0;
  int services_created = 0;
  int services_deleted = 0;
  std::vector<std::string> errors;  // "pod default/x: forbidden: ..."; different ones
  std::vector<std::string> done;    // "create pod worker-0: ...", for the log
  bool ok() const { return errors.empty(); }
};

// What the server has of an object now.
absl::StatusOr<kube::ObjectMeta> ReadMeta(kube::Api& api, const kube::Resource& resource,
                                          const kube::ObjectKey& key);

// What is so already counts as done. An error leaves the others alone.
ActResult Act(kube::Api& api, Caches& caches, const Kind& kind, const CompactJob& job,
              const std::vector<job::Action>& actions);

}  // namespace trainyard::reconcile
