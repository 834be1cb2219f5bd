// Ends what an embedded cluster has left running, when there is no node any more that could.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trainyard::node {

// How many pods of the home have a shim that lives.
int CountPods(const std::string& home);

// Asks every process to end, and kills what is left when the grace is over. DeadlineExceeded: a shim does not
// end; the message says which.
absl::Status EndPods(const std::string& home, absl::Duration grace);

}  // namespace trainyard::node
