// The rules that every program keeps, whoever made it: what a store or a peer hands over is held to them
// before anything else looks at it. What operators mean is not known here; graph/op/check.h knows.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "graph/ir/program.h"

namespace trainyard::graph {

inline constexpr std::size_t kMaxBlocks = 65536;
inline constexpr std::size_t kMaxOps = 1000000;   // of a program
inline constexpr std::size_t kMaxVars = 1000000;  // of a program
inline constexpr std::size_t kMaxNameBytes = 512;
inline constexpr int kMaxBlockDepth = 32;

// A name of a variable, slot, operator or program: printable ASCII without spaces, quotes and '/', not empty.
bool IsName(std::string_view name);

// Each block's parent comes before it, names are names and come once in a block, dims are in bounds, and
// every variable that an operator names can be found from its block. InvalidArgument: which rule, where.
absl::Status Validate(const Program& program);

}  // namespace trainyard::graph
