// Normalisation: of each channel over a batch, and of each row to a sum of 1.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"
#include "graph/kernel/vector_math.h"

namespace trainyard::graph {
namespace {

// A tensor [batch, channels, ...]: each channel of each example is a run of `inner` elements.
struct NormLayout {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t inner;

  double Members() const { return static_cast<double>(std::max<std::int64_t>(1, batch * inner)); }
  // How many of `things`, each of so many elements, are worth a thread.
  static std::int64_t Grain(std::int64_t elements) {
    return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, elements));
  }
};

NormLayout LayoutOf(const Tensor& x) {
  return {.batch = x.dims()[0], .channels = x.dims()[1], .inner = x.dims().Count(2, x.dims().rank())};
}

// sums[i] += f(means[i], in[i]...)
template <typename F, typename... In>
TY_VECTOR static void AddRun(std::int64_t count, double* sums, const float* means, F f, const In*... in) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] += f(static_cast<double>(means[i]), static_cast<double>(in[i])...);
}

// For each channel the sum of f(its mean, its elements...) over the batch.
template <typename F, typename... In>
std::vector<double> ChannelSums(const NormLayout& layout, const float* means, F f, const In*... in) {
  std::vector<double> sums(static_cast<std::size_t>(layout.channels));
  const auto add = [&](std::int64_t example, std::int64_t begin, std::int64_t end) {
    const std::int64_t first = example * layout.channels;
    if (layout.inner == 1)
      return AddRun(end - begin, sums.data() + begin, means + begin, f, (in + first + begin)...);
    for (std::int64_t channel = begin; channel < end; ++channel) {
      const auto by_mean = [f, mean = static_cast<double>(means[channel])](auto... x) {
        return f(mean, x...);
      };
      sums[static_cast<std::size_t>(channel)] +=
          SumRun(layout.inner, by_mean, (in + (first + channel) * layout.inner)...);
    }
  };
  ParallelFor(layout.channels, NormLayout::Grain(layout.batch * layout.inner),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t example = 0; example < layout.batch; ++example) add(example, begin, end);
              });
  return sums;
}

// What the elements of a channel become: of x (and y) a * (x - mean) + b * y + c.
struct Line {
  float mean = 0;
  float a = 0;
  float b = 0;
  float c = 0;
};

template <bool by_element>
TY_VECTOR static void LineRun(std::int64_t count, const Line* lines, const float* x, const float* y,
                              float* out) {
  const Line first = lines[0];
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const Line line = by_element ? lines[i] : first;
    out[i] = line.a * (x[i] - line.mean) + line.b * y[i] + line.c;
  }
}

void MapChannels(const NormLayout& layout, const std::vector<Line>& lines, const float* x, const float* y,
                 float* out) {
  ParallelFor(layout.batch, NormLayout::Grain(layout.channels * layout.inner),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t example = begin; example < end; ++example) {
                  const std::int64_t first = example * layout.channels * layout.inner;
                  if (layout.inner == 1) {
                    LineRun<true>(layout.channels, lines.data(), x + first, y + first, out + first);
                    continue;
                  }
                  for (std::int64_t channel = 0; channel < layout.channels; ++channel) {
                    const std::int64_t at = first + channel * layout.inner;
                    LineRun<false>(layout.inner, &lines[static_cast<std::size_t>(channel)], x + at, y + at,
                                   out + at);
                  }
                }
              });
}

// The mean and the variance of each channel; the variance by the count of members, not by one less.
void Measure(const NormLayout& layout, const float* x, float* means, float* variances) {
  std::fill_n(means, layout.channels, 0.0F);
  const auto sums = ChannelSums(layout, means, [](double, double value) { return value; }, x);
  for (std::size_t i = 0; i < sums.size(); ++i) means[i] = static_cast<float>(sums[i] / layout.Members());
  const auto squares = ChannelSums(
      layout, means, [](double mean, double value) { return (value - mean) * (value - mean); }, x);
  for (std::size_t i = 0; i < squares.size(); ++i)
    variances[i] = static_cast<float>(squares[i] / layout.Members());
}

// One by the deviation of a channel.
double Inverse(float variance, double epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + epsilon);
}

absl::Status BatchNorm(OpRun& run) {
  const Tensor& x = run.In("X");
  const NormLayout layout = LayoutOf(x);
  float* means = run.Out("BatchMean").data<float>();
  float* variances = run.Out("BatchVariance").data<float>();
  if (run.op().Bool("is_test")) {
    std::copy_n(run.In("Mean").data<float>(), layout.channels, means);
    std::copy_n(run.In("Variance").data<float>(), layout.channels, variances);
  } else {
    Measure(layout, x.data<float>(), means, variances);
  }
  std::vector<Line> lines(static_cast<std::size_t>(layout.channels));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double inverse = Inverse(variances[i], run.op().Float("epsilon"));
    lines[i] = {.mean = means[i],
                .a = static_cast<float>(inverse * static_cast<double>(run.In("Scale").data<float>()[i])),
                .c = run.In("Bias").data<float>()[i]};
  }
  MapChannels(layout, lines, x.data<float>(), x.data<float>(), run.Out("Y").data<float>());
  return absl::OkStatus();
}

// With n = (x - mean) / deviation: dBias = sum dY, dScale = sum dY n, and
// dX = scale / deviation * (dY - (dBias + n dScale) / members), where the last term is what moves through
// mean and deviation; in a test they are constants.
absl::Status BatchNormGradient(OpRun& run) {
  const NormLayout layout = LayoutOf(run.In("X"));
  const float* x = run.In("X").data<float>();
  const float* from = run.In("Y@GRAD").data<float>();
  const float* means = run.In("BatchMean").data<float>();
  const auto sums = ChannelSums(layout, means, [](double, double dy) { return dy; }, from);
  const auto products = ChannelSums(
      layout, means, [](double mean, double dy, double value) { return dy * (value - mean); }, from, x);
  std::vector<Line> lines(sums.size());
  const double members = run.op().Bool("is_test") ? HUGE_VAL : layout.Members();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double inverse = Inverse(run.In("BatchVariance").data<float>()[i], run.op().Float("epsilon"));
    const double factor = inverse * static_cast<double>(run.In("Scale").data<float>()[i]);
    lines[i] = {.mean = means[i],
                .a = static_cast<float>(-factor * inverse * inverse * products[i] / members),
                .b = static_cast<float>(factor),
                .c = static_cast<float>(-factor * sums[i] / members)};
    if (run.HasOut("Bias@GRAD")) run.Out("Bias@GRAD").data<float>()[i] = static_cast<float>(sums[i]);
    if (run.HasOut("Scale@GRAD"))
      run.Out("Scale@GRAD").data<float>()[i] = static_cast<float>(products[i] * inverse);
  }
  if (run.HasOut("X@GRAD")) MapChannels(layout, lines, x, from, run.Out("X@GRAD").data<float>());
  return absl::OkStatus();
}

// Rows of `width` elements each.
struct RowsOf {
  explicit RowsOf(const Tensor& x)
      : width(x.dims()[x.dims().rank() - 1]), count(width == 0 ? 0 : x.count() / width) {}
  std::int64_t width;
  std::int64_t count;
};

TY_VECTOR float Largest(std::int64_t count, const float* x) {
  constexpr int kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, x[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], x[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

TY_VECTOR void ExpRun(std::int64_t count, const float* x, float less, float* out) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) out[i] = Exp(x[i] - less);
}

TY_VECTOR void ScaleRun(std::int64_t count, float factor, float* x) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

absl::Status Softmax(OpRun& run) {
  const RowsOf rows(run.In("X"));
  const float* x = run.In("X").data<float>();
  float* out = run.Out("Out").data<float>();
  ParallelFor(rows.count, NormLayout::Grain(rows.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * rows.width; at < end * rows.width; at += rows.width) {
      ExpRun(rows.width, x + at, Largest(rows.width, x + at), out + at);
      const double sum = SumRun(rows.width, [](double value) { return value; }, out + at);
      ScaleRun(rows.width, static_cast<float>(1 / sum), out + at);
    }
  });
  return absl::OkStatus();
}

// dX = (dOut - sum(dOut Out)) Out
TY_VECTOR void SoftmaxGradientRun(std::int64_t count, float sum, const float* from, const float* out,
                                  float* to) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = (from[i] - sum) * out[i];
}

absl::Status SoftmaxGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const RowsOf rows(run.In("Out"));
  const float* out = run.In("Out").data<float>();
  const float* from = run.In("Out@GRAD").data<float>();
  float* to = run.Out("X@GRAD").data<float>();
  ParallelFor(rows.count, NormLayout::Grain(rows.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * rows.width; at < end * rows.width; at += rows.width) {
      const double sum = SumRun(rows.width, [](double a, double b) { return a * b; }, from + at, out + at);
      SoftmaxGradientRun(rows.width, static_cast<float>(sum), from + at, out + at, to + at);
    }
  });
  return absl::OkStatus();
}

}  // namespace

void AddNormKernels(KernelTable& table) {
  table.Add("batch_norm", BatchNorm);
  table.Add("batch_norm_grad", BatchNormGradient);
  table.Add("softmax", Softmax);
  table.Add("softmax_grad", SoftmaxGradient);
}

}  // namespace trainyard::graph
