// Putting this program somewhere else: an init container copies it into a volume that the image of the
// training shares.
#pragma once

#include <string>

#include "agent/sys.h"

namespace trainyard::agent {

// The file is whole and may be executed by all, or is as it was before.
Failure Install(const std::string& to);

}  // namespace trainyard::agent
