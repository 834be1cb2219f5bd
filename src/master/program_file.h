// A program and its startup program as one list of bytes, as the Python package writes them.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "graph/build/builder.h"

namespace trainyard::master {

// InvalidArgument: these are other bytes.
absl::StatusOr<graph::Programs> DecodePrograms(std::string_view bytes);
std::string EncodePrograms(const graph::Programs& programs);

}  // namespace trainyard::master
