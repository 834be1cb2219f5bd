// Parts of the mathematical kernels, each in a file of its own.
#pragma once

#include "graph/kernel/kernel.h"

namespace trainyard::graph {

// Of two tensors: elementwise_*.
void AddBinaryKernels(KernelTable& table);
// What bounds gradients, and the norms that it goes by.
void AddClipKernels(KernelTable& table);

}  // namespace trainyard::graph
