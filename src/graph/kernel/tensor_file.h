// One tensor as bytes in a file, for save and load.
//
//   "TYTENSOR" | version u32 | type u32 | rank u32 | dims u64 each | elements | CRC-32C of all that u32
//
// All little-endian, elements in the order of the tensor's, a bool as one byte of 0 or 1.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

std::string EncodeTensor(const Tensor& tensor);

// The tensor of exactly these bytes. InvalidArgument: they are no tensor, or one of another version;
// DataLoss: they were one and have been changed or cut.
absl::StatusOr<Tensor> DecodeTensor(std::string_view bytes);

// What kind of tensor the file is of that begins with these bytes; kTensorHeadBytes are enough.
inline constexpr std::size_t kTensorHeadBytes = 256;
absl::StatusOr<VarType> DecodeTensorType(std::string_view head);

// How many bytes a tensor of that type has in a file.
std::size_t EncodedBytes(DataType type, const Dims& dims);

}  // namespace trainyard::graph
