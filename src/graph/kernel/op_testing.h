// Runs single operators for tests.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "graph/exec/executor.h"
#include "graph/op/check.h"
#include "graph/op/schema.h"

namespace trainyard::graph {

// One operator with values for its inputs.
struct OpCall {
  std::string type;
  std::map<std::string, std::vector<Value>> in = {};
  Attrs attrs = {};
  // How many variables an output slot has; a slot that is not named here has one, or none if that is 0.
  std::map<std::string, int> outs = {};
  // Output slots that are the same variables as an input slot: {{"ParamOut", "Param"}}.
  std::map<std::string, std::string> in_place = {};
  int threads = 1;
};

using OpResults = std::map<std::string, std::vector<Value>>;

// Variables are called by their slot, with a number from the second on: "X", "X.1".
inline std::string VariableName(std::string_view slot, std::size_t i) {
  return i == 0 ? std::string(slot) : StrCat(slot, ".", i);
}

// The operator of a call, and variables for it, as a program.
inline absl::StatusOr<Program> ProgramOf(const OpCall& call) {
  const OpSchema* schema = Ops().Find(call.type);
  if (schema == nullptr) return absl::NotFoundError(StrCat("there is no operator ", call.type));
  Op op{.type = call.type, .attrs = call.attrs};
  Program program{.id = "test"};
  Typing::Types types;
  for (const auto& [slot, values] : call.in) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      op.inputs[slot].push_back(VariableName(slot, i));
      types[slot].push_back(TypeOf(values[i]));
      program.main().vars.push_back({.name = op.inputs[slot].back(), .type = types[slot].back()});
    }
  }
  for (const SlotSpec& slot : schema->outputs) {
    const auto place = call.in_place.find(slot.name);
    const auto many = call.outs.find(slot.name);
    const int count = many == call.outs.end() ? 1 : many->second;
    for (int i = 0; i < count; ++i) {
      op.outputs[slot.name].push_back(VariableName(place == call.in_place.end() ? slot.name : place->second,
                                                   static_cast<std::size_t>(i)));
    }
  }
  TY_ASSIGN_OR_RETURN(op, Complete(std::move(op)));
  TY_ASSIGN_OR_RETURN(const Typing::Types made, InferTypes(op, types));
  for (const auto& [slot, names] : op.outputs) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (program.main().Find(names[i]) == nullptr)
        program.main().vars.push_back({.name = names[i], .type = made.find(slot)->second[i]});
    }
  }
  program.main().ops.push_back(std::move(op));
  return program;
}

// One operator that is prepared once and may be run with other values, and other sizes, again and again.
class OneOp {
 public:
  static absl::StatusOr<std::unique_ptr<OneOp>> Make(const OpCall& call) {
    TY_ASSIGN_OR_RETURN(Program program, ProgramOf(call));
    return Make(std::move(program), call);
  }
  static absl::StatusOr<std::unique_ptr<OneOp>> Make(Program program, const OpCall& call) {
    std::unique_ptr<OneOp> made(new OneOp);
    made->program_ = std::move(program);
    TY_ASSIGN_OR_RETURN(made->block_,
                        PreparedBlock::Make(made->program_, 0, made->scope_, {.threads = call.threads}));
    made->Feed(call.in);
    return made;
  }

  // Values are not copied: an operator that works in place changes the tensors that it is fed.
  void Feed(const std::map<std::string, std::vector<Value>>& in) {
    for (const auto& [slot, values] : in) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        Variable* variable = block_->Find(VariableName(slot, i));
        variable->value = values[i];
        variable->absent = false;
      }
    }
  }
  absl::Status Run() {
    Services now = services;
    return block_->Run(now);
  }
  const Value& Get(std::string_view variable) { return block_->Find(variable)->value; }
  // The outputs of the program's first operator.
  OpResults Results() {
    OpResults results;
    for (const auto& [slot, names] : program_.main().ops.front().outputs) {
      for (const std::string& name : names) results[slot].push_back(Get(name));
    }
    return results;
  }
  const Program& program() const { return program_; }

  Services services;  // of every run: `step` stays

 private:
  OneOp() = default;
  Program program_;
  Scope scope_;
  std::unique_ptr<PreparedBlock> block_;
};

inline absl::StatusOr<OpResults> RunOp(const OpCall& call, const Services& services = {}) {
  TY_ASSIGN_OR_RETURN(const std::unique_ptr<OneOp> op, OneOp::Make(call));
  op->services = services;
  TY_RETURN_IF_ERROR(op->Run());
  return op->Results();
}

// The only (or first) dense output of a slot; the test fails and it is empty if the operator cannot be run.
inline Tensor Output(const OpCall& call, const std::string& slot = "Out") {
  const absl::StatusOr<OpResults> results = RunOp(call);
  EXPECT_TRUE(results.ok()) << call.type << ": " << results.status();
  if (!results.ok() || !results->contains(slot)) return {};
  return std::get<Tensor>(results->at(slot).front());
}

}  // namespace trainyard::graph
