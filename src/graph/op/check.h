// Holds programs to what operators are: that they exist, that their slots and attributes fit, and that types
// go together. Whoever runs or rewrites a program may then rely on it.
#pragma once

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/op/schema.h"

namespace trainyard::graph {

// The operator with every attribute that it was not given at its standard value. InvalidArgument: its type is
// unknown, a slot or attribute is unknown, missing or of the wrong kind.
absl::StatusOr<Op> Complete(Op op, const OpTable& table = Ops());

// The types of the outputs, by slot, from those of the inputs.
absl::StatusOr<Typing::Types> InferTypes(const Op& op, Typing::Types inputs, const OpTable& table = Ops());

// Completes every operator and holds the declared type of every output to the one that follows from the
// inputs. A dim that is unknown agrees with any. Validate() must have been OK. InvalidArgument: which
// operator of which block, and why.
absl::StatusOr<Program> CheckProgram(Program program, const OpTable& table = Ops());

// Whether a variable of the type `declared` may hold a value of the type `found`.
bool Agrees(const VarType& declared, const VarType& found);

}  // namespace trainyard::graph
