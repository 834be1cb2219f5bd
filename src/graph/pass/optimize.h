// Adds to a program what learns from gradients: clipping, decay, the learning rate's schedule, the update of
// each parameter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/program.h"
#include "graph/pass/backward.h"

namespace trainyard::graph {

struct L1Decay {
  double coefficient = 0;
};
struct L2Decay {
  double coefficient = 0;
};
using Regularizer = std::variant<L1Decay, L2Decay>;

struct ClipByValue {
  double min = -1;
  double max = 1;
};
struct ClipByNorm {
  double max_norm = 1;
};
// By the norm of all gradients together. It needs them in one place, so programs with it are not transpiled.
struct ClipByGlobalNorm {
  double max_norm = 1;
};
using Clip = std::variant<ClipByValue, ClipByNorm, ClipByGlobalNorm>;

// x = step / decay_steps, or the whole part of it with `staircase`.
struct ExponentialDecay {  // base * rate^x
  double base = 0.1;
  std::int64_t decay_steps = 1000;
  double rate = 0.5;
  bool staircase = false;
};
struct NaturalExpDecay {  // base * e^(-rate x)
  double base = 0.1;
  std::int64_t decay_steps = 1000;
  double rate = 0.5;
  bool staircase = false;
};
struct InverseTimeDecay {  // base / (1 + rate x)
  double base = 0.1;
  std::int64_t decay_steps = 1000;
  double rate = 0.5;
  bool staircase = false;
};
struct PolynomialDecay {  // (base - end) * (1 - x)^power + end
  double base = 0.1;
  std::int64_t decay_steps = 1000;
  double end = 0.0001;
  double power = 1;
  bool cycle = false;
};
struct PiecewiseDecay {  // values[i] while step < boundaries[i]
  std::vector<std::int64_t> boundaries;
  std::vector<double> values;
};
// A number is a rate that stays.
using LearningRate = std::variant<double, ExponentialDecay, NaturalExpDecay, InverseTimeDecay,
                                  PolynomialDecay, PiecewiseDecay>;

struct Sgd {};
struct Momentum {
  double momentum = 0.9;
  bool nesterov = false;
};
struct Adagrad {
  double epsilon = 1e-6;
};
struct Adam {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};
struct RmsProp {
  double rho = 0.95;
  double epsilon = 1e-6;
  double momentum = 0;
};
using Update = std::variant<Sgd, Momentum, Adagrad, Adam, RmsProp>;

struct Optimizer {
  Update update;
  LearningRate rate = 0.001;
  std::optional<Regularizer> decay;  // of parameters that have none of their own
  std::optional<Clip> clip;          // likewise
};

// What one parameter wants for itself.
struct ParameterWishes {
  double rate = 1;  // times the learning rate
  std::optional<Regularizer> decay;
  std::optional<Clip> clip;
};

inline constexpr const char* kStepCounter = "@LR_DECAY_COUNTER@";

// Appends the operators to block 0 of `main`, and to `startup` what initialises their variables. Each
// operator names the parameter that it works for; those of the schedule have the role kSchedule.
// InvalidArgument: which value is wrong.
absl::Status AppendOptimizer(Program& main, Program& startup, const std::vector<ParameterGradient>& gradients,
                             const Optimizer& optimizer,
                             const std::map<std::string, ParameterWishes>& wishes = {});

}  // namespace trainyard::graph
