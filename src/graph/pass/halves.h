// Cuts a program that trains in two: what computes gradients, for many, and what learns from them, for one.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/build/builder.h"
#include "graph/ir/program.h"
#include "graph/pass/optimize.h"

namespace trainyard::graph {

struct Halves {
  Program compute;                  // the forward and the backward pass
  Program update;                   // clipping, decay, schedule, updates, running averages
  std::vector<std::string> shared;  // persistable variables that computing needs: they go out; by name
  std::vector<std::string> sent;    // variables that learning needs of computing: they come back; by name
  std::string loss;                 // what is minimised
};

// InvalidArgument: the program does not learn.
absl::StatusOr<Halves> CutInHalves(const Program& main);

// The variables that the update reads and that nothing in it makes: its gradients, by name.
std::vector<std::string> SentTo(const Program& update);

// A variable of a model that is not written as a program.
struct Learnt {
  std::string name;
  Dims dims;           // of f32
  bool learns = true;  // else what comes back is its new value: a running average that others keep
};
// The update, and the startup program of what it keeps, for such a model. The gradient of x is called x@GRAD.
// InvalidArgument: which name or value is wrong.
absl::StatusOr<Programs> MakeUpdate(const std::vector<Learnt>& variables, const Optimizer& optimizer);

}  // namespace trainyard::graph
