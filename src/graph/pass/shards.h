// Cuts what learns (graph/pass/halves.h) into parts for several processes, as the transpiler cuts a program
// for pservers: each parameter in blocks of rows, each block with its accumulators in one place. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/build/builder.h"
#include "graph/ir/program.h"

namespace trainyard::graph {

// What one process keeps and learns. A variable that is a part of another says of which (Var::slice).
struct Shard {
  Programs programs;                // main: the updates; startup: the first values
  std::vector<std::string> shared;  // of its variables, those that computing needs; by name
  std::vector<Var> gradients;       // that it must be told of, under the names that they have here
};

// `learning`: the update and the startup program of a whole model, `shared`: its variables that computing
// needs. What no operator updates is on the first shard. InvalidArgument: something cannot be done in parts,
// and what to do instead.
absl::StatusOr<std::vector<Shard>> CutIntoShards(const Programs& learning,
                                                 const std::vector<std::string>& shared, int shards);

// All that such a model keeps, whole: the variables of both programs that outlive a step.
std::vector<Var> KeptVariables(const Programs& learning);

}  // namespace trainyard::graph
