#include "graph/pass/halves.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "graph/ir/wrong.h"

namespace trainyard::graph {
namespace {

using NameSet = std::set<std::string, std::less<>>;

bool Learns(const Op& op) { return op.role == Role::kOptimize || op.role == Role::kSchedule; }

void AddAll(const Slots& slots, NameSet& names) {
  for (const auto& [slot, variables] : slots) names.insert(variables.begin(), variables.end());
}

std::vector<std::string> ListOf(const NameSet& names) { return {names.begin(), names.end()}; }

}  // namespace

std::vector<std::string> SentTo(const Program& update) {
  NameSet made;
  NameSet sent;
  for (const Op& op : update.main().ops) {
    for (const auto& [slot, variables] : op.inputs) {
      for (const std::string& name : variables) {
        const Var* const var = update.main().Find(name);
        if (!made.contains(name) && var != nullptr && !var->persistable) sent.insert(name);
      }
    }
    AddAll(op.outputs, made);
  }
  return ListOf(sent);
}

absl::StatusOr<Halves> CutInHalves(const Program& main) {
  Halves halves{.compute = main, .update = {.id = StrCat(main.id, ".update"), .seed = main.seed}};
  halves.compute.id = StrCat(main.id, ".compute");
  NameSet learning;
  for (const Op& op : main.main().ops) {
    if (op.role == Role::kLoss && halves.loss.empty() && !op.outputs.empty()) {
      const auto& made = op.outputs.begin()->second;
      if (!made.empty()) halves.loss = made.front();
    }
    if (!Learns(op)) continue;
    halves.update.main().ops.push_back(op);
    AddAll(op.inputs, learning);
    AddAll(op.outputs, learning);
  }
  if (halves.update.main().ops.empty())
    return Wrong("program ", main.id, " does not learn: it has no optimizer (minimize)");
  std::erase_if(halves.compute.main().ops, Learns);
  for (const Var& var : main.main().vars) {
    if (learning.contains(var.name)) halves.update.main().vars.push_back(var);
  }
  // What only learning needs stays there.
  NameSet computing;
  for (const Block& block : halves.compute.blocks) {
    for (const Op& op : block.ops) {
      AddAll(op.inputs, computing);
      AddAll(op.outputs, computing);
    }
  }
  halves.sent = SentTo(halves.update);
  for (const std::string& name : halves.sent) {
    if (!computing.contains(name))
      return Wrong("program ", main.id, " learns from ", name, ", which nothing computes");
  }
  std::erase_if(halves.compute.main().vars, [&](const Var& var) { return !computing.contains(var.name); });
  NameSet shared;
  for (const Var& var : halves.compute.main().vars) {
    if (var.persistable) shared.insert(var.name);
  }
  halves.shared = ListOf(shared);
  return halves;
}

absl::StatusOr<Programs> MakeUpdate(const std::vector<Learnt>& variables, const Optimizer& optimizer) {
  Programs programs{.startup = {.id = "model.startup"}, .main = {.id = "model.update"}};
  std::vector<ParameterGradient> gradients;
  std::vector<Op> averages;
  for (const Learnt& learnt : variables) {
    if (!IsName(learnt.name))
      return Wrong("\"", Shortened(Escaped(learnt.name), 64), "\" is no name of a variable");
    if (programs.main.main().Find(learnt.name) != nullptr)
      return Wrong("variable ", learnt.name, " comes twice");
    const std::string gradient = StrCat(learnt.name, "@GRAD");
    programs.main.main().vars.push_back({.name = learnt.name,
                                         .type = {.dims = learnt.dims},
                                         .persistable = true,
                                         .parameter = learnt.learns});
    programs.main.main().vars.push_back({.name = gradient, .type = {.dims = learnt.dims}});
    if (learnt.learns) {
      gradients.push_back({learnt.name, gradient});
    } else {
      averages.push_back({.type = "moving_average",
                          .inputs = {{"Param", {learnt.name}}, {"Grad", {gradient}}},
                          .outputs = {{"ParamOut", {learnt.name}}},
                          .attrs = {{"momentum", 0.0}},
                          .role = Role::kOptimize,
                          .parameter = learnt.name});
    }
  }
  if (gradients.empty()) return Wrong("the model has no variable that learns");
  TY_RETURN_IF_ERROR(AppendOptimizer(programs.main, programs.startup, gradients, optimizer));
  for (const Op& average : averages) TY_RETURN_IF_ERROR(AppendOp(programs.main, 0, average));
  return programs;
}

}  // namespace trainyard::graph
