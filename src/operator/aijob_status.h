// The status of an AITrainingJob, to and from JSON: the fields of the original, and beside them what must
// survive a crash.
#pragma once

#include "base/document.h"
#include "job/job_status.h"

namespace trainyard::ops {

Document PrintAiJobStatus(const job::JobStatus& status);
// What cannot be read is left out: somebody else wrote it.
job::JobStatus ParseAiJobStatus(const Document* status);

}  // namespace trainyard::ops
