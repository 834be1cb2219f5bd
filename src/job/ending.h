// What is left to do for a job that has ended, or has no pods for a while.
#pragma once

#include "job/plan_builder.h"

namespace trainyard::job {

// The job is to end so. One that is told of in phases is Terminating until its pods have ended, unless they
// all have.
void Conclude(PlanBuilder& builder, Ending ending);
// Goes on with that.
void PlanEnding(PlanBuilder& builder);
// Cleans up as the policy says, keeps counting, and at last deletes the job itself.
void PlanFinished(PlanBuilder& builder);
// Removes the pods and services.
void PlanSuspended(PlanBuilder& builder);

}  // namespace trainyard::job
