// Seeing files at another place than where they are: bind mounts in a mount namespace that is ours alone.
//
// A place that does not exist is made on the machine. Where that is not permitted its nearest existing
// ancestor is covered by a small file system in memory, into which everything that was there is bound back.
#pragma once

#include <string>
#include <vector>

#include "shim/sys.h"

namespace trainyard::shim {

struct MountRequest {
  std::string source;
  std::string target;
  bool read_only = false;
};

// All of them, in this order. Sources are opened before the first target is covered.
Failure MountAll(const std::vector<MountRequest>& requests);
// A private /dev with what programs use of it, and room for /dev/termination-log.
Failure CoverDevices();

}  // namespace trainyard::shim
