// Sentences that type rules are made of.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "graph/op/schema.h"

namespace trainyard::graph {

// Each is InvalidArgument with the slot's name if it does not hold.
absl::Status ExpectDense(const Typing& typing, std::string_view slot, DataType type = DataType::kFloat32);
absl::Status ExpectRank(const Typing& typing, std::string_view slot, int rank);
// A dense tensor of one element.
absl::Status ExpectScalar(const Typing& typing, std::string_view slot, DataType type = DataType::kFloat32);
absl::Status ExpectSameDims(const Typing& typing, std::string_view a, std::string_view b);
absl::Status ExpectDims(const Typing& typing, std::string_view slot, const Dims& dims);

// The two dims may be equal: one of them is unknown or they are.
bool MayEqual(std::int64_t a, std::int64_t b);
bool MayEqual(const Dims& a, const Dims& b);

// Every output in `to` is of the type of the input `from`.
InferFunction SameAs(std::string from, std::string to = "Out");

// The product of the dims [from, to); unknown if one of them is.
std::int64_t ProductOf(const Dims& dims, int from, int to);

}  // namespace trainyard::graph
