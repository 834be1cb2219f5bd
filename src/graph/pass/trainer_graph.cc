#include "graph/pass/trainer_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

class TrainerWriter {
 public:
  TrainerWriter(const Programs& programs, const Partition& partition, const TranspileOptions& options,
                int trainer)
      : programs_(programs), partition_(partition), options_(options), trainer_(trainer) {
    graph_.id = GraphId(GraphRole::kTrainer, trainer);
    graph_.role = GraphRole::kTrainer;
    graph_.index = trainer;
    graph_.mode = options.mode;
    graph_.cut = CutOf(options);
    graph_.main = {.id = StrCat(graph_.id, ".main"), .seed = programs.main.seed};
    graph_.startup = {.id = StrCat(graph_.id, ".startup"), .seed = programs.startup.seed};
    pservers_.reserve(static_cast<std::size_t>(options.pservers));
    for (int i = 0; i < options.pservers; ++i) pservers_.push_back(GraphId(GraphRole::kPserver, i));
  }

  absl::StatusOr<Graph> Write() {
    step_ = graph_.main.AddBlock(0);
    TY_RETURN_IF_ERROR(WriteVariables());
    for (const Op& op : programs_.main.main().ops) TY_RETURN_IF_ERROR(WriteOp(op));
    if (Sync())
      TY_RETURN_IF_ERROR(Add(graph_.main, step_, {.type = "send_barrier", .attrs = {{"graphs", pservers_}}}));
    TY_RETURN_IF_ERROR(WriteReceive(graph_.main, step_));
    TY_RETURN_IF_ERROR(
        Add(graph_.main, 0,
            {.type = "iterate", .attrs = {{"block", BlockRef{step_}}, {"passes", options_.passes}}},
            Role::kForward));
    TY_RETURN_IF_ERROR(WriteStartup());
    Rename();
    return std::move(graph_);
  }

 private:
  bool Sync() const { return options_.mode == SyncMode::kSync; }

  absl::Status Add(Program& program, int block, Op op, Role role = Role::kRpc) {
    op.role = role;
    return AppendOp(program, block, std::move(op));
  }

  const Learner* LearnerOf(std::string_view gradient) const {
    const auto found = std::find_if(partition_.learners.begin(), partition_.learners.end(),
                                    [&](const Learner& learner) { return learner.gradient == gradient; });
    return found == partition_.learners.end() ? nullptr : &*found;
  }

  const Learner* TableOf(std::string_view parameter) const {
    const auto found =
        std::find_if(partition_.learners.begin(), partition_.learners.end(),
                     [&](const Learner& learner) { return learner.table && learner.parameter == parameter; });
    return found == partition_.learners.end() ? nullptr : &*found;
  }

  // What the trainer's own operators read and write; parameters stay from step to step, the rest is the
  // step's.
  absl::Status WriteVariables() {
    std::set<std::string, std::less<>> used;
    for (const Op& op : programs_.main.main().ops) {
      if (IsServers(op)) continue;
      for (const Slots* slots : {&op.inputs, &op.outputs}) {
        for (const auto& [slot, names] : *slots) used.insert(names.begin(), names.end());
      }
    }
    for (const Learner& learner : partition_.learners) used.insert(learner.parameter);
    for (const Var& var : programs_.main.main().vars) {
      if (!used.contains(var.name) || TableOf(var.name) != nullptr) continue;
      graph_.main.blocks[var.persistable ? 0 : static_cast<std::size_t>(step_)].vars.push_back(var);
    }
    for (const Learner& learner : partition_.learners) {
      if (learner.table || learner.pieces.size() == 1) continue;
      for (const Piece& piece : learner.pieces) {
        graph_.main.main().vars.push_back(
            {.name = piece.parameter,
             .type = {.dims = piece.dims},
             .persistable = true,
             .stop_gradient = true,
             .slice = Slice{learner.parameter, learner.dims, piece.block.offset}});
      }
    }
    return absl::OkStatus();
  }

  static bool IsServers(const Op& op) { return op.role == Role::kOptimize || op.role == Role::kSchedule; }

  absl::Status WriteOp(const Op& op) {
    if (IsServers(op)) return absl::OkStatus();
    if (op.type == "lookup_table" && TableOf(op.OneIn("W")) != nullptr) {
      TY_RETURN_IF_ERROR(WritePrefetch(op, *TableOf(op.OneIn("W"))));
    } else if (op.type == "lookup_table_grad" && TableOf(op.OneIn("W")) != nullptr) {
      TY_RETURN_IF_ERROR(WriteTableGradient(op, *TableOf(op.OneIn("W"))));
    } else {
      graph_.main.blocks[static_cast<std::size_t>(step_)].ops.push_back(op);
    }
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        const Learner* learner = LearnerOf(name);
        if (learner != nullptr) TY_RETURN_IF_ERROR(WriteSend(*learner));
      }
    }
    return absl::OkStatus();
  }

  // A gradient goes out as soon as it is there, while the backward pass goes on.
  absl::Status WriteSend(const Learner& learner) {
    std::vector<std::string> slots;
    Strings graphs;
    for (const Piece& piece : learner.pieces) {
      slots.push_back(SlotName(learner, piece, trainer_, options_));
      graphs.push_back(GraphId(GraphRole::kPserver, piece.pserver));
      graph_.send_var_graph_map[slots.back()] = graphs.back();
    }
    if (learner.table) {
      TY_RETURN_IF_ERROR(
          Add(graph_.main, step_,
              {.type = "split_ids", .inputs = {{"Ids", {learner.gradient}}}, .outputs = {{"Out", slots}}}));
    } else if (learner.pieces.size() > 1) {
      TY_RETURN_IF_ERROR(Add(graph_.main, step_, SplitGradient(learner, slots)));
    } else if (slots.front() != learner.gradient) {
      renamed_[learner.gradient] = slots.front();
      slots = {learner.gradient};  // it is renamed with the others
    }
    return Add(graph_.main, step_, {.type = "send", .inputs = {{"X", slots}}, .attrs = {{"graphs", graphs}}});
  }

  static Op SplitGradient(const Learner& learner, const std::vector<std::string>& slots) {
    Ints rows;
    for (const Piece& piece : learner.pieces) rows.push_back(piece.dims[0]);
    const char* sections = learner.sparse ? "height_sections" : "sections";
    return {.type = learner.sparse ? "split_selected_rows" : "split_byref",
            .inputs = {{"X", {learner.gradient}}},
            .outputs = {{"Out", slots}},
            .attrs = {{sections, rows}}};
  }

  // One recv for each parameter, and where it has several pieces they are put together.
  absl::Status WriteReceive(Program& program, int block) {
    std::vector<const Learner*> received;
    for (const Learner& learner : partition_.learners) {
      if (!learner.table) received.push_back(&learner);
    }
    for (const Learner* learner : received) {
      std::vector<std::string> names;
      Strings graphs;
      for (const Piece& piece : learner->pieces) {
        names.push_back(piece.parameter);
        graphs.push_back(GraphId(GraphRole::kPserver, piece.pserver));
        graph_.recv_var_graph_map[names.back()] = graphs.back();
      }
      const bool wait = !Sync() && learner == received.back();
      TY_RETURN_IF_ERROR(Add(program, block,
                             {.type = "recv",
                              .inputs = {{"Into", names}},
                              .outputs = {{"Out", names}},
                              .attrs = {{"graphs", graphs}, {"wait", wait}}}));
    }
    if (Sync())
      TY_RETURN_IF_ERROR(Add(program, block, {.type = "fetch_barrier", .attrs = {{"graphs", pservers_}}}));
    for (const Learner* learner : received) {
      if (learner->pieces.size() == 1) continue;
      Op concat{
          .type = "concat", .outputs = {{"Out", {learner->parameter}}}, .attrs = {{"axis", std::int64_t{0}}}};
      for (const Piece& piece : learner->pieces) concat.inputs["X"].push_back(piece.parameter);
      TY_RETURN_IF_ERROR(Add(program, block, std::move(concat)));
    }
    return absl::OkStatus();
  }

  absl::Status WritePrefetch(const Op& lookup, const Learner& table) {
    if (lookup.Int("padding_idx", -1) != -1)
      return absl::InvalidArgumentError(
          StrCat("the distributed table ", table.parameter, " cannot have a padding id"));
    const std::string ids(lookup.OneIn("Ids"));
    const std::string out(lookup.OneOut("Out"));
    Op split{.type = "split_ids", .inputs = {{"Ids", {ids}}}};
    Op prefetch{.type = "prefetch",
                .attrs = {{"graphs", pservers_}, {"table", table.parameter}, {"width", table.dims[1]}}};
    Op merge{.type = "merge_ids", .inputs = {{"Ids", {ids}}}, .outputs = {{"Out", {out}}}};
    for (const Piece& piece : table.pieces) {
      const std::string part = StrCat(out, ".ids_", piece.pserver);
      const std::string rows = StrCat(out, ".rows_", piece.pserver);
      split.outputs["Out"].push_back(part);
      prefetch.inputs["Ids"].push_back(part);
      prefetch.outputs["Out"].push_back(rows);
      merge.inputs["X"].push_back(rows);
    }
    TY_RETURN_IF_ERROR(Add(graph_.main, step_, std::move(split)));
    TY_RETURN_IF_ERROR(Add(graph_.main, step_, std::move(prefetch)));
    return Add(graph_.main, step_, std::move(merge));
  }

  // The gradient of rows of a table that is not here.
  absl::Status WriteTableGradient(const Op& gradient, const Learner& table) {
    return Add(graph_.main, step_,
               {.type = "lookup_rows_grad",
                .inputs = {{"Ids", gradient.In("Ids")}, {"Out@GRAD", gradient.In("Out@GRAD")}},
                .outputs = {{"W@GRAD", gradient.Out("W@GRAD")}},
                .attrs = {{"height", table.dims[0]}}},
               Role::kBackward);
  }

  // Parameters get room here and their values from the pservers; what the pservers do not have is
  // initialised.
  absl::Status WriteStartup() {
    for (const Var& var : graph_.main.main().vars) graph_.startup.main().vars.push_back(var);
    for (const Op& op : programs_.startup.main().ops) {
      const std::string_view made = op.OneOut("Out");
      const bool learnt = std::any_of(partition_.learners.begin(), partition_.learners.end(),
                                      [&](const Learner& learner) { return learner.parameter == made; });
      if (!learnt && graph_.main.main().Find(made) != nullptr) graph_.startup.main().ops.push_back(op);
    }
    for (const Learner& learner : partition_.learners) {
      if (learner.table) continue;
      TY_RETURN_IF_ERROR(Add(graph_.startup, 0,
                             {.type = "fill_constant",
                              .outputs = {{"Out", {learner.parameter}}},
                              .attrs = {{"shape", Ints(learner.dims.begin(), learner.dims.end())}}},
                             Role::kForward));
      if (learner.pieces.size() == 1) continue;
      Op split{.type = "split_byref", .inputs = {{"X", {learner.parameter}}}};
      Ints rows;
      for (const Piece& piece : learner.pieces) {
        split.outputs["Out"].push_back(piece.parameter);
        rows.push_back(piece.dims[0]);
      }
      split.attrs["sections"] = rows;
      TY_RETURN_IF_ERROR(Add(graph_.startup, 0, std::move(split), Role::kForward));
    }
    return WriteReceive(graph_.startup, 0);
  }

  // A gradient that is one piece is sent under the trainer's own name for it.
  void Rename() {
    const auto rename = [&](std::string& name) {
      const auto found = renamed_.find(name);
      if (found != renamed_.end()) name = found->second;
    };
    Block& block = graph_.main.blocks[static_cast<std::size_t>(step_)];
    for (Var& var : block.vars) rename(var.name);
    for (Op& op : block.ops) {
      for (Slots* slots : {&op.inputs, &op.outputs}) {
        for (auto& [slot, names] : *slots) std::for_each(names.begin(), names.end(), rename);
      }
    }
  }

  const Programs& programs_;
  const Partition& partition_;
  const TranspileOptions& options_;
  const int trainer_;
  Graph graph_;
  int step_ = 0;
  Strings pservers_;
  std::map<std::string, std::string, std::less<>> renamed_;
};

}  // namespace

absl::StatusOr<Graph> MakeTrainerGraph(const Programs& programs, const Partition& partition,
                                       const TranspileOptions& options, int trainer) {
  return TrainerWriter(programs, partition, options, trainer).Write();
}

}  // namespace trainyard::graph
