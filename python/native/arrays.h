// Tensors as numpy arrays, and arrays as tensors.
#pragma once

#include <pybind11/numpy.h>

#include "array_view.h"
#include "graph/kernel/tensor.h"

namespace trainyard::python {

// The array must be contiguous, of float32, int64 or bool: executor.py makes it so.
ArrayView ViewOf(const pybind11::array& array);

// An array over the tensor's own memory, which it keeps alive.
pybind11::array ArrayOf(graph::Tensor tensor);

}  // namespace trainyard::python
