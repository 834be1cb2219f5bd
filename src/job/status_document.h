// The status of a job as its object has it: one document for every kind, in JSON. How a kind spells it is
// data.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "base/document.h"
#include "job/job_spec.h"
#include "job/job_status.h"

namespace trainyard::job {

struct StatusSpelling {
  Telling telling = Telling::kByState;
  std::string_view counters;                    // the member that has the counters of roles
  std::string_view restarts = "restartCount";   // of all roles together
  std::string_view ended = "completionTime";    //
  std::string_view updated = "lastUpdateTime";  // of a condition
  // Created reports that the job was accepted, and stays True beside its current state.
  bool created_stays = false;

  bool HasPhase() const { return telling == Telling::kByPhase; }
};
inline constexpr StatusSpelling kTfJobStatus{.counters = "tfReplicaStatuses", .created_stays = true};
inline constexpr StatusSpelling kPyTorchJobStatus{.counters = "replicaStatuses", .created_stays = true};
inline constexpr StatusSpelling kAiTrainingJobStatus{.telling = Telling::kByPhase,
                                                     .counters = "replicaStatuses",
                                                     .restarts = "restartTotal",
                                                     .ended = "endTime",
                                                     .updated = "lastProbeTime"};

Document PrintStatus(const JobStatus& status, const StatusSpelling& spelling);
// `status` may be null. What cannot be read is left out: another program wrote it.
JobStatus ParseStatus(const Document* status, const StatusSpelling& spelling);

// ---- Fields

std::optional<absl::Time> TimeAt(const Document& document, Path path);
int CountAt(const Document& document, Path path);  // 0 if there is none, or a negative one
// The same; bounded, so that adding to it cannot overflow.
std::int64_t LongAt(const Document& document, Path path);

}  // namespace trainyard::job
