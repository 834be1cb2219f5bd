// What is left to do for a job that has ended, or has no pods for a while.
#pragma once

#include "job/plan_builder.h"

namespace trainyard::job {

// Cleans up as the policy says, keeps counting, and at last deletes the job itself.
void PlanFinished(PlanBuilder& builder);
// Removes the pods and services.
void PlanSuspended(PlanBuilder& builder);

}  // namespace trainyard::job
