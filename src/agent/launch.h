// Starting the script: everything between fork and exec.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/launch_plan.h"
#include "agent/sys.h"

namespace trainyard::agent {

struct Launched {
  pid_t pid = -1;
  OwnedFd out;
  OwnedFd err;
  OwnedFd report;  // what keeps the program from running, in words; then its end, also when nothing does
};

// Forks. The agent's loop goes on at once; the child reports. The script has a session of its own, no
// standard input, no descriptor but its output, and dies with the agent.
Failure Launch(const LaunchPlan& plan, Launched& launched);

}  // namespace trainyard::agent
