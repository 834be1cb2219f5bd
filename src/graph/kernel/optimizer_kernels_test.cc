#include <cmath>
#include <functional>
#include <map>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

// An optimiser with the names of its accumulators, and its rule in plain words: what becomes of a parameter
// (state[0]) and its accumulators, given the gradient.
struct Rule {
  std::string name;
  std::string type;
  std::vector<std::string> accumulators;
  Attrs attrs;
  std::function<void(std::vector<double>& state, double g)> step;
  bool has_rate = true;
  bool has_powers = false;
};

constexpr double kRate = 0.1;

std::vector<Rule> Rules() {
  using State = std::vector<double>;
  return {
      {"Sgd", "sgd", {}, {}, [](State& s, double g) { s[0] -= kRate * g; }},
      {"Momentum",
       "momentum",
       {"Velocity"},
       {{"mu", 0.8}},
       [](State& s, double g) {
         s[1] = 0.8 * s[1] + g;
         s[0] -= kRate * s[1];
       }},
      {"Nesterov",
       "momentum",
       {"Velocity"},
       {{"mu", 0.8}, {"use_nesterov", true}},
       [](State& s, double g) {
         s[1] = 0.8 * s[1] + g;
         s[0] -= kRate * (g + 0.8 * s[1]);
       }},
      {"Adagrad",
       "adagrad",
       {"Moment"},
       {{"epsilon", 1e-3}},
       [](State& s, double g) {
         s[1] += g * g;
         s[0] -= kRate * g / (std::sqrt(s[1]) + 1e-3);
       }},
      {"Adam",
       "adam",
       {"Moment1", "Moment2"},
       {{"beta1", 0.8}, {"beta2", 0.9}, {"epsilon", 1e-3}},
       [](State& s, double g) {
         s[1] = 0.8 * s[1] + 0.2 * g;
         s[2] = 0.9 * s[2] + 0.1 * g * g;
         const double rate = kRate * std::sqrt(1 - 0.81) / (1 - 0.64);
         s[0] -= rate * s[1] / (std::sqrt(s[2]) + 1e-3);
       },
       true,
       true},
      {"RmsProp",
       "rmsprop",
       {"MeanSquare", "Moment"},
       {{"rho", 0.7}, {"epsilon", 1e-3}, {"momentum", 0.6}},
       [](State& s, double g) {
         s[1] = 0.7 * s[1] + 0.3 * g * g;
         s[2] = 0.6 * s[2] + kRate * g / std::sqrt(s[1] + 1e-3);
         s[0] -= s[2];
       }},
      {"MovingAverage",
       "moving_average",
       {},
       {{"momentum", 0.75}},
       [](State& s, double g) { s[0] = 0.75 * s[0] + 0.25 * g; },
       false},
  };
}

class Optimizers : public testing::TestWithParam<Rule> {
 protected:
  static OpCall Call(const Dims& dims, Value gradient, bool in_place) {
    const Rule& rule = GetParam();
    OpCall call{.type = rule.type, .attrs = rule.attrs};
    call.in["Param"] = {RandomTensor(dims, 1)};
    call.in["Grad"] = {std::move(gradient)};
    std::uint64_t seed = 2;
    for (const std::string& slot : rule.accumulators) call.in[slot] = {RandomTensor(dims, seed++, 0.1, 1)};
    if (rule.has_rate) call.in["LearningRate"] = {F32({1}, {static_cast<float>(kRate)})};
    if (rule.has_powers) {
      call.in["Beta1Pow"] = {F32({1}, {0.64F})};
      call.in["Beta2Pow"] = {F32({1}, {0.81F})};
    }
    if (in_place) {
      call.in_place["ParamOut"] = "Param";
      for (const std::string& slot : rule.accumulators) call.in_place[slot + "Out"] = slot;
    }
    return call;
  }

  static std::vector<std::string> Slots() {
    std::vector<std::string> slots = {"Param"};
    slots.insert(slots.end(), GetParam().accumulators.begin(), GetParam().accumulators.end());
    return slots;
  }

  // What the rule makes of the call's values, given the gradient of each element; none: it is not touched.
  static std::map<std::string, std::vector<float>> Wanted(const OpCall& call,
                                                          const std::map<std::size_t, double>& g) {
    std::map<std::string, std::vector<float>> wanted;
    for (const std::string& slot : Slots())
      wanted[slot] = ValuesOf<float>(std::get<Tensor>(call.in.at(slot)[0]));
    for (const auto& [i, gradient] : g) {
      std::vector<double> state;
      for (const std::string& slot : Slots()) state.push_back(static_cast<double>(wanted[slot][i]));
      GetParam().step(state, gradient);
      for (std::size_t k = 0; k < state.size(); ++k) wanted[Slots()[k]][i] = static_cast<float>(state[k]);
    }
    return wanted;
  }

  static void Check(const OpCall& call, const std::map<std::size_t, double>& gradients) {
    const auto wanted = Wanted(call, gradients);
    const auto results = RunOp(call);
    ASSERT_TRUE(results.ok()) << results.status();
    for (const std::string& slot : Slots()) {
      SCOPED_TRACE(slot);
      ExpectNear(std::get<Tensor>(results->at(slot + "Out")[0]), wanted.at(slot), 2e-6);
    }
  }
};

TEST_P(Optimizers, FollowTheirRuleForDenseGradients) {
  for (const bool in_place : {false, true}) {
    for (const Dims& dims : {Dims{1}, Dims{5, 7}, Dims{300, 301}}) {
      const Tensor gradient = RandomTensor(dims, 9);
      std::map<std::size_t, double> gradients;
      for (std::size_t i = 0; i < gradient.span<float>().size(); ++i)
        gradients[i] = static_cast<double>(gradient.span<float>()[i]);
      OpCall call = Call(dims, gradient, in_place);
      call.threads = 2;
      Check(call, gradients);
    }
  }
}

TEST_P(Optimizers, TouchOnlyTheRowsOfASparseGradientAndAddThoseThatComeTwiceFirst) {
  for (const bool in_place : {false, true}) {
    const SparseRows gradient = Sparse(6, {4, 1, 4}, RandomTensor({3, 3}, 9));
    std::map<std::size_t, double> gradients;
    for (std::size_t i = 0; i < gradient.rows.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        gradients[static_cast<std::size_t>(gradient.rows[i]) * 3 + k] +=
            static_cast<double>(gradient.value.span<float>()[i * 3 + k]);
      }
    }
    Check(Call({6, 3}, gradient, in_place), gradients);
  }
}

TEST_P(Optimizers, ChangeNothingForAGradientWithoutRows) {
  for (const bool in_place : {false, true}) Check(Call({6, 3}, Sparse(6, {}, F32({0, 3}, {})), in_place), {});
}

TEST_P(Optimizers, NameARowThatTheParameterDoesNotHave) {
  for (const std::int64_t row : {-1, 6}) {
    const absl::Status status = RunOp(Call({6, 3}, Sparse(6, {row}, F32({1, 3}, {1, 2, 3})), true)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_NE(Message(status).find(StrCat("row ", row)), std::string_view::npos) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers, testing::ValuesIn(Rules()),
                         [](const auto& rule) { return rule.param.name; });

TEST(LearningRateKernel, TakesTheStepFromItsVariable) {
  const OpCall call = {.type = "learning_rate",
                       .in = {{"Step", {I64({1}, {20})}}},
                       .attrs = {{"kind", std::string("exponential")},
                                 {"base", 0.8},
                                 {"decay_steps", std::int64_t{10}},
                                 {"decay_rate", 0.5}}};
  ExpectNear(Output(call), {0.2F}, 1e-7);
}

}  // namespace
}  // namespace trainyard::graph
