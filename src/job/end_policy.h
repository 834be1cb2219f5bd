// When a job is over: what the ends of its pods mean for their role, and those of the roles for the job.
#pragma once

#include <cstdint>
#include <string>

#include "job/job_spec.h"
#include "job/job_status.h"
#include "job/plan_builder.h"

namespace trainyard::job {

// Whether the success of this index is waited for. Then its main container alone counts, and counts even if
// it has been started again since.
bool Decides(const RoleSpec& role, int index);

enum class Verdict : std::uint8_t { kOpen, kSucceeded, kFailed };

// Of a role, by its completePolicy and failPolicy. A pod that has failed for good and that the failPolicy
// does not mind is as if it were not there: All is then all of the others. A role whose completePolicy can no
// longer be met has failed.
Verdict JudgeRole(const RoleSpec& role, const RoleStatus& status);

struct JobVerdict {
  Verdict verdict = Verdict::kOpen;
  bool node = false;  // a failure for which a node is to blame
  std::string why;    // "chief-0 and all 3 of worker ended with 0"
};

// Of a job, by those of its roles that have a completePolicy. Rank0 looks at the pods with index 0 of all
// roles: the job succeeds when all of them have, and fails when one has. With None, or with no role that
// decides, it is over when all pods have ended. What can no longer matter is not waited for.
JobVerdict JudgeJob(const JobSpec& spec, const JobStatus& status);

// ---- What is left to do for a job that has ended, or has no pods for a while.

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
