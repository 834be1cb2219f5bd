// How often the agent in the master's pod has restarted the master, and why. The operator sees none of it, so
// the master itself counts, in the job's store: the count and its limit outlive the pod.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "job/progress.h"

namespace trainyard::master {

// How the process before this one in the same pod ended.
struct LastEnd {
  std::string cause;   // "was killed by signal 9 (SIGKILL)"
  bool early = false;  // a pserver was lost before the model had made a step
};

using Restarts = job::MasterRestarts;

void Count(Restarts& restarts, const LastEnd& end, absl::Time now);

// What cannot be read counts as nothing.
Restarts ParseRestarts(std::string_view json);

}  // namespace trainyard::master
