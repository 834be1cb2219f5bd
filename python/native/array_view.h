// The elements of an array that somebody else keeps alive.
#pragma once

#include <cstring>

#include "graph/ir/types.h"
#include "graph/kernel/tensor.h"

namespace trainyard::python {

struct ArrayView {
  const void* data = nullptr;
  graph::DataType type = graph::DataType::kFloat32;
  graph::Dims dims;

  // Puts the elements into the tensor, whose memory is used again if it can be.
  void CopyTo(graph::Tensor& tensor) const {
    tensor.Resize(type, dims);
    if (!tensor.empty()) std::memcpy(tensor.raw(), data, tensor.bytes());
  }
};

}  // namespace trainyard::python
