#include "graph/op/check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "graph/ir/wrong.h"

namespace trainyard::graph {
namespace {

std::string_view KindOf(const Attr& attr) {
  static constexpr std::array<std::string_view, 9> kKinds = {"a bool", "a whole number", "a number",
                                                             "a text", "whole numbers",  "numbers",
                                                             "texts",  "a block",        "blocks"};
  return kKinds[attr.index()];
}

absl::Status CheckSlots(const Slots& given, const std::vector<SlotSpec>& specs, std::string_view side) {
  for (const auto& [slot, names] : given) {
    const bool known = std::any_of(specs.begin(), specs.end(),
                                   [&, &name = slot](const SlotSpec& spec) { return spec.name == name; });
    if (!known) {
      std::string slots;
      for (const SlotSpec& spec : specs) StrAppend(slots, slots.empty() ? "" : ", ", spec.name);
      return Wrong("it has no ", side, " slot ", slot, slots.empty() ? "" : "; its slots are ", slots);
    }
  }
  for (const SlotSpec& spec : specs) {
    const auto found = given.find(spec.name);
    const std::size_t count = found == given.end() ? 0 : found->second.size();
    if (spec.arity == Arity::kOne && count != 1)
      return Wrong(side, " slot ", spec.name, " takes one variable and has ", count);
    if (spec.arity == Arity::kOptional && count > 1)
      return Wrong(side, " slot ", spec.name, " takes at most one variable and has ", count);
  }
  return absl::OkStatus();
}

absl::Status CompleteAttrs(Attrs& attrs, const std::vector<AttrSpec>& specs) {
  for (const auto& [name, value] : attrs) {
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&, &wanted = name](const AttrSpec& s) { return s.name == wanted; });
    if (spec == specs.end()) return Wrong("it has no attribute ", name);
    if (spec->standard.index() != value.index()) {
      return Wrong("attribute ", name, " is ", KindOf(value), " and must be ", KindOf(spec->standard));
    }
  }
  for (const AttrSpec& spec : specs) {
    if (attrs.contains(spec.name)) continue;
    if (spec.required) return Wrong("attribute ", spec.name, " is missing");
    attrs.emplace(spec.name, spec.standard);
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const Program& program, int block, const Op& op, const Typing::Types& outputs) {
  for (const auto& [slot, names] : op.outputs) {
    const auto found = outputs.find(slot);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Var* var = program.Find(block, names[i]);
      if (var != nullptr && !Agrees(var->type, found->second[i])) {
        return Wrong("it makes ", Print(found->second[i]), " of ", names[i], ", which is declared as ",
                     Print(var->type));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const Program& program, int block, const Op& op, const OpTable& table) {
  Typing::Types inputs;
  for (const auto& [slot, names] : op.inputs) {
    for (const std::string& name : names) {
      const Var* var = program.Find(block, name);
      if (var == nullptr) return Wrong("there is no variable ", name);
      inputs[slot].push_back(var->type);
    }
  }
  absl::StatusOr<Typing::Types> outputs = InferTypes(op, std::move(inputs), table);
  if (!outputs.ok()) return outputs.status();
  return CheckOutputs(program, block, op, *outputs);
}

}  // namespace

bool Agrees(const VarType& declared, const VarType& found) {
  if (declared.kind != found.kind || declared.data_type != found.data_type) return false;
  return std::equal(
      declared.dims.begin(), declared.dims.end(), found.dims.begin(), found.dims.end(),
      [](std::int64_t a, std::int64_t b) { return a == b || a == kUnknownDim || b == kUnknownDim; });
}

absl::StatusOr<Op> Complete(Op op, const OpTable& table) {
  const OpSchema* schema = table.Find(op.type);
  if (schema == nullptr) return Wrong("there is no operator ", op.type.substr(0, 64));
  if (absl::Status checked = CheckSlots(op.inputs, schema->inputs, "input"); !checked.ok()) return checked;
  if (absl::Status checked = CheckSlots(op.outputs, schema->outputs, "output"); !checked.ok()) return checked;
  if (absl::Status checked = CompleteAttrs(op.attrs, schema->attrs); !checked.ok()) return checked;
  return op;
}

absl::StatusOr<Typing::Types> InferTypes(const Op& op, Typing::Types inputs, const OpTable& table) {
  const OpSchema* schema = table.Find(op.type);
  if (schema == nullptr) return Wrong("there is no operator ", op.type.substr(0, 64));
  Typing typing(op, std::move(inputs));
  if (schema->infer) {
    if (absl::Status inferred = schema->infer(typing); !inferred.ok()) return inferred;
  }
  return typing.outputs();
}

absl::StatusOr<Program> CheckProgram(Program program, const OpTable& table) {
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    for (std::size_t i = 0; i < program.blocks[b].ops.size(); ++i) {
      Op& op = program.blocks[b].ops[i];
      const auto where = [&](const absl::Status& status) {
        return Wrong("program ", program.id, ", block ", b, ", operator ", i, " (", op.type.substr(0, 64),
                     "): ", status.message());
      };
      absl::StatusOr<Op> completed = Complete(op, table);
      if (!completed.ok()) return where(completed.status());
      op = *std::move(completed);
      if (absl::Status checked = CheckTypes(program, static_cast<int>(b), op, table); !checked.ok())
        return where(checked);
    }
  }
  return program;
}

}  // namespace trainyard::graph
