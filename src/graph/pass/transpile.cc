#include "graph/pass/transpile.h"

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "graph/op/check.h"
#include "graph/pass/partition.h"
#include "graph/pass/pserver_graph.h"
#include "graph/pass/trainer_graph.h"

namespace trainyard::graph {

std::string_view Name(GraphRole role) { return role == GraphRole::kTrainer ? "trainer" : "pserver"; }

std::string_view Name(SyncMode mode) { return mode == SyncMode::kSync ? "sync" : "async"; }

std::string GraphId(GraphRole role, int index) { return StrCat(Name(role), "-", index); }

absl::StatusOr<Graphs> Transpile(const Programs& programs, const TranspileOptions& options) {
  TY_RETURN_IF_ERROR(Validate(programs.main));
  TY_RETURN_IF_ERROR(Validate(programs.startup));
  if (programs.main.blocks.size() > 1)
    return absl::InvalidArgumentError(StrCat(
        "program ", programs.main.id, " has blocks of its own, and only flat programs are transpiled"));
  TY_ASSIGN_OR_RETURN(const Partition partition, MakePartition(programs, options));
  Graphs graphs;
  for (int i = 0; i < options.trainers; ++i) {
    TY_ASSIGN_OR_RETURN(graphs.trainers.emplace_back(), MakeTrainerGraph(programs, partition, options, i));
  }
  for (int i = 0; i < options.pservers; ++i) {
    TY_ASSIGN_OR_RETURN(graphs.pservers.emplace_back(), MakePserverGraph(programs, partition, options, i));
  }
  return graphs;
}

}  // namespace trainyard::graph
