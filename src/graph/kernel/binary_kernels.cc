// Two tensors, element by element; the second may be spread over the first.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/math_kernels.h"

namespace trainyard::graph {
namespace {

struct Add {
  float operator()(float x, float y) const { return x + y; }
};
struct Subtract {
  float operator()(float x, float y) const { return x - y; }
};
struct Times {
  float operator()(float x, float y) const { return x * y; }
};
struct Divide {
  float operator()(float x, float y) const { return x / y; }
};
struct Least {
  float operator()(float x, float y) const { return y < x ? y : x; }
};
struct Most {
  float operator()(float x, float y) const { return x < y ? y : x; }
};
struct Power {
  float operator()(float x, float y) const { return std::pow(x, y); }
};

// X is [before, same, after] and Y is [same].
struct Layout {
  std::int64_t before = 1;
  std::int64_t same = 1;
  std::int64_t after = 1;
};

Layout LayoutOf(const OpRun& run) {
  const Dims& x = run.In("X").dims();
  const Dims& y = run.In("Y").dims();
  if (y.Count() == 1) return {.after = x.Count()};
  const std::int64_t given = run.op().Int("axis");
  const int axis = given == -1 ? x.rank() - y.rank() : static_cast<int>(given);
  return {x.Count(0, axis), y.Count(), x.Count(axis + y.rank(), x.rank())};
}

std::int64_t GrainOf(std::int64_t elements) {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, elements));
}

// out = f(x, y), where y has one element for each run of layout.after elements of x.
template <typename F>
void CombineRuns(const Layout& layout, const Tensor& x, const Tensor& y, Tensor& out, F f) {
  const float* from = x.data<float>();
  const float* with = y.data<float>();
  float* to = out.data<float>();
  const std::int64_t runs = layout.before * layout.same;
  if (runs == 1) return Map(out, [f, second = *with](float first) { return f(first, second); }, x);
  ParallelFor(runs, GrainOf(layout.after), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i * layout.after;
      MapRun(
          layout.after, to + at,
          [f, second = with[i % layout.same]](float first) { return f(first, second); }, from + at);
    }
  });
}

template <typename F>
void Combine(const Layout& layout, const Tensor& x, const Tensor& y, Tensor& out, F f) {
  if (out.empty()) return;
  if (layout.after > 1) return CombineRuns(layout, x, y, out, f);
  if (layout.before == 1) return Map(out, f, x, y);
  const float* from = x.data<float>();
  const float* with = y.data<float>();
  float* to = out.data<float>();
  ParallelFor(layout.before, GrainOf(layout.same), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      MapRun(layout.same, to + i * layout.same, f, from + i * layout.same, with);
  });
}

template <typename F>
absl::Status BinaryForward(OpRun& run) {
  Combine(LayoutOf(run), run.In("X"), run.In("Y"), run.Out("Out"), F());
  return absl::OkStatus();
}

template <typename F, typename... In>
TY_VECTOR static void AddToRun(std::int64_t count, double* sums, F f, const In*... in) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) sums[i] += f(static_cast<double>(in[i])...);
}

// out[s] is the sum of f(in[b, s, 0]...) over b.
template <typename F, typename... In>
void SumColumns(const Layout& layout, float* out, F f, const In*... in) {
  ParallelFor(layout.same, GrainOf(layout.before), [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kColumns = 256;
    for (std::int64_t first = begin; first < end; first += kColumns) {
      const std::int64_t count = std::min(kColumns, end - first);
      double sums[kColumns] = {};
      for (std::int64_t row = 0; row < layout.before; ++row)
        AddToRun(count, sums, f, (in + row * layout.same + first)...);
      for (std::int64_t i = 0; i < count; ++i) out[first + i] = static_cast<float>(sums[i]);
    }
  });
}

// out[s] is the sum of f(in[b, s, a]...) over b and a.
template <typename F, typename... In>
void SumAround(const Layout& layout, float* out, F f, const In*... in) {
  if (layout.after == 1) return SumColumns(layout, out, f, in...);
  if (layout.before * layout.same == 1) {
    *out = static_cast<float>(SumOfParts(layout.after, [&](std::int64_t begin, std::int64_t end) {
      return SumRun(end - begin, f, (in + begin)...);
    }));
    return;
  }
  ParallelFor(layout.same, GrainOf(layout.before * layout.after), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (std::int64_t row = 0; row < layout.before; ++row)
        sum += SumRun(layout.after, f, (in + (row * layout.same + i) * layout.after)...);
      out[i] = static_cast<float>(sum);
    }
  });
}

void Copy(const Tensor& from, Tensor& to) {
  if (from.raw() != to.raw()) Map(to, [](float x) { return x; }, from);
}

// Y's gradient comes first: X's may be written over Out's.
absl::Status AddGradient(OpRun& run) {
  const Tensor& out = run.In("Out@GRAD");
  if (run.HasOut("Y@GRAD")) {
    SumAround(LayoutOf(run), run.Out("Y@GRAD").data<float>(), [](double d) { return d; }, out.data<float>());
  }
  if (run.HasOut("X@GRAD")) Copy(out, run.Out("X@GRAD"));
  return absl::OkStatus();
}

absl::Status SubtractGradient(OpRun& run) {
  const Tensor& out = run.In("Out@GRAD");
  if (run.HasOut("Y@GRAD")) {
    SumAround(LayoutOf(run), run.Out("Y@GRAD").data<float>(), [](double d) { return -d; }, out.data<float>());
  }
  if (run.HasOut("X@GRAD")) Copy(out, run.Out("X@GRAD"));
  return absl::OkStatus();
}

absl::Status MultiplyGradient(OpRun& run) {
  const Tensor& out = run.In("Out@GRAD");
  if (run.HasOut("Y@GRAD")) {
    SumAround(
        LayoutOf(run), run.Out("Y@GRAD").data<float>(), [](double d, double x) { return d * x; },
        out.data<float>(), run.In("X").data<float>());
  }
  if (run.HasOut("X@GRAD")) Combine(LayoutOf(run), out, run.In("Y"), run.Out("X@GRAD"), Times());
  return absl::OkStatus();
}

absl::Status DivideGradient(OpRun& run) {
  const Tensor& out = run.In("Out@GRAD");
  if (run.HasOut("Y@GRAD")) {
    Tensor& gradient = run.Out("Y@GRAD");
    SumAround(
        LayoutOf(run), gradient.data<float>(), [](double d, double x) { return -d * x; }, out.data<float>(),
        run.In("X").data<float>());
    Map(gradient, [](float sum, float y) { return sum / (y * y); }, gradient, run.In("Y"));
  }
  if (run.HasOut("X@GRAD")) Combine(LayoutOf(run), out, run.In("Y"), run.Out("X@GRAD"), Divide());
  return absl::OkStatus();
}

}  // namespace

void AddBinaryKernels(KernelTable& table) {
  table.Add("elementwise_add", BinaryForward<Add>);
  table.Add("elementwise_sub", BinaryForward<Subtract>);
  table.Add("elementwise_mul", BinaryForward<Times>);
  table.Add("elementwise_div", BinaryForward<Divide>);
  table.Add("elementwise_min", BinaryForward<Least>);
  table.Add("elementwise_max", BinaryForward<Most>);
  table.Add("elementwise_pow", BinaryForward<Power>);
  table.Add("elementwise_add_grad", AddGradient);
  table.Add("elementwise_sub_grad", SubtractGradient);
  table.Add("elementwise_mul_grad", MultiplyGradient);
  table.Add("elementwise_div_grad", DivideGradient);
}

}  // namespace trainyard::graph
