// How the learning rate changes with the steps.
#pragma once

#include <cstdint>

#include "graph/ir/program.h"

namespace trainyard::graph {

// The rate that a learning_rate operator, complete and checked, gives for a step.
double RateAt(const Op& op, std::int64_t step);

}  // namespace trainyard::graph
