// Variables in a folder: one file NAME.tensor (graph/kernel/tensor_file.h) for each.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "graph/exec/scope.h"

namespace trainyard::graph {

// Writes every variable that has a dense value. Makes the folder if it is not there. Each file is replaced
// whole, one after the other. FailedPrecondition: there is nothing to write.
absl::Status SaveVariables(const Scope& scope, const std::string& folder);

// Reads every file, and sets either all of the variables or, after an error, none. NotFound: a variable that
// has a value has no file, unless that is allowed. InvalidArgument: a variable has a value of another type or
// shape.
absl::Status LoadVariables(Scope& scope, const std::string& folder, bool allow_missing);

}  // namespace trainyard::graph
