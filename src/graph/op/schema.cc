#include "graph/op/schema.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/op/check.h"

namespace trainyard::graph {
namespace {

template <typename Spec>
const Spec* FindByName(const std::vector<Spec>& specs, std::string_view name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

Op MakeGradient(const GradientSpec& spec, const Op& forward, const GradientWish& wish) {
  Op op{.type = forward.type + "_grad", .attrs = forward.attrs, .role = Role::kBackward};
  for (const auto& slots : {spec.of, spec.reads}) {
    for (const std::string& slot : slots) {
      const std::vector<std::string>& names = forward.In(slot).empty() ? forward.Out(slot) : forward.In(slot);
      if (!names.empty()) op.inputs[slot] = names;
    }
  }
  for (const std::string& slot : spec.from) {
    for (const std::string& name : forward.Out(slot)) {
      if (wish.has_gradient(name)) op.inputs[GradientName(slot)].push_back(GradientName(name));
    }
  }
  for (const std::string& slot : spec.of) {
    const std::vector<std::string>& names = forward.In(slot);
    // A slot of many is all or none, or the gradients could not be told apart.
    if (std::any_of(names.begin(), names.end(), wish.wanted)) {
      for (const std::string& name : names) op.outputs[GradientName(slot)].push_back(GradientName(name));
    }
  }
  return op;
}

// Holds what a gradient operator reads of its operator's outputs, and the gradients of these, to the types
// that the operator makes of its inputs; kernels rely on it. Nothing can be said if not all inputs are read.
absl::Status CheckGradientInputs(const OpSchema& forward, const Typing& typing) {
  Op op{.type = forward.type, .attrs = typing.op().attrs};
  Typing::Types inputs;
  for (const SlotSpec& slot : forward.inputs) {
    if (!typing.Has(slot.name) && slot.arity == Arity::kOne) return absl::OkStatus();
    for (int i = 0; i < typing.CountOf(slot.name); ++i) inputs[slot.name].push_back(typing.In(slot.name, i));
  }
  for (const SlotSpec& slot : forward.outputs) {
    const int count = std::max(typing.CountOf(slot.name), typing.CountOf(GradientName(slot.name)));
    op.outputs[slot.name].resize(static_cast<std::size_t>(count));
  }
  Typing types(op, std::move(inputs));
  TY_RETURN_IF_ERROR(forward.infer(types));
  for (const auto& [slot, made] : types.outputs()) {
    for (const std::string& read : {slot, GradientName(slot)}) {
      for (int i = 0; i < typing.CountOf(read); ++i) {
        const VarType& wanted = made[static_cast<std::size_t>(i)];
        if (Agrees(wanted, typing.In(read, i))) continue;
        return absl::InvalidArgumentError(
            StrCat(read, " must be ", Print(wanted), " and is ", Print(typing.In(read, i))));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InferGradientTypes(Typing& typing) {
  for (const auto& [slot, names] : typing.op().outputs) {
    const std::string_view of = std::string_view(slot).substr(0, slot.size() - kGradientSuffix.size());
    if (typing.CountOf(of) != static_cast<int>(names.size())) {
      return absl::InvalidArgumentError(StrCat("it writes ", slot, " and does not read as many of ", of));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      typing.SetOut(slot, typing.In(of, static_cast<int>(i)), static_cast<int>(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Typing::Typing(const Op& op, Types inputs) : op_(op), inputs_(std::move(inputs)) {
  for (const auto& [slot, names] : op.outputs) outputs_[slot].resize(names.size());
}

int Typing::CountOf(std::string_view slot) const {
  const auto found = inputs_.find(slot);
  return found == inputs_.end() ? 0 : static_cast<int>(found->second.size());
}

const VarType& Typing::In(std::string_view slot, int i) const {
  TY_CHECK(i < CountOf(slot), "the type of an input is asked for that is there");
  return inputs_.find(slot)->second[static_cast<std::size_t>(i)];
}

void Typing::SetOut(std::string_view slot, VarType type, int i) {
  const auto found = outputs_.find(slot);
  if (found == outputs_.end() || static_cast<std::size_t>(i) >= found->second.size()) return;
  found->second[static_cast<std::size_t>(i)] = std::move(type);
}

std::string GradientName(std::string_view variable) { return StrCat(variable, kGradientSuffix); }

const SlotSpec* OpSchema::FindInput(std::string_view slot) const { return FindByName(inputs, slot); }
const SlotSpec* OpSchema::FindOutput(std::string_view slot) const { return FindByName(outputs, slot); }

void OpTable::Add(OpSchema schema) {
  const std::string type = schema.type;
  TY_CHECK(schemas_.emplace(type, std::move(schema)).second, "an operator is defined once");
}

void OpTable::AddWithGradient(OpSchema schema, GradientSpec gradient, InferFunction infer) {
  OpSchema backward{.type = schema.type + "_grad", .attrs = schema.attrs};
  backward.infer = [forward = schema, own = infer ? std::move(infer) : InferGradientTypes](Typing& typing) {
    TY_RETURN_IF_ERROR(CheckGradientInputs(forward, typing));
    return own(typing);
  };
  const auto arity = [&](const std::string& slot) {
    const SlotSpec* spec =
        schema.FindInput(slot) != nullptr ? schema.FindInput(slot) : schema.FindOutput(slot);
    TY_CHECK(spec != nullptr, "a gradient reads what its operator has");
    return spec->arity;
  };
  for (const std::string& slot : gradient.of) {
    const Arity many = arity(slot);
    backward.inputs.push_back({slot, many});
    backward.outputs.push_back({GradientName(slot), many == Arity::kMany ? Arity::kMany : Arity::kOptional});
  }
  for (const std::string& slot : gradient.reads) backward.inputs.push_back({slot, arity(slot)});
  for (const std::string& slot : gradient.from) backward.inputs.push_back({GradientName(slot), arity(slot)});
  schema.gradient = [spec = std::move(gradient)](const Op& forward, const GradientWish& wish) {
    return std::vector<Op>{MakeGradient(spec, forward, wish)};
  };
  Add(std::move(schema));
  Add(std::move(backward));
}

const OpSchema* OpTable::Find(std::string_view type) const {
  const auto found = schemas_.find(type);
  return found == schemas_.end() ? nullptr : &found->second;
}

const OpTable& Ops() {
  static const OpTable& table = *[] {
    auto* made = new OpTable;
    AddMathOps(*made);
    AddActivationOps(*made);
    AddLayerOps(*made);
    AddLossOps(*made);
    AddShapeOps(*made);
    AddFillOps(*made);
    AddOptimizerOps(*made);
    AddControlOps(*made);
    AddRemoteOps(*made);
    return made;
  }();
  return table;
}

}  // namespace trainyard::graph
