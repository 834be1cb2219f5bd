// The parts of a job's status that all kinds share, to and from JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/document.h"
#include "job/job_spec.h"
#include "job/job_status.h"

namespace trainyard::ops {

// How a kind spells its conditions.
struct ConditionSpelling {
  job::Telling telling = job::Telling::kByState;
  std::string_view updated = "lastUpdateTime";  // when it was looked at last
  // Created says that the job was accepted, and stays True beside its current state.
  bool created_stays = false;
};

// The member that the counters of roles stand under is the kind's own: "tfReplicaStatuses".
Document PrintJobStatus(const job::JobStatus& status, std::string_view counters,
                        const ConditionSpelling& spelling);
// What cannot be read is left out: somebody else wrote it.
job::JobStatus ParseJobStatus(const Document* status, std::string_view counters,
                              const ConditionSpelling& spelling);

// ---- parts, for kinds that put them together otherwise

std::optional<absl::Time> TimeAt(const Document& document, Path path);
void AddTime(Object& object, std::string_view key, const std::optional<absl::Time>& time);
int CountAt(const Document& document, Path path);  // 0 if there is none, or a negative one
// The same; never so large that counting on would not fit.
std::int64_t LongAt(const Document& document, Path path);
std::optional<int> SizeAt(const Document& document, Path path);
job::IndexSet IndexesAt(const Document& document, Path path);  // empty if there are none

Array PrintConditions(const job::JobStatus& status, const ConditionSpelling& spelling);
void ParseConditions(const Document& document, const ConditionSpelling& spelling, job::JobStatus& status);
// The spec that a job goes on under while an edit is not valid, which the condition SpecInvalid reports.
void AddLastValidSpec(Object& object, const job::JobStatus& status);

// What is known of the roles' restarts, under "restarts"; nothing if there were none.
// How often a gang gave its nodes back, and when it tries again.
void AddGang(Object& object, const job::JobStatus& status);
void ParseGang(const Document& document, job::JobStatus& status);

void AddRestarts(Object& object, const job::JobStatus& status);
void ParseRestarts(const Document& document, job::JobStatus& status);

// The number of pods that run, of all: "3/4".
std::string PrintReady(const job::JobStatus& status);
void ParseReady(std::string_view text, job::JobStatus& status);

}  // namespace trainyard::ops
