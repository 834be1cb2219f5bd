// How parameters learn from gradients: one pass over memory for each update.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/learning_rate.h"
#include "graph/kernel/sparse.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

// A parameter or an accumulator: what it was and where its next value goes, which are usually the same.
struct State {
  State(const OpRun& run, std::string_view slot)
      : before(run.In(slot).data<float>()), after(run.Out(StrCat(slot, "Out")).data<float>()) {}
  const float* before;
  float* after;
};

float Attribute(const OpRun& run, std::string_view name) { return static_cast<float>(run.op().Float(name)); }
float Scalar(const OpRun& run, std::string_view slot) { return run.In(slot).data<float>()[0]; }

// What follows are the rules, each over the elements [at, at + count) of the parameter with their gradients
// at `g`. One pass over memory, in place or not.

struct Sgd {
  explicit Sgd(const OpRun& run) : param(run, "Param"), rate(Scalar(run, "LearningRate")) {}
  State param;
  float rate;
};

TY_VECTOR void Step(const Sgd& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  float* p_out = rule.param.after + at;
  const float rate = rule.rate;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) p_out[i] = p[i] - rate * g[i];
}

struct Momentum {
  explicit Momentum(const OpRun& run)
      : param(run, "Param"),
        velocity(run, "Velocity"),
        rate(Scalar(run, "LearningRate")),
        mu(Attribute(run, "mu")),
        nesterov(run.op().Bool("use_nesterov")) {}
  State param;
  State velocity;
  float rate;
  float mu;
  bool nesterov;
};

TY_VECTOR void Step(const Momentum& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  const float* v = rule.velocity.before + at;
  float* p_out = rule.param.after + at;
  float* v_out = rule.velocity.after + at;
  const float rate = rule.rate;
  const float mu = rule.mu;
  // p - rate * (g + mu v), or p - rate * v.
  const float of_gradient = rule.nesterov ? 1 : 0;
  const float of_velocity = rule.nesterov ? mu : 1;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float next = mu * v[i] + g[i];
    p_out[i] = p[i] - rate * (of_gradient * g[i] + of_velocity * next);
    v_out[i] = next;
  }
}

struct Adagrad {
  explicit Adagrad(const OpRun& run)
      : param(run, "Param"),
        moment(run, "Moment"),
        rate(Scalar(run, "LearningRate")),
        epsilon(Attribute(run, "epsilon")) {}
  State param;
  State moment;
  float rate;
  float epsilon;
};

TY_VECTOR void Step(const Adagrad& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  const float* m = rule.moment.before + at;
  float* p_out = rule.param.after + at;
  float* m_out = rule.moment.after + at;
  const float rate = rule.rate;
  const float epsilon = rule.epsilon;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float next = m[i] + g[i] * g[i];
    p_out[i] = p[i] - rate * g[i] / (std::sqrt(next) + epsilon);
    m_out[i] = next;
  }
}

struct Adam {
  explicit Adam(const OpRun& run)
      : param(run, "Param"),
        moment1(run, "Moment1"),
        moment2(run, "Moment2"),
        beta1(Attribute(run, "beta1")),
        beta2(Attribute(run, "beta2")),
        epsilon(Attribute(run, "epsilon")) {
    const auto power1 = static_cast<double>(Scalar(run, "Beta1Pow"));
    const auto power2 = static_cast<double>(Scalar(run, "Beta2Pow"));
    const auto given = static_cast<double>(Scalar(run, "LearningRate"));
    rate = static_cast<float>(given * std::sqrt(1 - power2) / (1 - power1));
  }
  State param;
  State moment1;
  State moment2;
  float beta1;
  float beta2;
  float epsilon;
  float rate = 0;
};

TY_VECTOR void Step(const Adam& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  const float* m1 = rule.moment1.before + at;
  const float* m2 = rule.moment2.before + at;
  float* p_out = rule.param.after + at;
  float* m1_out = rule.moment1.after + at;
  float* m2_out = rule.moment2.after + at;
  const float beta1 = rule.beta1;
  const float beta2 = rule.beta2;
  const float rest1 = 1 - beta1;
  const float rest2 = 1 - beta2;
  const float epsilon = rule.epsilon;
  const float rate = rule.rate;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float next1 = beta1 * m1[i] + rest1 * g[i];
    const float next2 = beta2 * m2[i] + rest2 * g[i] * g[i];
    p_out[i] = p[i] - rate * next1 / (std::sqrt(next2) + epsilon);
    m1_out[i] = next1;
    m2_out[i] = next2;
  }
}

struct RmsProp {
  explicit RmsProp(const OpRun& run)
      : param(run, "Param"),
        mean_square(run, "MeanSquare"),
        moment(run, "Moment"),
        rate(Scalar(run, "LearningRate")),
        rho(Attribute(run, "rho")),
        epsilon(Attribute(run, "epsilon")),
        momentum(Attribute(run, "momentum")) {}
  State param;
  State mean_square;
  State moment;
  float rate;
  float rho;
  float epsilon;
  float momentum;
};

TY_VECTOR void Step(const RmsProp& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  const float* s = rule.mean_square.before + at;
  const float* m = rule.moment.before + at;
  float* p_out = rule.param.after + at;
  float* s_out = rule.mean_square.after + at;
  float* m_out = rule.moment.after + at;
  const float rate = rule.rate;
  const float rho = rule.rho;
  const float rest = 1 - rho;
  const float epsilon = rule.epsilon;
  const float momentum = rule.momentum;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float square = rho * s[i] + rest * g[i] * g[i];
    const float next = momentum * m[i] + rate * g[i] / std::sqrt(square + epsilon);
    p_out[i] = p[i] - next;
    s_out[i] = square;
    m_out[i] = next;
  }
}

struct MovingAverage {
  explicit MovingAverage(const OpRun& run) : param(run, "Param"), momentum(Attribute(run, "momentum")) {}
  State param;
  float momentum;
};

TY_VECTOR void Step(const MovingAverage& rule, std::int64_t at, std::int64_t count, const float* g) {
  const float* p = rule.param.before + at;
  float* p_out = rule.param.after + at;
  const float momentum = rule.momentum;
  const float rest = 1 - momentum;
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) p_out[i] = momentum * p[i] + rest * g[i];
}

// What a sparse gradient does not touch stays what it was, in another variable too.
void CarryOver(const OpRun& run) {
  for (const OpRun::BoundSlot& slot : run.outputs()) {
    constexpr std::string_view kOut = "Out";
    const std::string_view in = std::string_view(slot.name).substr(0, slot.name.size() - kOut.size());
    const Tensor& before = run.In(in);
    Tensor& after = run.Out(slot.name);
    if (before.raw() != after.raw()) std::copy_n(before.data<float>(), before.count(), after.data<float>());
  }
}

template <typename Rule>
absl::Status Update(OpRun& run, RowMerger& merger) {
  const Rule rule(run);
  if (!run.IsSparse("Grad")) {
    const float* gradient = run.In("Grad").data<float>();
    ParallelFor(run.In("Grad").count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      Step(rule, begin, end - begin, gradient + begin);
    });
    return absl::OkStatus();
  }
  TY_ASSIGN_OR_RETURN(const SparseRows* rows, merger.Merge(run.InRows("Grad")));
  CarryOver(run);
  const std::int64_t width = WidthOf(*rows);
  const float* gradient = rows->value.data<float>();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width));
  ParallelFor(static_cast<std::int64_t>(rows->rows.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      Step(rule, rows->rows[static_cast<std::size_t>(i)] * width, width, gradient + i * width);
  });
  return absl::OkStatus();
}

absl::Status LearningRate(OpRun& run) {
  const std::int64_t step = run.In("Step").data<std::int64_t>()[0];
  run.Out("Out").data<float>()[0] = static_cast<float>(RateAt(run.op(), step));
  return absl::OkStatus();
}

}  // namespace

void AddOptimizerKernels(KernelTable& table) {
  table.Add("sgd", WithMerger(Update<Sgd>));
  table.Add("momentum", WithMerger(Update<Momentum>));
  table.Add("adagrad", WithMerger(Update<Adagrad>));
  table.Add("adam", WithMerger(Update<Adam>));
  table.Add("rmsprop", WithMerger(Update<RmsProp>));
  table.Add("moving_average", WithMerger(Update<MovingAverage>));
  table.Add("learning_rate", LearningRate);
}

}  // namespace trainyard::graph
