#include "graph/pass/partition.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/philox.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"

namespace trainyard::graph {
namespace {

absl::Status CheckOptions(const TranspileOptions& options) {
  const auto check = [](std::string_view name, std::int64_t value, std::int64_t most) -> absl::Status {
    if (value >= 1 && value <= most) return absl::OkStatus();
    return Wrong(name, " must be from 1 to ", most, " and is ", value);
  };
  TY_RETURN_IF_ERROR(check("trainers_num", options.trainers, 100000));
  if (options.slots != 0) TY_RETURN_IF_ERROR(check("slots", options.slots, 100000));
  TY_RETURN_IF_ERROR(check("trainer_pass_num", options.passes, 1000000000));
  TY_RETURN_IF_ERROR(check("pservers_num", options.pservers, 100000));
  return check("min_block_elements", options.min_block_elements, kMaxElements);
}

// The gradient that the learner's first operators read: what the backward pass made.
std::string RawGradient(const std::vector<Op>& ops, const Program& main) {
  std::set<std::string, std::less<>> made;
  for (const Op& op : ops) {
    for (const auto& [slot, names] : op.outputs) made.insert(names.begin(), names.end());
  }
  for (const Op& op : ops) {
    for (const char* slot : {"Grad", "X"}) {
      for (const std::string& name : op.In(slot)) {
        const Var* var = main.main().Find(name);
        if (!made.contains(name) && var != nullptr && !var->persistable) return name;
      }
    }
  }
  return "";
}

// Tables that lie on the pservers row by row: those that a distributed lookup uses.
absl::StatusOr<std::set<std::string, std::less<>>> FindTables(const Program& main) {
  std::set<std::string, std::less<>> tables;
  for (const Op& op : main.main().ops) {
    if (op.type == "lookup_table" && op.Bool("is_distributed")) tables.emplace(op.OneIn("W"));
  }
  if (tables.size() > 1) {
    return Wrong("a program may have one distributed table, and this one has ", *tables.begin(), " and ",
                 *tables.rbegin());
  }
  for (const Op& op : main.main().ops) {
    if (op.type == "lookup_table" && !op.Bool("is_distributed") && tables.contains(op.OneIn("W"))) {
      return Wrong("the table ", op.OneIn("W"),
                   " is distributed in one lookup and not in another: make it so in all");
    }
  }
  return tables;
}

bool NeedsWhole(const std::vector<Op>& ops) {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.type == "clip_by_norm"; });
}

absl::StatusOr<std::vector<Learner>> FindLearners(const Program& main) {
  TY_ASSIGN_OR_RETURN(const auto tables, FindTables(main));
  std::vector<Learner> learners;
  for (const Op& op : main.main().ops) {
    if (op.role != Role::kOptimize) continue;
    if (op.parameter.empty()) {
      return Wrong("operator ", op.type,
                   " needs all gradients in one place, and they are on several pservers: clip by value or by "
                   "the norm of each parameter instead");
    }
    auto found = std::find_if(learners.begin(), learners.end(),
                              [&](const Learner& learner) { return learner.parameter == op.parameter; });
    if (found == learners.end()) found = learners.insert(learners.end(), Learner{.parameter = op.parameter});
    found->ops.push_back(op);
  }
  if (learners.empty())
    return Wrong("program ", main.id, " has no optimizer: call minimize before it is transpiled");
  for (Learner& learner : learners) {
    const Var* parameter = main.main().Find(learner.parameter);
    learner.gradient = RawGradient(learner.ops, main);
    const Var* gradient = main.main().Find(learner.gradient);
    if (parameter == nullptr || gradient == nullptr)
      return Wrong("parameter ", learner.parameter, " has no gradient in ", main.id);
    learner.dims = parameter->type.dims;
    learner.sparse = gradient->type.kind == VarKind::kSparseRows;
    learner.table = tables.contains(learner.parameter);
    if (learner.table && !learner.sparse)
      return Wrong("the distributed table ", learner.parameter, " must have sparse gradients");
  }
  return learners;
}

// Rows r of the table with r mod pservers = shard.
void CutTable(Learner& learner, int pservers) {
  const std::int64_t width = learner.dims.Count(1, learner.dims.rank());
  const std::int64_t rows = (learner.dims[0] + pservers - 1) / pservers;
  for (int shard = 0; shard < pservers; ++shard) {
    Dims dims = learner.dims;
    dims[0] = rows;
    learner.pieces.push_back({.parameter = StrCat(learner.parameter, ".pserver_", shard),
                              .gradient = StrCat(learner.gradient, ".pserver_", shard),
                              .block = {learner.parameter, shard, shard * width, rows * width},
                              .dims = dims,
                              .pserver = shard});
  }
}

void CutParameter(Learner& learner, const TranspileOptions& options) {
  const int servers = options.slice && !NeedsWhole(learner.ops) ? options.pservers : 1;
  const std::vector<VarBlock> blocks =
      SliceVariable(learner.parameter, learner.dims, servers, options.min_block_elements);
  for (const VarBlock& block : blocks) {
    VarBlock of_gradient = block;
    of_gradient.variable = learner.gradient;
    learner.pieces.push_back({.parameter = BlockName(block, blocks.size()),
                              .gradient = BlockName(of_gradient, blocks.size()),
                              .block = block,
                              .dims = blocks.size() == 1 ? learner.dims : BlockDims(learner.dims, block)});
  }
}

// Weights and biases alternate in a program: unshuffled, all weights of a model would land on every second
// server.
std::vector<Learner*> DispatchOrder(std::vector<Learner>& learners, bool shuffle, std::uint64_t seed) {
  std::vector<Learner*> order;
  for (Learner& learner : learners) {
    if (!learner.table) order.push_back(&learner);
  }
  for (std::size_t i = order.size(); shuffle && i > 1; --i) {
    const std::size_t other = Philox(seed, 2, i)[0] % i;
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

}  // namespace

bool ToldApart(const TranspileOptions& options) {
  return options.mode == SyncMode::kSync && CutOf(options).slots > 1;
}

std::string SlotName(const Learner& learner, const Piece& piece, int trainer,
                     const TranspileOptions& options) {
  if (!ToldApart(options)) return piece.gradient;
  if (learner.table) return StrCat(learner.gradient, ".trainer_", trainer, ".pserver_", piece.pserver);
  return StrCat(piece.gradient, ".trainer_", trainer);
}

absl::StatusOr<Partition> MakePartition(const Programs& programs, const TranspileOptions& options) {
  TY_RETURN_IF_ERROR(CheckOptions(options));
  Partition partition;
  TY_ASSIGN_OR_RETURN(partition.learners, FindLearners(programs.main));
  for (const Op& op : programs.main.main().ops) {
    if (op.role == Role::kSchedule) partition.schedule.push_back(op);
  }
  for (Learner& learner : partition.learners) {
    if (learner.table)
      CutTable(learner, options.pservers);
    else
      CutParameter(learner, options);
  }
  std::vector<Piece*> pieces;
  std::vector<std::string> names;
  for (Learner* learner : DispatchOrder(partition.learners, !options.slice, programs.main.seed)) {
    for (Piece& piece : learner->pieces) {
      pieces.push_back(&piece);
      names.push_back(piece.gradient);
    }
  }
  const std::vector<int> places = DispatchBlocks(names, options.pservers, options.dispatch);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i]->pserver = places[i];
  return partition;
}

}  // namespace trainyard::graph
