// Finding out what this machine permits, by doing it in a child that is thrown away.
#pragma once

#include <string>

#include "shim/sandbox.h"

namespace trainyard::shim {

struct Permitted {
  Namespaces namespaces = Namespaces::kNone;
  bool own_pids = false;
  bool bind_filter = false;
  std::string namespaces_reason;   // why there are none
  std::string bind_filter_reason;  // why there is none
};

Permitted ProbeMachine();

// The trial's process under the filter, started as `trainyard-shim bind-trial`: binds the wildcard address
// and looks what it got. The exit code is 0 if that was the trial's address.
int RunBindTrial();

}  // namespace trainyard::shim
