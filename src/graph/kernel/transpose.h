// Dims in another order.
#pragma once

#include "graph/ir/program.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

// Dim i of `out` is dim axis[i] of `x`. Both are floats with dims that agree, and do not share memory.
void TransposeDims(const Tensor& x, const Ints& axis, Tensor& out);

}  // namespace trainyard::graph
