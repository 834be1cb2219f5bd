// A plan that is only shown: the same function that the operator decides by, run on what is there now.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/document.h"
#include "job/job_view.h"
#include "job/plan.h"
#include "kube/api.h"
#include "operator/kind.h"

namespace trainyard::ops {

// A job that has just been submitted. InvalidArgument: the document is no object of the kind.
absl::StatusOr<job::JobView> ViewNew(const Kind& kind, Document document);
// A job of the cluster, as it is now. NotFound: there is none; the message lists those that there are.
absl::StatusOr<job::JobView> ViewLive(const Kind& kind, kube::Api& api, Clock& clock,
                                      const kube::ObjectKey& key);

// What would be done and why, for people; and the same as JSON.
std::string PrintPlan(const job::JobView& view, const job::JobPlan& plan);
Document PlanToJson(const job::JobView& view, const job::JobPlan& plan);

}  // namespace trainyard::ops
