#include "graph/pass/transpile.h"

#include <algorithm>
#include <tuple>

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

Cut CutOf(const TranspileOptions& options) {
  return {.pservers = options.pservers, .slots = std::max(options.slots, options.trainers)};
}

bool operator==(const Origin& a, const Origin& b) {
  return a.options == b.options && a.programs.main == b.programs.main &&
         a.programs.startup == b.programs.startup;
}

bool operator==(const Graph& a, const Graph& b) {
  const auto value = [](const Graph& graph) {
    return std::tie(graph.id, graph.role, graph.index, graph.mode, graph.startup, graph.main, graph.resource,
                    graph.send_var_graph_map, graph.recv_var_graph_map, graph.cut);
  };
  return value(a) == value(b);
}

namespace {

absl::StatusOr<Partition> CheckAndCut(const Programs& programs, const TranspileOptions& options) {
  TY_RETURN_IF_ERROR(Validate(programs.main));
  TY_RETURN_IF_ERROR(Validate(programs.startup));
  if (programs.main.blocks.size() > 1)
    return absl::InvalidArgumentError(StrCat(
        "program ", programs.main.id, " has blocks of its own, and only flat programs are transpiled"));
  return MakePartition(programs, options);
}

}  // namespace

absl::StatusOr<Graphs> Transpile(const Programs& programs, const TranspileOptions& options) {
  TY_ASSIGN_OR_RETURN(const Partition partition, CheckAndCut(programs, options));
  const auto origin = std::make_shared<const Origin>(Origin{programs, options});
  Graphs graphs;
  for (int i = 0; i < options.trainers; ++i) {
    TY_ASSIGN_OR_RETURN(graphs.trainers.emplace_back(), MakeTrainerGraph(programs, partition, options, i));
    graphs.trainers.back().origin = origin;
  }
  for (int i = 0; i < options.pservers; ++i) {
    TY_ASSIGN_OR_RETURN(graphs.pservers.emplace_back(), MakePserverGraph(programs, partition, options, i));
    graphs.pservers.back().origin = origin;
  }
  return graphs;
}

absl::StatusOr<Graph> TranspileOne(const Origin& origin, const Cut& cut, GraphRole role, int index) {
  TranspileOptions options = origin.options;
  options.pservers = cut.pservers;
  options.slots = cut.slots;
  options.trainers = std::min(options.trainers, cut.slots);
  TY_ASSIGN_OR_RETURN(const Partition partition, CheckAndCut(origin.programs, options));
  return role == GraphRole::kTrainer ? MakeTrainerGraph(origin.programs, partition, options, index)
                                     : MakePserverGraph(origin.programs, partition, options, index);
}

}  // namespace trainyard::graph
