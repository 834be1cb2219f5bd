// What tests of kernels need: tensors, single operators, and gradients held against differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/op_testing.h"      // IWYU pragma: export
#include "graph/kernel/tensor_testing.h"  // IWYU pragma: export
#include "graph/op/check.h"
#include "graph/op/schema.h"

namespace trainyard::graph {

struct GradientCheck {
  std::vector<std::string> slots = {};  // inputs whose gradients are wanted; empty: all dense floats
  double step = 1e-2;                   // of the differences
  double tolerance = 1e-2;              // of the largest difference of an input
  int most = 400;                       // elements of one input that are tried, spread over it
};

namespace testing_internal {

// Appends the operators that give the gradients of the first one, with variables for them.
inline absl::Status AppendGradient(Program& program, const std::vector<std::string>& wanted) {
  const Op forward = program.main().ops.front();
  const OpSchema* schema = Ops().Find(forward.type);
  if (!schema->gradient) return absl::InvalidArgumentError(StrCat(forward.type, " has no gradient"));
  const GradientWish wish = {.wanted =
                                 [&](std::string_view name) {
                                   return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
                                 },
                             .has_gradient = [](std::string_view) { return true; }};
  for (Op op : schema->gradient(forward, wish)) {
    TY_ASSIGN_OR_RETURN(op, Complete(std::move(op)));
    Typing::Types types;
    for (const auto& [slot, names] : op.inputs) {
      for (const std::string& name : names) {
        if (program.main().Find(name) == nullptr) {
          const Var* of = program.main().Find(name.substr(0, name.size() - kGradientSuffix.size()));
          if (of == nullptr) return absl::NotFoundError(StrCat("nothing makes ", name));
          program.main().vars.push_back({.name = name, .type = of->type});
        }
        types[slot].push_back(program.main().Find(name)->type);
      }
    }
    TY_ASSIGN_OR_RETURN(const Typing::Types made, InferTypes(op, types));
    for (const auto& [slot, names] : op.outputs) {
      for (std::size_t i = 0; i < names.size(); ++i)
        program.main().vars.push_back({.name = names[i], .type = made.find(slot)->second[i]});
    }
    program.main().ops.push_back(std::move(op));
  }
  return absl::OkStatus();
}

// The sum of the outputs by their weights.
inline double Loss(OneOp& op, const std::map<std::string, Tensor>& weights) {
  const absl::Status run = op.Run();
  EXPECT_TRUE(run.ok()) << run;
  double loss = 0;
  for (const auto& [name, weight] : weights) {
    const auto& out = std::get<Tensor>(op.Get(name));
    for (std::int64_t i = 0; i < out.count(); ++i)
      loss += static_cast<double>(weight.data<float>()[i]) * static_cast<double>(out.data<float>()[i]);
  }
  return loss;
}

inline void CompareWithDifferences(OneOp& forward, const std::map<std::string, Tensor>& weights, Tensor input,
                                   const Tensor& gradient, const GradientCheck& check) {
  ASSERT_EQ(gradient.dims(), input.dims());
  const std::int64_t stride = std::max<std::int64_t>(1, input.count() / check.most);
  std::vector<std::pair<std::int64_t, double>> differences;
  double largest = 0;
  for (std::int64_t i = 0; i < input.count(); i += stride) {
    float& element = input.data<float>()[i];
    const float kept = element;
    element = kept + static_cast<float>(check.step);
    const float above = element;
    const double more = Loss(forward, weights);
    element = kept - static_cast<float>(check.step);
    const double width = static_cast<double>(above) - static_cast<double>(element);
    differences.emplace_back(i, (more - Loss(forward, weights)) / width);
    element = kept;
    largest = std::max(largest, std::abs(differences.back().second));
  }
  const double allowed = check.tolerance * std::max(largest, 1e-2);
  for (const auto& [i, difference] : differences) {
    ASSERT_NEAR(gradient.data<float>()[i], difference, allowed)
        << "element " << i << " of " << Print(input.dims());
  }
}

}  // namespace testing_internal

// Holds the gradients of a weighted sum of the outputs against differences. Inputs must lie away from kinks
// by more than the step.
inline void CheckGradient(OpCall call, const GradientCheck& check = {}) {
  SCOPED_TRACE(StrCat("the gradient of ", call.type));
  std::vector<std::string> wanted;
  for (auto& [slot, values] : call.in) {
    const bool asked =
        check.slots.empty() || std::find(check.slots.begin(), check.slots.end(), slot) != check.slots.end();
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto* tensor = std::get_if<Tensor>(&values[i]);
      if (tensor == nullptr) continue;
      *tensor = tensor->Clone();
      if (asked && tensor->type() == DataType::kFloat32) wanted.push_back(VariableName(slot, i));
    }
  }
  absl::StatusOr<Program> program = ProgramOf(call);
  ASSERT_TRUE(program.ok()) << program.status();
  auto forward = OneOp::Make(*program, call);
  ASSERT_TRUE(forward.ok()) << forward.status();
  const absl::Status appended = testing_internal::AppendGradient(*program, wanted);
  ASSERT_TRUE(appended.ok()) << appended;
  auto both = OneOp::Make(*program, call);
  ASSERT_TRUE(both.ok()) << both.status();

  const absl::Status run = (*forward)->Run();
  ASSERT_TRUE(run.ok()) << run;
  std::map<std::string, Tensor> weights;
  const Op& op = program->main().ops.front();
  for (const auto& [slot, names] : op.outputs) {
    for (const std::string& name : names) {
      if (program->main().Find(GradientName(name)) == nullptr) continue;
      const Tensor weight =
          RandomTensor(std::get<Tensor>((*forward)->Get(name)).dims(), 77 + weights.size(), 0.2, 1);
      weights.emplace(name, weight);
      (*both)->Feed({{GradientName(name), {weight}}});
    }
  }
  const absl::Status backward = (*both)->Run();
  ASSERT_TRUE(backward.ok()) << backward;
  int compared = 0;
  for (const auto& [slot, names] : op.inputs) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::find(wanted.begin(), wanted.end(), names[i]) == wanted.end()) continue;
      if (program->main().Find(GradientName(names[i])) == nullptr) continue;
      SCOPED_TRACE(StrCat("by ", names[i]));
      testing_internal::CompareWithDifferences(**forward, weights, std::get<Tensor>(call.in.at(slot)[i]),
                                               WholeOf((*both)->Get(GradientName(names[i]))), check);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0) << "no gradient was computed";
}

}  // namespace trainyard::graph
