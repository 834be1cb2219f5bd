#include "graph/pass/optimize.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/wrong.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

class Optimize {
 public:
  Optimize(Program& main, Program& startup, const Optimizer& optimizer,
           const std::map<std::string, ParameterWishes>& wishes)
      : main_(main), startup_(startup), optimizer_(optimizer), wishes_(wishes) {}

  absl::Status Append(std::vector<ParameterGradient> gradients) {
    TY_RETURN_IF_ERROR(ClipAll(gradients));
    for (ParameterGradient& pair : gradients) TY_RETURN_IF_ERROR(Decay(pair));
    TY_RETURN_IF_ERROR(AppendRate());
    for (const ParameterGradient& pair : gradients) TY_RETURN_IF_ERROR(AppendUpdate(pair));
    return absl::OkStatus();
  }

 private:
  const ParameterWishes& WishesOf(const std::string& parameter) const {
    static const ParameterWishes kNone;
    const auto found = wishes_.find(parameter);
    return found == wishes_.end() ? kNone : found->second;
  }

  absl::Status Add(Op op, std::string_view parameter, Role role = Role::kOptimize) {
    op.role = role;
    op.parameter = parameter;
    return AppendOp(main_, 0, std::move(op));
  }

  // A variable that lives as long as its parameter, filled by the startup program.
  absl::Status Keep(const std::string& name, const VarType& type, double value) {
    const Op fill{.type = "fill_constant",
                  .outputs = {{"Out", {name}}},
                  .attrs = {{"shape", Ints(type.dims.begin(), type.dims.end())},
                            {"value", value},
                            {"dtype", std::string(Name(type.data_type))}}};
    for (Program* program : {&main_, &startup_}) {
      if (program->main().Find(name) != nullptr)
        return Wrong("the variable ", name, " is there already: is the program optimised twice?");
      program->main().vars.push_back(
          {.name = name, .type = type, .persistable = true, .stop_gradient = true});
    }
    return AppendOp(startup_, 0, fill);
  }

  absl::Status ClipAll(std::vector<ParameterGradient>& gradients) {
    std::vector<ParameterGradient*> together;
    double max_norm = 0;
    for (ParameterGradient& pair : gradients) {
      const std::optional<Clip>& own = WishesOf(pair.parameter).clip;
      const std::optional<Clip>& clip = own ? own : optimizer_.clip;
      if (!clip) continue;
      if (const auto* global = std::get_if<ClipByGlobalNorm>(&*clip)) {
        if (!together.empty() && max_norm != global->max_norm)
          return Wrong("parameter ", pair.parameter, " asks for another global norm than the others");
        max_norm = global->max_norm;
        together.push_back(&pair);
      } else {
        TY_RETURN_IF_ERROR(ClipOne(pair, *clip));
      }
    }
    return together.empty() ? absl::OkStatus() : ClipTogether(together, max_norm);
  }

  absl::Status ClipOne(ParameterGradient& pair, const Clip& clip) {
    const std::string clipped = StrCat(pair.gradient, "@CLIP");
    Op op{.inputs = {{"X", {pair.gradient}}}, .outputs = {{"Out", {clipped}}}};
    if (const auto* value = std::get_if<ClipByValue>(&clip)) {
      if (!(value->min <= value->max))
        return Wrong("clip of ", pair.parameter, ": min ", PrintNumber(value->min), " is above max ",
                     PrintNumber(value->max));
      op.type = "clip_values";
      op.attrs = {{"min", value->min}, {"max", value->max}};
    } else {
      const double max_norm = std::get<ClipByNorm>(clip).max_norm;
      if (!(max_norm > 0))
        return Wrong("clip of ", pair.parameter, ": the norm must be above 0 and is ", PrintNumber(max_norm));
      op.type = "clip_by_norm";
      op.attrs = {{"max_norm", max_norm}};
    }
    pair.gradient = clipped;
    return Add(std::move(op), pair.parameter);
  }

  absl::Status ClipTogether(const std::vector<ParameterGradient*>& pairs, double max_norm) {
    if (!(max_norm > 0)) return Wrong("clip: the global norm must be above 0 and is ", PrintNumber(max_norm));
    Op factor{.type = "clip_factor",
              .outputs = {{"Out", {"global_norm@FACTOR"}}},
              .attrs = {{"max_norm", max_norm}}};
    for (const ParameterGradient* pair : pairs) {
      const std::string norm = StrCat(pair->gradient, "@NORM");
      TY_RETURN_IF_ERROR(
          Add({.type = "squared_l2_norm", .inputs = {{"X", {pair->gradient}}}, .outputs = {{"Out", {norm}}}},
              ""));
      factor.inputs["X"].push_back(norm);
    }
    TY_RETURN_IF_ERROR(Add(std::move(factor), ""));
    for (ParameterGradient* pair : pairs) {
      const std::string clipped = StrCat(pair->gradient, "@CLIP");
      TY_RETURN_IF_ERROR(Add({.type = "scale_by",
                              .inputs = {{"X", {pair->gradient}}, {"Factor", {"global_norm@FACTOR"}}},
                              .outputs = {{"Out", {clipped}}}},
                             pair->parameter));
      pair->gradient = clipped;
    }
    return absl::OkStatus();
  }

  absl::Status Decay(ParameterGradient& pair) {
    const std::optional<Regularizer>& own = WishesOf(pair.parameter).decay;
    const std::optional<Regularizer>& decay = own ? own : optimizer_.decay;
    if (!decay) return absl::OkStatus();
    const double coefficient = std::visit([](const auto& any) { return any.coefficient; }, *decay);
    if (!(coefficient >= 0) || !std::isfinite(coefficient))
      return Wrong("decay of ", pair.parameter, ": the coefficient must not be below 0");
    std::string from = pair.parameter;
    if (std::holds_alternative<L1Decay>(*decay)) {
      from = StrCat(pair.parameter, "@SIGN");
      TY_RETURN_IF_ERROR(
          Add({.type = "sign", .inputs = {{"X", {pair.parameter}}}, .outputs = {{"Out", {from}}}},
              pair.parameter));
    }
    const std::string term = StrCat(pair.parameter, "@DECAY");
    TY_RETURN_IF_ERROR(Add({.type = "scale",
                            .inputs = {{"X", {from}}},
                            .outputs = {{"Out", {term}}},
                            .attrs = {{"scale", coefficient}}},
                           pair.parameter));
    const std::string decayed = StrCat(pair.gradient, "@DECAYED");
    TY_RETURN_IF_ERROR(
        Add({.type = "sum", .inputs = {{"X", {pair.gradient, term}}}, .outputs = {{"Out", {decayed}}}},
            pair.parameter));
    pair.gradient = decayed;
    return absl::OkStatus();
  }

  absl::Status AppendRate() {
    const double* fixed = std::get_if<double>(&optimizer_.rate);
    if (fixed != nullptr) {
      if (!(*fixed > 0) || !std::isfinite(*fixed))
        return Wrong("the learning rate must be above 0 and is ", PrintNumber(*fixed));
      return Keep(rate_, {.dims = {1}}, *fixed);
    }
    TY_RETURN_IF_ERROR(Keep(kStepCounter, {.data_type = DataType::kInt64, .dims = {1}}, 0));
    TY_RETURN_IF_ERROR(Keep(rate_, {.dims = {1}}, 0));
    Op schedule{.type = "learning_rate",
                .inputs = {{"Step", {kStepCounter}}},
                .outputs = {{"Out", {rate_}}},
                .attrs = ScheduleAttrs()};
    TY_RETURN_IF_ERROR(Add(std::move(schedule), "", Role::kSchedule));
    return Add({.type = "increment", .inputs = {{"X", {kStepCounter}}}, .outputs = {{"Out", {kStepCounter}}}},
               "", Role::kSchedule);
  }

  Attrs ScheduleAttrs() const {
    const auto decaying = [](const char* kind, const auto& decay) {
      return Attrs{{"kind", std::string(kind)},
                   {"base", decay.base},
                   {"decay_steps", decay.decay_steps},
                   {"decay_rate", decay.rate},
                   {"staircase", decay.staircase}};
    };
    return std::visit(
        Overloaded{[](double) { return Attrs(); },
                   [&](const ExponentialDecay& decay) { return decaying("exponential", decay); },
                   [&](const NaturalExpDecay& decay) { return decaying("natural_exp", decay); },
                   [&](const InverseTimeDecay& decay) { return decaying("inverse_time", decay); },
                   [](const PolynomialDecay& decay) {
                     return Attrs{{"kind", std::string("polynomial")},
                                  {"base", decay.base},
                                  {"decay_steps", decay.decay_steps},
                                  {"end", decay.end},
                                  {"power", decay.power},
                                  {"cycle", decay.cycle}};
                   },
                   [](const PiecewiseDecay& decay) {
                     return Attrs{{"kind", std::string("piecewise")},
                                  {"boundaries", decay.boundaries},
                                  {"values", decay.values}};
                   }},
        optimizer_.rate);
  }

  // The learning rate of one parameter, which may have a factor of its own.
  absl::StatusOr<std::string> RateOf(const std::string& parameter) {
    const double factor = WishesOf(parameter).rate;
    if (factor == 1) return rate_;
    if (!(factor >= 0) || !std::isfinite(factor))
      return Wrong("parameter ", parameter, ": its share of the learning rate must not be below 0");
    const std::string own = StrCat(parameter, "@RATE");
    TY_RETURN_IF_ERROR(Add({.type = "scale",
                            .inputs = {{"X", {rate_}}},
                            .outputs = {{"Out", {own}}},
                            .attrs = {{"scale", factor}}},
                           parameter));
    return own;
  }

  // An accumulator like the parameter: "w_moment1".
  absl::StatusOr<std::string> Accumulator(const std::string& parameter, std::string_view name,
                                          double value = 0, std::optional<Dims> dims = std::nullopt) {
    const std::string full = StrCat(parameter, "_", name);
    TY_RETURN_IF_ERROR(Keep(full, {.dims = dims ? *dims : main_.main().Find(parameter)->type.dims}, value));
    return full;
  }

  absl::Status Attach(Op& op, const char* slot, std::string_view name) {
    TY_ASSIGN_OR_RETURN(const std::string accumulator, Accumulator(op.parameter, name));
    op.inputs[slot] = {accumulator};
    op.outputs[StrCat(slot, "Out")] = {accumulator};
    return absl::OkStatus();
  }

  absl::Status AppendUpdate(const ParameterGradient& pair) {
    TY_ASSIGN_OR_RETURN(const std::string rate, RateOf(pair.parameter));
    Op op{.inputs = {{"Param", {pair.parameter}}, {"Grad", {pair.gradient}}, {"LearningRate", {rate}}},
          .outputs = {{"ParamOut", {pair.parameter}}},
          .parameter = pair.parameter};
    TY_RETURN_IF_ERROR(std::visit([&](const auto& update) { return Fill(op, update); }, optimizer_.update));
    const bool adam = op.type == "adam";
    const double beta1 = op.Float("beta1");
    const double beta2 = op.Float("beta2");
    TY_RETURN_IF_ERROR(Add(std::move(op), pair.parameter));
    if (!adam) return absl::OkStatus();
    for (const auto& [name, beta] : {std::pair("beta1_pow", beta1), std::pair("beta2_pow", beta2)}) {
      const std::string power = StrCat(pair.parameter, "_", name);
      TY_RETURN_IF_ERROR(Add({.type = "scale",
                              .inputs = {{"X", {power}}},
                              .outputs = {{"Out", {power}}},
                              .attrs = {{"scale", beta}}},
                             pair.parameter));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(Op& op, const Sgd&) {
    op.type = "sgd";
    return absl::OkStatus();
  }
  absl::Status Fill(Op& op, const Momentum& update) {
    op.type = "momentum";
    op.attrs = {{"mu", update.momentum}, {"use_nesterov", update.nesterov}};
    return Attach(op, "Velocity", "velocity");
  }
  absl::Status Fill(Op& op, const Adagrad& update) {
    op.type = "adagrad";
    op.attrs = {{"epsilon", update.epsilon}};
    return Attach(op, "Moment", "moment");
  }
  absl::Status Fill(Op& op, const RmsProp& update) {
    op.type = "rmsprop";
    op.attrs = {{"rho", update.rho}, {"epsilon", update.epsilon}, {"momentum", update.momentum}};
    TY_RETURN_IF_ERROR(Attach(op, "MeanSquare", "mean_square"));
    return Attach(op, "Moment", "moment");
  }
  absl::Status Fill(Op& op, const Adam& update) {
    op.type = "adam";
    op.attrs = {{"beta1", update.beta1}, {"beta2", update.beta2}, {"epsilon", update.epsilon}};
    TY_RETURN_IF_ERROR(Attach(op, "Moment1", "moment1"));
    TY_RETURN_IF_ERROR(Attach(op, "Moment2", "moment2"));
    TY_ASSIGN_OR_RETURN(op.inputs["Beta1Pow"].emplace_back(),
                        Accumulator(op.parameter, "beta1_pow", update.beta1, Dims{1}));
    TY_ASSIGN_OR_RETURN(op.inputs["Beta2Pow"].emplace_back(),
                        Accumulator(op.parameter, "beta2_pow", update.beta2, Dims{1}));
    return absl::OkStatus();
  }

  Program& main_;
  Program& startup_;
  const Optimizer& optimizer_;
  const std::map<std::string, ParameterWishes>& wishes_;
  const std::string rate_ = "learning_rate_0";
};

}  // namespace

absl::Status AppendOptimizer(Program& main, Program& startup, const std::vector<ParameterGradient>& gradients,
                             const Optimizer& optimizer,
                             const std::map<std::string, ParameterWishes>& wishes) {
  if (gradients.empty()) return Wrong("there is no parameter to learn");
  return Optimize(main, startup, optimizer, wishes).Append(gradients);
}

}  // namespace trainyard::graph
