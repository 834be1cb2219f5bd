// Reading a file that a user named.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace trainyard {

// The whole of it, from its start or, for a pipe, from where it is; "-" is standard input. Every error names
// the file; InvalidArgument: it has more than `most` bytes, and is not read further.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t most);

}  // namespace trainyard
