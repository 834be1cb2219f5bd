// The decision core: what is to be done for a job now, and why. Every kind of job goes through it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/action.h"
#include "job/job_status.h"
#include "job/job_view.h"

namespace trainyard::job {

// Something to tell the user, once the status is stored.
struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const Event&) const = default;
};

// One pod that failed and is made again, for metrics.
struct Restart {
  std::string role;
  std::string cause;
  bool operator==(const Restart&) const = default;
};

struct JobPlan {
  std::vector<Action> actions;  // may be done all at once
  JobStatus status;             // to be stored if it differs from the view's
  std::vector<Event> events;
  std::vector<Restart> restarts;
  std::optional<absl::Duration> wake_after;  // plan again then, even if nothing happens
  bool operator==(const JobPlan&) const = default;
};

// Total: every view has a plan. What must survive a crash is stored before it is acted on: a plan either
// raises a stored counter or ends the job, and then has no actions, or it acts under what is stored.
//
// The same view has the same plan, and what a plan leads to has an empty one: a job comes to rest.
JobPlan PlanJob(const JobView& view, absl::Time now);

}  // namespace trainyard::job
