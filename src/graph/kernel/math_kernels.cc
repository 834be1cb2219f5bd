// Functions of one element, sums and means.
#include "graph/kernel/math_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/sparse.h"
#include "graph/kernel/vector_math.h"

namespace trainyard::graph {
namespace {

// Out = f(X).
template <typename F>
absl::Status MathForward(OpRun& run) {
  Map(run.Out("Out"), F(), run.In("X"));
  return absl::OkStatus();
}

// X@GRAD = f(X, Out, Out@GRAD).
template <typename F>
absl::Status MathBackward(OpRun& run) {
  if (run.HasOut("X@GRAD")) Map(run.Out("X@GRAD"), F(), run.In("X"), run.In("Out"), run.In("Out@GRAD"));
  return absl::OkStatus();
}

[[gnu::always_inline]] inline float SignOf(float x) {
  return static_cast<float>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
}

struct Square {
  float operator()(float x) const { return x * x; }
};
struct SquareGradient {
  float operator()(float x, float, float d) const { return 2 * x * d; }
};
struct Exponential {
  float operator()(float x) const { return Exp(x); }
};
struct ExponentialGradient {
  float operator()(float, float out, float d) const { return out * d; }
};
struct Logarithm {
  float operator()(float x) const { return std::log(x); }
};
struct LogarithmGradient {
  float operator()(float x, float, float d) const { return d / x; }
};
struct Root {
  float operator()(float x) const { return std::sqrt(x); }
};
struct RootGradient {
  float operator()(float, float out, float d) const { return d / (2 * out); }
};
struct Absolute {
  float operator()(float x) const { return std::fabs(x); }
};
struct AbsoluteGradient {
  float operator()(float x, float, float d) const { return SignOf(x) * d; }
};
struct Sign {
  float operator()(float x) const { return SignOf(x); }
};
struct Floor {
  float operator()(float x) const { return std::floor(x); }
};
struct Ceiling {
  float operator()(float x) const { return std::ceil(x); }
};

void ScaleValues(const Tensor& x, float factor, float bias, Tensor& out) {
  if (bias == 0) return Map(out, [factor](float value) { return factor * value; }, x);
  Map(out, [factor, bias](float value) { return factor * value + bias; }, x);
}

absl::Status ScaleX(OpRun& run, float factor, float bias) {
  if (!run.IsSparse("X")) {
    ScaleValues(run.In("X"), factor, bias, run.Out("Out"));
    return absl::OkStatus();
  }
  if (bias != 0) return absl::InvalidArgumentError("a sparse X cannot have a bias: most rows are not there");
  SparseRows& out = run.OutRows("Out");
  ShapeLike(run.InRows("X"), out);
  ScaleValues(run.InRows("X").value, factor, 0, out.value);
  return absl::OkStatus();
}

absl::Status ScaleByFactor(OpRun& run) { return ScaleX(run, run.In("Factor").data<float>()[0], 0); }

absl::Status Scale(OpRun& run) {
  if (run.HasIn("Factor")) return ScaleByFactor(run);
  return ScaleX(run, static_cast<float>(run.op().Float("scale")), static_cast<float>(run.op().Float("bias")));
}

absl::Status Mean(OpRun& run) {
  const Tensor& x = run.In("X");
  if (x.empty()) return absl::InvalidArgumentError("X has no elements, so they have no mean");
  const double sum = SumOfParts(x.count(), [&](std::int64_t begin, std::int64_t end) {
    return SumRun(end - begin, [](double value) { return value; }, x.data<float>() + begin);
  });
  run.Out("Out").data<float>()[0] = static_cast<float>(sum / static_cast<double>(x.count()));
  return absl::OkStatus();
}

absl::Status MeanGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD") || run.Out("X@GRAD").empty()) return absl::OkStatus();
  Tensor& gradient = run.Out("X@GRAD");
  const float share = run.In("Out@GRAD").data<float>()[0] / static_cast<float>(gradient.count());
  Map(gradient, [share] { return share; });
  return absl::OkStatus();
}

// Each element of the output is written once and after all inputs' are read: it may be one of them.
void AddDense(const std::vector<const Tensor*>& in, Tensor& out) {
  const auto plus = [](float x, float y) { return x + y; };
  if (in.size() == 1) return Map(out, [](float x) { return x; }, *in[0]);
  if (in.size() == 2) return Map(out, plus, *in[0], *in[1]);
  float* to = out.data<float>();
  ParallelFor(out.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kPart = 1024;
    float sums[kPart];
    for (std::int64_t first = begin; first < end; first += kPart) {
      const std::int64_t count = std::min(kPart, end - first);
      MapRun(count, sums, plus, in[0]->data<float>() + first, in[1]->data<float>() + first);
      for (std::size_t i = 2; i < in.size(); ++i)
        MapRun(count, sums, plus, const_cast<const float*>(sums), in[i]->data<float>() + first);
      std::copy_n(sums, count, to + first);
    }
  });
}

class SumKernel final : public Kernel {
 public:
  absl::Status Run(OpRun& run) override {
    std::vector<const Tensor*> dense;
    std::vector<const SparseRows*> sparse;
    for (int i = 0; i < run.CountIn("X"); ++i) {
      if (run.InVariable("X", i).absent) continue;
      if (run.IsSparse("X", i)) {
        TY_RETURN_IF_ERROR(CheckRows(run.InRows("X", i)));
        sparse.push_back(&run.InRows("X", i));
      } else {
        dense.push_back(&run.In("X", i));
      }
    }
    if (dense.empty() && sparse.empty())
      return absl::FailedPreconditionError("none of its inputs has a value");
    if (dense.empty()) {
      Join(sparse, run.OutRows("Out"));
      return absl::OkStatus();
    }
    AddDense(dense, run.Out("Out"));
    for (const SparseRows* rows : sparse) AddRowsTo(*rows, run.Out("Out"));
    return absl::OkStatus();
  }

 private:
  // The output may be one of the inputs, so the rows are joined elsewhere and change places with it.
  void Join(const std::vector<const SparseRows*>& in, SparseRows& out) {
    joined_.rows.clear();
    for (const SparseRows* rows : in)
      joined_.rows.insert(joined_.rows.end(), rows->rows.begin(), rows->rows.end());
    Dims dims = in[0]->value.dims();
    dims[0] = static_cast<std::int64_t>(joined_.rows.size());
    joined_.height = in[0]->height;
    if (joined_.value.owner().use_count() > 1) joined_.value = Tensor();
    joined_.value.Resize(DataType::kFloat32, std::move(dims));
    float* to = joined_.value.data<float>();
    for (const SparseRows* rows : in) {
      to = std::copy_n(rows->value.data<float>(), rows->value.count(), to);
    }
    std::swap(joined_, out);
  }

  SparseRows joined_;
};

}  // namespace

void AddMathKernels(KernelTable& table) {
  AddBinaryKernels(table);
  AddClipKernels(table);
  table.Add("scale", Scale);
  table.Add("scale_by", ScaleByFactor);
  table.Add("sum", [](const Op&) { return std::make_unique<SumKernel>(); });
  table.Add("mean", Mean);
  table.Add("mean_grad", MeanGradient);
  table.Add("square", MathForward<Square>);
  table.Add("square_grad", MathBackward<SquareGradient>);
  table.Add("exp", MathForward<Exponential>);
  table.Add("exp_grad", MathBackward<ExponentialGradient>);
  table.Add("log", MathForward<Logarithm>);
  table.Add("log_grad", MathBackward<LogarithmGradient>);
  table.Add("sqrt", MathForward<Root>);
  table.Add("sqrt_grad", MathBackward<RootGradient>);
  table.Add("abs", MathForward<Absolute>);
  table.Add("abs_grad", MathBackward<AbsoluteGradient>);
  table.Add("sign", MathForward<Sign>);
  table.Add("floor", MathForward<Floor>);
  table.Add("ceil", MathForward<Ceiling>);
}

}  // namespace trainyard::graph
