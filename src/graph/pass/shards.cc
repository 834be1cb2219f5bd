#include "graph/pass/shards.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "graph/op/schema.h"
#include "graph/pass/partition.h"
#include "graph/pass/pserver_graph.h"

namespace trainyard::graph {
namespace {

bool IsInitialised(const Program& startup, std::string_view name) {
  return std::ranges::any_of(startup.main().ops, [&](const Op& op) { return op.Writes(name); });
}

// Variables whose first values come from elsewhere begin with zeros here, so that every one of them can be
// cut.
absl::StatusOr<Programs> WithFirstValues(Programs learning) {
  for (const Var& var : KeptVariables(learning)) {
    if (IsInitialised(learning.startup, var.name)) continue;
    if (learning.startup.main().Find(var.name) == nullptr) learning.startup.main().vars.push_back(var);
    TY_RETURN_IF_ERROR(
        AppendOp(learning.startup, 0,
                 {.type = "fill_constant",
                  .outputs = {{"Out", {var.name}}},
                  .attrs = {{"shape", Ints(var.type.dims.begin(), var.type.dims.end())}, {"value", 0.0}}}));
  }
  return learning;
}

// A pserver's blocks of operators one behind the other: nobody runs them but the process that has them.
Program Flatten(const Program& main) {
  Program flat{.id = main.id, .seed = main.seed};
  flat.main().vars = main.main().vars;
  for (const Op& serve : main.main().ops) {
    for (const char* const attr : {"schedule_blocks", "optimize_blocks"}) {
      for (const int number : serve.Blocks(attr)) {
        const Block& block = main.blocks[static_cast<std::size_t>(number)];
        flat.main().vars.insert(flat.main().vars.end(), block.vars.begin(), block.vars.end());
        flat.main().ops.insert(flat.main().ops.end(), block.ops.begin(), block.ops.end());
      }
    }
  }
  return flat;
}

// All that updates read or write, whole or in pieces.
std::set<std::string, std::less<>> UsedIn(const Program& update) {
  std::set<std::string, std::less<>> used;
  for (const Op& op : update.main().ops) {
    for (const Slots* const slots : {&op.inputs, &op.outputs}) {
      for (const auto& [slot, names] : *slots) used.insert(names.begin(), names.end());
    }
  }
  return used;
}

// What nothing updates, and the first shard has for all.
absl::Status AddTheRest(const Programs& learning, Shard& first) {
  const std::set<std::string, std::less<>> used = UsedIn(learning.main);
  for (const Var& var : KeptVariables(learning)) {
    if (used.contains(var.name)) continue;
    first.programs.main.main().vars.push_back(var);
    first.programs.startup.main().vars.push_back(var);
    for (const Op& op : learning.startup.main().ops) {
      if (op.Writes(var.name)) TY_RETURN_IF_ERROR(AppendOp(first.programs.startup, 0, op));
    }
  }
  return absl::OkStatus();
}

void AddGradients(const Partition& partition, int shard, std::vector<Var>& gradients) {
  for (const Learner& learner : partition.learners) {
    for (const Piece& piece : learner.pieces) {
      if (piece.pserver != shard) continue;
      Var gradient{
          .name = piece.gradient,
          .type = {.kind = learner.sparse ? VarKind::kSparseRows : VarKind::kDense, .dims = piece.dims}};
      if (learner.pieces.size() > 1)
        gradient.slice = Slice{learner.gradient, learner.dims, piece.block.offset};
      gradients.push_back(std::move(gradient));
    }
  }
}

}  // namespace

std::vector<Var> KeptVariables(const Programs& learning) {
  std::vector<Var> kept;
  for (const Program* const program : {&learning.main, &learning.startup}) {
    for (const Var& var : program->main().vars) {
      const bool known = std::ranges::any_of(kept, [&](const Var& one) { return one.name == var.name; });
      if (var.persistable && !known) kept.push_back(var);
    }
  }
  return kept;
}

absl::StatusOr<std::vector<Shard>> CutIntoShards(const Programs& learning,
                                                 const std::vector<std::string>& shared, int shards) {
  TY_RETURN_IF_ERROR(Validate(learning.main));
  TY_RETURN_IF_ERROR(Validate(learning.startup));
  TY_ASSIGN_OR_RETURN(const Programs whole, WithFirstValues(learning));
  const TranspileOptions options{.pservers = shards};
  TY_ASSIGN_OR_RETURN(const Partition partition, MakePartition(whole, options));
  std::vector<Shard> cut(static_cast<std::size_t>(shards));
  for (int i = 0; i < shards; ++i) {
    TY_ASSIGN_OR_RETURN(Graph graph, MakePserverGraph(whole, partition, options, i));
    Shard& shard = cut[static_cast<std::size_t>(i)];
    shard.programs = {.startup = std::move(graph.startup), .main = Flatten(graph.main)};
    AddGradients(partition, i, shard.gradients);
  }
  TY_RETURN_IF_ERROR(AddTheRest(whole, cut.front()));
  // What every shard has for itself, as a learning rate, is given out by one of them.
  std::set<std::string> given;
  for (Shard& shard : cut) {
    for (const Var& var : shard.programs.main.main().vars) {
      const std::string& of = var.slice ? var.slice->of : var.name;
      if (!var.persistable || std::ranges::find(shared, of) == shared.end()) continue;
      if (given.insert(var.name).second) shard.shared.push_back(var.name);
    }
    std::ranges::sort(shard.shared);
  }
  return cut;
}

}  // namespace trainyard::graph
