#include "graph/pass/pserver_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

class PserverWriter {
 public:
  PserverWriter(const Programs& programs, const Partition& partition, const TranspileOptions& options,
                int pserver)
      : programs_(programs), partition_(partition), options_(options), pserver_(pserver) {
    graph_.id = GraphId(GraphRole::kPserver, pserver);
    graph_.role = GraphRole::kPserver;
    graph_.index = pserver;
    graph_.mode = options.mode;
    graph_.cut = CutOf(options);
    graph_.main = {.id = StrCat(graph_.id, ".main"), .seed = programs.main.seed};
    graph_.startup = {.id = StrCat(graph_.id, ".startup"), .seed = programs.startup.seed};
  }

  absl::StatusOr<Graph> Write() {
    if (ToldApart(options_)) TY_RETURN_IF_ERROR(WriteShare());
    TY_RETURN_IF_ERROR(WriteSchedule());
    for (const Learner& learner : partition_.learners) {
      for (const Piece& piece : learner.pieces) {
        if (piece.pserver == pserver_) TY_RETURN_IF_ERROR(WritePiece(learner, piece));
      }
    }
    serve_.attrs["optimize_blocks"] = optimize_blocks_;
    serve_.attrs["gradients"] = gradients_;
    serve_.attrs["prefetch_blocks"] = prefetch_blocks_;
    serve_.attrs["tables"] = tables_;
    serve_.attrs["fanin"] = std::int64_t{graph_.cut.slots};
    serve_.attrs["sync"] = options_.mode == SyncMode::kSync;
    TY_RETURN_IF_ERROR(AppendOp(graph_.main, 0, std::move(serve_)));
    return std::move(graph_);
  }

 private:
  absl::Status WriteShare() {
    const Var share{.name = kShare, .type = {.dims = {1}}, .persistable = true, .stop_gradient = true};
    graph_.main.main().vars.push_back(share);
    graph_.startup.main().vars.push_back(share);
    return AppendOp(graph_.startup, 0,
                    {.type = "fill_constant",
                     .outputs = {{"Out", {kShare}}},
                     .attrs = {{"shape", Ints{1}}, {"value", 1.0 / graph_.cut.slots}}});
  }

  // The schedule runs before the blocks that use its rate, on every pserver.
  absl::Status WriteSchedule() {
    if (partition_.schedule.empty()) return absl::OkStatus();
    const int block = graph_.main.AddBlock(0);
    for (const Op& op : partition_.schedule) {
      for (const Slots* slots : {&op.inputs, &op.outputs}) {
        for (const auto& [slot, names] : *slots) {
          for (const std::string& name : names) TY_RETURN_IF_ERROR(WriteShared(name));
        }
      }
      TY_RETURN_IF_ERROR(AppendOp(graph_.main, block, op));
    }
    serve_.attrs["schedule_blocks"] = std::vector<BlockRef>{{block}};
    return absl::OkStatus();
  }

  // A variable that is whole on every pserver: the learning rate, the counter of steps.
  absl::Status WriteShared(const std::string& name) {
    if (graph_.main.main().Find(name) != nullptr) return absl::OkStatus();
    const Var* var = programs_.main.main().Find(name);
    if (var == nullptr || !var->persistable)
      return Wrong("the schedule uses ", name, ", which the pservers do not have");
    return WriteKept(*var, *var, nullptr);
  }

  // A variable of block 0 and what initialises it: all of `original`, or `piece` of it.
  absl::Status WriteKept(const Var& original, const Var& var, const Piece* piece) {
    graph_.main.main().vars.push_back(var);
    graph_.startup.main().vars.push_back(var);
    for (const Op& op : programs_.startup.main().ops) {
      if (op.Writes(original.name)) return WriteInitial(op, original, var, piece);
    }
    return Wrong("the startup program does not initialise ", original.name);
  }

  absl::Status WriteInitial(Op op, const Var& original, const Var& var, const Piece* piece) {
    op.outputs["Out"] = {var.name};
    const bool whole = piece == nullptr || var.type.dims == original.type.dims;
    const bool table = piece != nullptr && var.type.dims == piece->dims && IsTable(*piece);
    if (!whole || table) {
      op.attrs["shape"] = Ints(var.type.dims.begin(), var.type.dims.end());
      if (op.type == "uniform_random" || op.type == "gaussian_random") {
        op.attrs["offset"] = piece->block.offset;
        if (table) op.attrs["row_stride"] = std::int64_t{options_.pservers};
      } else if (op.type == "assign_value") {
        op.attrs["values"] = PartOf(op.FloatList("values"), *piece, original, table);
      } else if (op.type != "fill_constant") {
        return Wrong("the initialiser ", op.type, " of ", original.name, " cannot be done in parts");
      }
    }
    return AppendOp(graph_.startup, 0, std::move(op));
  }

  bool IsTable(const Piece& piece) const {
    return std::any_of(partition_.learners.begin(), partition_.learners.end(), [&](const Learner& learner) {
      return learner.table && learner.parameter == piece.block.variable;
    });
  }

  Floats PartOf(const Floats& values, const Piece& piece, const Var& original, bool table) const {
    if (!table)
      return {values.begin() + piece.block.offset, values.begin() + piece.block.offset + piece.block.count};
    const std::int64_t width = original.type.dims.Count(1, original.type.dims.rank());
    Floats part;
    for (std::int64_t row = piece.pserver; row < piece.dims[0] * options_.pservers;
         row += options_.pservers) {
      for (std::int64_t i = 0; i < width; ++i)
        part.push_back(row < original.type.dims[0] ? values[static_cast<std::size_t>(row * width + i)] : 0);
    }
    return part;
  }

  absl::Status WritePiece(const Learner& learner, const Piece& piece) {
    const Var* parameter = programs_.main.main().Find(learner.parameter);
    Var kept = *parameter;
    kept.name = piece.parameter;
    kept.type.dims = piece.dims;
    if (!learner.table && learner.pieces.size() > 1)
      kept.slice = Slice{learner.parameter, learner.dims, piece.block.offset};
    TY_RETURN_IF_ERROR(WriteKept(*parameter, kept, &piece));
    const VarType gradient = {.kind = learner.sparse ? VarKind::kSparseRows : VarKind::kDense,
                              .dims = piece.dims};
    graph_.main.main().vars.push_back({.name = piece.gradient, .type = gradient, .stop_gradient = true});
    const int block = graph_.main.AddBlock(0);
    if (ToldApart(options_)) TY_RETURN_IF_ERROR(WriteMean(learner, piece, gradient, block));
    TY_RETURN_IF_ERROR(WriteUpdate(learner, piece, block));
    optimize_blocks_.push_back({block});
    gradients_.push_back(piece.gradient);
    if (learner.table) return WriteLookup(learner, piece);
    return absl::OkStatus();
  }

  // The mean over the trainers that took part.
  absl::Status WriteMean(const Learner& learner, const Piece& piece, const VarType& gradient, int block) {
    Op sum{.type = "sum",
           .outputs = {{"Out", {piece.gradient}}},
           .attrs = {{"skip_absent", true}},
           .role = Role::kOptimize,
           .parameter = piece.parameter};
    for (int i = 0; i < graph_.cut.slots; ++i) {
      const std::string slot = SlotName(learner, piece, i, options_);
      graph_.main.main().vars.push_back({.name = slot, .type = gradient, .stop_gradient = true});
      graph_.recv_var_graph_map[slot] = GraphId(GraphRole::kTrainer, i);
      sum.inputs["X"].push_back(slot);
    }
    TY_RETURN_IF_ERROR(AppendOp(graph_.main, block, std::move(sum)));
    return AppendOp(graph_.main, block,
                    {.type = "scale",
                     .inputs = {{"X", {piece.gradient}}, {"Factor", {kShare}}},
                     .outputs = {{"Out", {piece.gradient}}},
                     .attrs = {{"scale", 1.0 / graph_.cut.slots}},
                     .role = Role::kOptimize,
                     .parameter = piece.parameter});
  }

  // The learner's own operators, on the piece: what is the parameter's alone is called and shaped as the
  // piece is.
  absl::Status WriteUpdate(const Learner& learner, const Piece& piece, int block) {
    std::set<std::string, std::less<>> written;
    for (const Op& op : learner.ops) {
      for (const auto& [slot, names] : op.outputs) written.insert(names.begin(), names.end());
    }
    const std::string suffix = piece.parameter.substr(learner.parameter.size());
    std::map<std::string, std::string, std::less<>> names = {{learner.parameter, piece.parameter},
                                                             {learner.gradient, piece.gradient}};
    for (const Op& op : learner.ops) {
      Op own = op;
      own.parameter = piece.parameter;
      for (Slots* slots : {&own.inputs, &own.outputs}) {
        for (auto& [slot, variables] : *slots) {
          for (std::string& name : variables) {
            if (!names.contains(name)) {
              TY_ASSIGN_OR_RETURN(names[name],
                                  WriteOther(name, written.contains(name), suffix, learner, piece));
            }
            name = names[name];
          }
        }
      }
      TY_RETURN_IF_ERROR(AppendOp(graph_.main, block, std::move(own)));
    }
    return absl::OkStatus();
  }

  // An accumulator becomes the piece's; what no operator of the learner writes is shared; the rest is the
  // block's own.
  absl::StatusOr<std::string> WriteOther(const std::string& name, bool written, const std::string& suffix,
                                         const Learner& learner, const Piece& piece) {
    const Var* var = programs_.main.main().Find(name);
    if (var == nullptr) return Wrong("there is no variable ", name);
    if (!written) {
      TY_RETURN_IF_ERROR(WriteShared(name));
      return name;
    }
    const std::string own = StrCat(name, suffix);
    if (!var->persistable) return own;
    Var kept = *var;
    kept.name = own;
    if (kept.type.dims == learner.dims) {
      kept.type.dims = piece.dims;
      if (!learner.table && learner.pieces.size() > 1)
        kept.slice = Slice{name, learner.dims, piece.block.offset};
    }
    TY_RETURN_IF_ERROR(WriteKept(*var, kept, &piece));
    return own;
  }

  absl::Status WriteLookup(const Learner& learner, const Piece& piece) {
    const int block = graph_.main.AddBlock(0);
    const std::string ids = StrCat(piece.parameter, "@IDS");
    const std::string rows = StrCat(piece.parameter, "@ROWS");
    graph_.main.main().vars.push_back(
        {.name = ids, .type = {.data_type = DataType::kInt64, .dims = {kUnknownDim}}, .stop_gradient = true});
    graph_.main.main().vars.push_back(
        {.name = rows, .type = {.dims = {kUnknownDim, piece.dims[1]}}, .stop_gradient = true});
    prefetch_blocks_.push_back({block});
    tables_.push_back(learner.parameter);
    return AppendOp(graph_.main, block,
                    {.type = "lookup_sparse_table",
                     .inputs = {{"W", {piece.parameter}}, {"Ids", {ids}}},
                     .outputs = {{"Out", {rows}}},
                     .role = Role::kRpc});
  }

  const Programs& programs_;
  const Partition& partition_;
  const TranspileOptions& options_;
  const int pserver_;
  Graph graph_;
  Op serve_ = {.type = "listen_and_serv", .role = Role::kRpc};
  std::vector<BlockRef> optimize_blocks_;
  std::vector<BlockRef> prefetch_blocks_;
  Strings gradients_;
  Strings tables_;
};

}  // namespace

absl::StatusOr<Graph> MakePserverGraph(const Programs& programs, const Partition& partition,
                                       const TranspileOptions& options, int pserver) {
  return PserverWriter(programs, partition, options, pserver).Write();
}

}  // namespace trainyard::graph
