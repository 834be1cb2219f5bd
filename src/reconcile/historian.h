// Keeps what is left of a job's pods (kube/pod_history.h): of those that a plan deletes, and of those that
// somebody else does.
#pragma once

#include <vector>

#include "base/clock.h"
#include "job/job_view.h"
#include "job/plan.h"
#include "kube/api.h"
#include "kube/pod_history.h"
#include "reconcile/caches.h"
#include "reconcile/kind.h"

namespace trainyard::reconcile {

// All calls from many threads. What is given outlives it.
class Historian {
 public:
  Historian(kube::Api& api, Clock& clock, const Kind& kind);

  // What is to be known of pods that go, before they are gone.
  std::vector<kube::GonePod> Collect(const job::JobView& view, const job::JobPlan& plan, const Caches& caches,
                                     absl::Time now);
  // A history that cannot be stored is no reason to stop: it is logged.
  void Store(const CompactJob& job, const std::vector<kube::GonePod>& gone);

 private:
  const Kind& kind_;
  kube::PodHistory history_;
};

}  // namespace trainyard::reconcile
