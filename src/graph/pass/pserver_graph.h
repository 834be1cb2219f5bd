// Writes the programs of a pserver: its pieces of parameters, and for each a block of operators that learns.
#pragma once

#include "absl/status/statusor.h"
#include "graph/pass/partition.h"

namespace trainyard::graph {

absl::StatusOr<Graph> MakePserverGraph(const Programs& programs, const Partition& partition,
                                       const TranspileOptions& options, int pserver);

}  // namespace trainyard::graph
