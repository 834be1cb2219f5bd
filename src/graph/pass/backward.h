// Adds to a program what computes gradients.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"

namespace trainyard::graph {

struct ParameterGradient {
  std::string parameter;
  std::string gradient;
  bool operator==(const ParameterGradient&) const = default;
};

struct BackwardOptions {
  std::vector<std::string> parameters;         // none: every parameter that the loss depends on
  std::set<std::string, std::less<>> without;  // variables that get no gradient, beside those marked so
};

// Appends to block 0 the operators that compute the gradient of `loss`, of one element, for each parameter,
// and declares their variables. The gradient of x is called x@GRAD; where several operators use x, each one's
// share is x@GRAD@RENAME@k and a `sum` adds them. Operators of no use for the wanted gradients get none.
//
// InvalidArgument: the loss is not there or not one number; a listed parameter does not lead to it; an
// operator on the way runs a block, or writes a variable that is written twice.
absl::StatusOr<std::vector<ParameterGradient>> AppendBackward(Program& program, std::string_view loss,
                                                              const BackwardOptions& options = {});

// Appends the operator to the block, completed, with its outputs declared as their types follow.
absl::Status AppendOp(Program& program, int block, Op op);

}  // namespace trainyard::graph
