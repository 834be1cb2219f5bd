#include "graph/pass/backward.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"
#include "graph/op/check.h"

namespace trainyard::graph {
namespace {

// What is known of the forward operators before any gradient is made.
class Backward {
 public:
  Backward(Program& program, std::string_view loss, const BackwardOptions& options)
      : program_(program), loss_(loss), options_(options) {}

  absl::StatusOr<std::vector<ParameterGradient>> Append() {
    TY_RETURN_IF_ERROR(FindPath());
    FindWhatLearns();
    TY_RETURN_IF_ERROR(CheckListed());
    MakeGradients();
    AddShares();
    for (Op& op : gradients_) TY_RETURN_IF_ERROR(AppendOp(program_, 0, std::move(op)));
    return Pairs();
  }

 private:
  // The operators that the loss depends on.
  absl::Status FindPath() {
    const Var* loss = program_.main().Find(loss_);
    if (loss == nullptr) return Wrong("there is no variable ", loss_, " to take as the loss");
    if (!loss->type.dims.Known() || loss->type.dims.Count() != 1) {
      return Wrong("the loss ", loss_, " is ", Print(loss->type), ": it must be one number; take its mean");
    }
    absl::flat_hash_set<std::string_view> needed;
    needed.insert(loss_);  // a list in braces would hold a copy that is gone at once
    std::vector<Op>& ops = program_.main().ops;
    for (std::size_t i = ops.size(); i-- > 0;) {
      const bool writes = std::any_of(ops[i].outputs.begin(), ops[i].outputs.end(), [&](const auto& slot) {
        return std::any_of(slot.second.begin(), slot.second.end(),
                           [&](const std::string& name) { return needed.contains(name); });
      });
      if (!writes) continue;
      if (ops[i].Block("block"))
        return Wrong("operator ", i, " (", ops[i].type, ") runs a block, and no gradient passes through it");
      path_.push_back(i);
      for (const auto& [slot, names] : ops[i].inputs) needed.insert(names.begin(), names.end());
    }
    if (path_.empty()) return Wrong("no operator writes the loss ", loss_);
    ops[path_.front()].role = Role::kLoss;
    return CheckWrittenOnce();
  }

  absl::Status CheckWrittenOnce() const {
    absl::flat_hash_set<std::string_view> written;
    for (const std::size_t i : path_) {
      for (const auto& [slot, names] : program_.main().ops[i].outputs) {
        for (const std::string& name : names) {
          if (!written.insert(name).second)
            return Wrong("variable ", name, " is written twice on the way to the loss");
        }
      }
    }
    return absl::OkStatus();
  }

  bool MayLearn(std::string_view name) const {
    const Var* var = program_.main().Find(name);
    return var != nullptr && !var->stop_gradient && !options_.without.contains(name) &&
           var->type.data_type == DataType::kFloat32;
  }

  // The variables that a gradient is worth having for: trainable parameters and what is made of them.
  void FindWhatLearns() {
    for (auto i = path_.rbegin(); i != path_.rend(); ++i) {
      const Op& op = program_.main().ops[*i];
      const OpSchema* schema = Ops().Find(op.type);
      bool learns = false;
      for (const auto& [slot, names] : op.inputs) {
        for (const std::string& name : names) {
          const Var* var = program_.main().Find(name);
          if (var != nullptr && var->parameter && MayLearn(name)) learning_.insert(name);
          learns = learns || learning_.contains(name);
        }
      }
      if (!learns || schema == nullptr || !schema->gradient) continue;
      for (const auto& [slot, names] : op.outputs) {
        for (const std::string& name : names) {
          if (MayLearn(name)) learning_.insert(name);
        }
      }
    }
  }

  absl::Status CheckListed() const {
    for (const std::string& name : options_.parameters) {
      if (!learning_.contains(name))
        return Wrong("the loss ", loss_, " does not depend on the parameter ", name);
    }
    if (!learning_.contains(loss_))
      return Wrong("the loss ", loss_, " depends on no parameter that may learn");
    return absl::OkStatus();
  }

  void MakeGradients() {
    const Dims& dims = program_.main().Find(loss_)->type.dims;
    gradients_.push_back({.type = "fill_constant",
                          .outputs = {{"Out", {GradientName(loss_)}}},
                          .attrs = {{"shape", Ints(dims.begin(), dims.end())}, {"value", 1.0}},
                          .role = Role::kBackward});
    have_.insert(loss_);
    const GradientWish wish{.wanted = [this](std::string_view name) { return learning_.contains(name); },
                            .has_gradient = [this](std::string_view name) { return have_.contains(name); }};
    for (const std::size_t i : path_) {
      const Op& op = program_.main().ops[i];
      const OpSchema* schema = Ops().Find(op.type);
      if (schema == nullptr || !schema->gradient || !AnyOutputHas(op) || !AnyInputLearns(op)) continue;
      FillMissing(op, *schema);
      for (Op& gradient : schema->gradient(op, wish)) {
        if (gradient.outputs.empty()) continue;
        gradient.role = Role::kBackward;
        for (const auto& [slot, names] : gradient.outputs) {
          for (const std::string& name : names)
            have_.insert(name.substr(0, name.size() - kGradientSuffix.size()));
        }
        gradients_.push_back(std::move(gradient));
      }
    }
  }

  bool AnyOutputHas(const Op& op) const {
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const auto& slot) {
      return std::any_of(slot.second.begin(), slot.second.end(),
                         [&](const std::string& name) { return have_.contains(name); });
    });
  }

  bool AnyInputLearns(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const auto& slot) {
      return std::any_of(slot.second.begin(), slot.second.end(),
                         [&](const std::string& name) { return learning_.contains(name); });
    });
  }

  // Of a slot with many outputs all have a gradient or none: those that nothing uses get zeros.
  void FillMissing(const Op& op, const OpSchema& schema) {
    for (const SlotSpec& slot : schema.outputs) {
      if (slot.arity != Arity::kMany) continue;
      for (const std::string& name : op.Out(slot.name)) {
        if (!have_.insert(name).second) continue;
        gradients_.push_back({.type = "fill_zeros_like",
                              .inputs = {{"X", {name}}},
                              .outputs = {{"Out", {GradientName(name)}}},
                              .role = Role::kBackward});
      }
    }
  }

  // Where several operators write one gradient each writes a share, and the shares are added behind the last.
  void AddShares() {
    absl::flat_hash_map<std::string, std::vector<std::pair<std::size_t, std::string*>>> writers;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      for (auto& [slot, names] : gradients_[i].outputs) {
        for (std::string& name : names) writers[name].emplace_back(i, &name);
      }
    }
    std::map<std::size_t, std::vector<Op>> sums;  // by the operator that they come behind
    for (auto& [name, places] : writers) {
      if (places.size() < 2) continue;
      Op sum{.type = "sum", .outputs = {{"Out", {name}}}, .role = Role::kBackward};
      for (std::size_t k = 0; k < places.size(); ++k) {
        const std::string share = StrCat(name, "@RENAME@", k);
        *places[k].second = share;
        sum.inputs["X"].push_back(share);
      }
      sums[places.back().first].push_back(std::move(sum));
    }
    std::vector<Op> all;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      all.push_back(std::move(gradients_[i]));
      std::vector<Op>& behind = sums[i];
      std::sort(behind.begin(), behind.end(),
                [](const Op& a, const Op& b) { return a.OneOut("Out") < b.OneOut("Out"); });
      std::move(behind.begin(), behind.end(), std::back_inserter(all));
    }
    gradients_ = std::move(all);
  }

  std::vector<ParameterGradient> Pairs() const {
    std::vector<ParameterGradient> pairs;
    for (const Var& var : program_.main().vars) {
      if (!var.parameter || !learning_.contains(var.name) || !have_.contains(var.name)) continue;
      const bool listed = options_.parameters.empty() ||
                          std::find(options_.parameters.begin(), options_.parameters.end(), var.name) !=
                              options_.parameters.end();
      if (listed) pairs.push_back({var.name, GradientName(var.name)});
    }
    return pairs;
  }

  Program& program_;
  const std::string loss_;
  const BackwardOptions& options_;
  std::vector<std::size_t> path_;  // operators of block 0, the last one first
  std::set<std::string, std::less<>> learning_;
  std::set<std::string, std::less<>> have_;  // variables whose gradient some operator writes
  std::vector<Op> gradients_;
};

}  // namespace

absl::StatusOr<std::vector<ParameterGradient>> AppendBackward(Program& program, std::string_view loss,
                                                              const BackwardOptions& options) {
  return Backward(program, loss, options).Append();
}

absl::Status AppendOp(Program& program, int block, Op op) {
  TY_ASSIGN_OR_RETURN(op, Complete(std::move(op)));
  Typing::Types inputs;
  for (const auto& [slot, names] : op.inputs) {
    for (const std::string& name : names) {
      const Var* var = program.Find(block, name);
      if (var == nullptr) return Wrong(op.type, ": there is no variable ", name);
      inputs[slot].push_back(var->type);
    }
  }
  absl::StatusOr<Typing::Types> outputs = InferTypes(op, std::move(inputs));
  if (!outputs.ok()) return Annotate(outputs.status(), op.type);
  for (const auto& [slot, names] : op.outputs) {
    const std::vector<VarType>& types = outputs->find(slot)->second;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Var* var = program.Find(block, names[i]);
      if (var == nullptr) {
        program.blocks[static_cast<std::size_t>(block)].vars.push_back({.name = names[i], .type = types[i]});
      } else if (!Agrees(var->type, types[i])) {
        return Wrong(op.type, ": it makes ", Print(types[i]), " of ", names[i], ", which is ",
                     Print(var->type));
      }
    }
  }
  program.blocks[static_cast<std::size_t>(block)].ops.push_back(std::move(op));
  return absl::OkStatus();
}

}  // namespace trainyard::graph
