// How many pods a role is to have, and who may say so.
#pragma once

#include <optional>
#include <string>

#include "job/job_spec.h"
#include "job/job_view.h"

namespace trainyard::job {

struct SizeDecision {
  int size = 0;
  std::string ignored;  // why it is not what the spec says: "edlPolicy Never keeps it"; empty: it is
  bool operator==(const SizeDecision&) const = default;
};

// `now` is how many it has; nothing: it has none yet. `target` is what the autoscaler wants, if it does.
SizeDecision DecideSize(const RoleSpec& role, std::optional<int> now, std::optional<int> target);

// The size that is stored, or else the one that the role begins with.
int FirstSize(const RoleSpec& role, std::optional<int> stored);

// Whether its roles have the sizes that the spec says.
bool HasStoredSizes(const JobView& view);
// The view of a job whose roles have the sizes that are stored, in the place of what the spec says.
JobView WithStoredSizes(const JobView& view);

}  // namespace trainyard::job
