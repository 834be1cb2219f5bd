// A plan that is only shown: the same function that the operator decides by, run on what is there now.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/document.h"
#include "job/job_view.h"
#include "job/plan.h"
#include "kube/api.h"
#include "operator/autoscaler.h"
#include "reconcile/kind.h"

namespace trainyard::ops {

// A job that has just been submitted. InvalidArgument: the document is no object of the kind.
absl::StatusOr<job::JobView> ViewNew(const reconcile::Kind& kind, Document document);
// A job of the cluster, as it is now. NotFound: there is none; the message lists those that there are.
absl::StatusOr<job::JobView> ViewLive(const reconcile::Kind& kind, kube::Api& api, Clock& clock,
                                      const kube::ObjectKey& key);

// What the autoscaler sees and would change, of all jobs of the kinds.
struct ScalingPreview {
  ScalingScene scene;
  std::vector<job::scale::Change> changes;
};
absl::StatusOr<ScalingPreview> ViewScaling(const std::vector<std::unique_ptr<reconcile::Kind>>& kinds,
                                           kube::Api& api, Clock& clock, const job::scale::Limits& limits);
std::string PrintScaling(const ScalingPreview& preview, const job::scale::Limits& limits);
Document ScalingToJson(const ScalingPreview& preview);

// What would be done and why, for people; and the same as JSON.
std::string PrintPlan(const job::JobView& view, const job::JobPlan& plan);
Document PlanToJson(const job::JobView& view, const job::JobPlan& plan);

}  // namespace trainyard::ops
