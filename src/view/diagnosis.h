// Why a job is as it is: what its state means, what it waits for, and what to try next. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "view/job.h"

namespace trainyard::view {

struct Diagnosis {
  std::string sentence;            // the present state
  std::vector<std::string> waits;  // who is waited for, since when and why
  std::string next;                // the next thing to try; "": nothing is wrong
};
Diagnosis Diagnose(const JobPage& page, absl::Time now);

// The page of `trainyard why`: the diagnosis, and the history of restarts with the last lines of each log.
struct WhyOptions {
  std::size_t lines = 20;     // of each log
  std::size_t restarts = 10;  // that are told in full; the newest
};
std::string PrintWhy(const JobPage& page, absl::Time now, const WhyOptions& options = {});
Document WhyToJson(const JobPage& page, absl::Time now);

// The page of `trainyard describe`.
std::string PrintDescription(const JobPage& page, absl::Time now);

// A table of events, with its heads.
std::vector<std::vector<std::string>> EventRows(const std::vector<Event>& events, absl::Time now);

// "3m ago"; "" for a time that is not known.
std::string Ago(absl::Time time, absl::Time now);

}  // namespace trainyard::view
