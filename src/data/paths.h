// The files that a user's list of paths, folders and globs stands for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::data {

// In the order given; what one glob matches and what is in one folder, in the order of bytes. A folder that
// is named stands for its files that are not hidden, those of its own folders not among them. A path that
// exists is itself even if it could be read as a glob. InvalidArgument: the list or a path in it is empty.
// NotFound: nothing matches, or a folder has no files.
absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths);

}  // namespace trainyard::data
