#include "ps/parameter_blocks.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/op/check.h"

namespace trainyard::ps {
namespace {

using graph::PreparedBlock;

absl::Status NotAPserver(const graph::Graph& graph, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("graph ", graph.id, " cannot serve parameters: ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterBlocks>> ParameterBlocks::Make(const graph::Graph& graph,
                                                                       graph::OnNonFinite on_nonfinite) {
  std::unique_ptr<ParameterBlocks> made(new ParameterBlocks(graph, on_nonfinite));
  TY_RETURN_IF_ERROR(made->Prepare());
  return made;
}

absl::Status ParameterBlocks::Prepare() {
  // Checked once: a large model has thousands of blocks.
  TY_ASSIGN_OR_RETURN(const std::shared_ptr<const graph::Program> main, graph::CheckWhole(graph_.main));
  const std::vector<graph::Op>& ops = graph_.main.main().ops;
  if (ops.size() != 1 || ops[0].type != "listen_and_serv")
    return NotAPserver(graph_, "its main program is not one listen_and_serv");
  const graph::Op& serve = ops[0];
  const graph::Strings& gradients = serve.StringList("gradients");
  const std::vector<int> blocks = serve.Blocks("optimize_blocks");
  if (gradients.size() != blocks.size()) return NotAPserver(graph_, "it has not one block for each gradient");
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const graph::Var* gradient = graph_.main.main().Find(gradients[i]);
    if (gradient == nullptr) return NotAPserver(graph_, StrCat("there is no variable ", gradients[i]));
    Update update{.gradient = gradients[i], .type = gradient->type, .slots = {gradients[i]}};
    const std::vector<graph::Op>& inside = graph_.main.blocks[static_cast<std::size_t>(blocks[i])].ops;
    if (inside.empty()) return NotAPserver(graph_, StrCat("nothing is done with ", gradients[i]));
    update.parameter = inside.back().parameter;
    if (inside[0].type == "sum" && inside[0].Bool("skip_absent")) update.slots = inside[0].In("X");
    TY_ASSIGN_OR_RETURN(update.block, PreparedBlock::Make(main, blocks[i], scope_));
    update.guard = std::make_unique<graph::UpdateGuard>(*main, blocks[i], *update.block, on_nonfinite_);
    updates_.push_back(std::move(update));
  }
  for (const int block : serve.Blocks("schedule_blocks")) {
    TY_ASSIGN_OR_RETURN(schedule_.emplace_back(), PreparedBlock::Make(main, block, scope_));
  }
  const graph::Strings& tables = serve.StringList("tables");
  const std::vector<int> lookups = serve.Blocks("prefetch_blocks");
  if (tables.size() != lookups.size()) return NotAPserver(graph_, "it has not one block for each table");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::vector<graph::Op>& inside = graph_.main.blocks[static_cast<std::size_t>(lookups[i])].ops;
    if (inside.size() != 1 || inside[0].type != "lookup_sparse_table")
      return NotAPserver(graph_, StrCat("table ", tables[i], " has no lookup"));
    Table table{.ids = std::string(inside[0].OneIn("Ids")), .rows = std::string(inside[0].OneOut("Out"))};
    TY_ASSIGN_OR_RETURN(table.block, PreparedBlock::Make(main, lookups[i], scope_));
    tables_.emplace(tables[i], std::move(table));
  }
  return absl::OkStatus();
}

ParameterBlocks::Table* ParameterBlocks::FindTable(std::string_view name) {
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : &found->second;
}

absl::Status ParameterBlocks::Start() {
  graph::Services services{.seed = graph_.startup.seed};
  return graph::RunOnce(graph_.startup, scope_, services);
}

std::vector<graph::Var> ParameterBlocks::Kept() const {
  std::vector<graph::Var> kept;
  for (const graph::Var& var : graph_.main.main().vars) {
    // How many trainers take part is not a thing to remember.
    if (var.persistable && var.name != graph::kShare) kept.push_back(var);
  }
  return kept;
}

absl::Status ParameterBlocks::Restore(std::map<std::string, graph::Tensor> variables) {
  TY_RETURN_IF_ERROR(Start());
  for (const graph::Var& var : Kept()) {
    const auto found = variables.find(var.name);
    if (found == variables.end())
      return absl::InvalidArgumentError(
          StrCat("the checkpoint of ", graph_.id, " has no variable ", var.name));
    const graph::VarType type = {.data_type = found->second.type(), .dims = found->second.dims()};
    if (type != var.type)
      return absl::InvalidArgumentError(StrCat("the checkpoint of ", graph_.id, " has ", var.name, " as ",
                                               graph::Print(type), " and it is ", graph::Print(var.type)));
    scope_.Put(var.name, std::move(found->second));
  }
  return absl::OkStatus();
}

absl::Status ParameterBlocks::TakeFrom(ParameterBlocks& other) {
  std::map<std::string, graph::Tensor> variables;
  for (const graph::Var& var : Kept()) {
    const graph::Tensor* tensor = other.scope_.FindTensor(var.name);
    if (tensor != nullptr) variables.emplace(var.name, *tensor);
  }
  return Restore(std::move(variables));
}

absl::Status ParameterBlocks::RunSchedule() {
  graph::Services services{.seed = graph_.main.seed};
  for (const std::unique_ptr<PreparedBlock>& block : schedule_) TY_RETURN_IF_ERROR(block->Run(services));
  return absl::OkStatus();
}

absl::Status ParameterBlocks::Run(Update& update) {
  graph::Services services{.seed = graph_.main.seed};
  update.guard->Remember();
  TY_RETURN_IF_ERROR(update.block->Run(services));
  const std::string nonfinite = update.guard->Check();
  if (nonfinite.empty()) return absl::OkStatus();
  if (on_nonfinite_ == graph::OnNonFinite::kFail)
    return absl::FailedPreconditionError(StrCat(nonfinite, ": ", graph::kNonFiniteHint));
  const MutexLock lock(mu_);
  if (nonfinite_pace_.Take(Clock::System().Steady()))
    log::Warn("a number is not finite",
              {{"graph", graph_.id}, {"what", nonfinite}, {"policy", graph::Name(on_nonfinite_)}});
  return absl::OkStatus();
}

std::map<std::string, graph::Tensor> ParameterBlocks::Copy() const {
  std::map<std::string, graph::Tensor> copies;
  for (const graph::Var& var : Kept()) {
    const graph::Tensor* tensor = scope_.FindTensor(var.name);
    if (tensor != nullptr) copies.emplace(var.name, tensor->Clone());
  }
  return copies;
}

}  // namespace trainyard::ps
