// Writes the programs of a trainer: the forward and the backward pass, gradients out, parameters in.
#pragma once

#include "absl/status/statusor.h"
#include "graph/pass/partition.h"

namespace trainyard::graph {

absl::StatusOr<Graph> MakeTrainerGraph(const Programs& programs, const Partition& partition,
                                       const TranspileOptions& options, int trainer);

}  // namespace trainyard::graph
