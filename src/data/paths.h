// The files that a user's list of paths and globs stands for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::data {

// In the order given; what one glob matches, in the order of bytes. A path that exists is itself even if it
// could be read as a glob. InvalidArgument: the list or a path in it is empty. NotFound: nothing matches.
absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths);

}  // namespace trainyard::data
