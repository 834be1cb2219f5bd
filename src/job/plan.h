// The decision core: what is to be done for a job now, and why. Every kind of job goes through it.
#pragma once

#include <optional>
#include <string>
#include <variant>
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

// What a plan decides. What must survive a crash is stored before anything is done under it, so only one of
// the three can have actions.
struct Act {
  std::vector<Action> actions;  // under the stored counters; may be done all at once
  bool operator==(const Act&) const = default;
};
// The status raises a counter, changes a size or gives up a pod: it is stored, then the job is planned again.
struct Raise {
  bool operator==(const Raise&) const = default;
};
// The status ends the job, or begins to: it is stored, then what that leaves to be done is planned.
struct End {
  bool operator==(const End&) const = default;
};
using Decision = std::variant<Act, Raise, End>;

struct JobPlan {
  Decision decision;
  JobStatus status;  // to be stored if it differs from the view's
  std::vector<Event> events;
  std::vector<Restart> restarts;
  std::optional<absl::Duration> wake_after;  // plan again then, even if nothing happens
  bool operator==(const JobPlan&) const = default;

  const std::vector<Action>& actions() const;  // none unless the decision is Act
};

// Total: every view has a plan. The same view has the same plan, and what a plan leads to has an empty one: a
// job comes to rest.
JobPlan PlanJob(const JobView& view, absl::Time now);

}  // namespace trainyard::job
