// Programs as bytes: equal programs have equal bytes, and whatever is read is checked before it is believed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"

namespace trainyard::graph {

// Larger ones are refused before they are read.
inline constexpr std::size_t kMaxProgramBytes = std::size_t{64} << 20;

std::string Encode(const Program& program);

// InvalidArgument: the bytes are no program of this version, or break a rule of graph/ir/validate.h; the
// message names the block and the operator. Whether its operators exist and fit is for graph/op/check.h to
// say.
absl::StatusOr<Program> Decode(std::string_view bytes);

}  // namespace trainyard::graph
