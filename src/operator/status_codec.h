// The parts of a job's status that all kinds share, to and from JSON.
#pragma once

#include "base/document.h"
#include "job/job_status.h"

namespace trainyard::ops {

// The member that the counters of roles stand under is the kind's own: "tfReplicaStatuses".
Document PrintJobStatus(const job::JobStatus& status, std::string_view counters);
// What cannot be read is left out: somebody else wrote it.
job::JobStatus ParseJobStatus(const Document* status, std::string_view counters);

}  // namespace trainyard::ops
