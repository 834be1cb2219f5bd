// When a job has succeeded.
#pragma once

#include <optional>
#include <string>

#include "job/job_spec.h"
#include "job/job_status.h"

namespace trainyard::job {

// Whether the success of this index is waited for. Then its main container alone counts, and counts even if
// it has been started again since.
bool Decides(const RoleSpec& role, int index);

// Who has succeeded, if that is the success of the job: "chief-0 and all 3 of worker".
std::optional<std::string> FindSuccess(const JobSpec& spec, const JobStatus& status);

}  // namespace trainyard::job
