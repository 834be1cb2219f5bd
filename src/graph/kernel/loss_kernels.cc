// What a network is judged by: losses, and how often it is right.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/vector_math.h"

namespace trainyard::graph {
namespace {

constexpr float kMost = 1e20F;  // stands for infinity, so that a loss stays a number

// Calls work(row) for every row of `width` elements.
template <typename Work>
void ForRows(std::int64_t rows, std::int64_t width, Work work) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width));
  ParallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) work(row);
  });
}

absl::Status CheckLabels(const Tensor& labels, std::int64_t classes) {
  for (std::int64_t i = 0; i < labels.count(); ++i) {
    const std::int64_t label = labels.data<std::int64_t>()[i];
    if (label < 0 || label >= classes) [[unlikely]] {
      return absl::InvalidArgumentError(
          StrCat("the label of row ", i, " is ", label, ", and there are ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

float Bounded(float x) { return std::clamp(x, -kMost, kMost); }

double SoftCrossEntropy(const float* shares, const float* labels, std::int64_t classes) {
  double loss = 0;
  for (std::int64_t i = 0; i < classes; ++i)
    loss -= static_cast<double>(labels[i]) * static_cast<double>(Bounded(std::log(shares[i])));
  return loss;
}

absl::Status CrossEntropy(OpRun& run) {
  const Tensor& x = run.In("X");
  const std::int64_t classes = x.dims()[1];
  const float* shares = x.data<float>();
  float* loss = run.Out("Y").data<float>();
  if (run.op().Bool("soft_label")) {
    const float* labels = run.In("Label").data<float>();
    ForRows(x.dims()[0], classes, [&](std::int64_t row) {
      loss[row] =
          static_cast<float>(SoftCrossEntropy(shares + row * classes, labels + row * classes, classes));
    });
    return absl::OkStatus();
  }
  TY_RETURN_IF_ERROR(CheckLabels(run.In("Label"), classes));
  const std::int64_t* labels = run.In("Label").data<std::int64_t>();
  for (std::int64_t row = 0; row < x.dims()[0]; ++row)
    loss[row] = -Bounded(std::log(shares[row * classes + labels[row]]));
  return absl::OkStatus();
}

absl::Status CrossEntropyGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const Tensor& x = run.In("X");
  const std::int64_t classes = x.dims()[1];
  const float* shares = x.data<float>();
  const float* d = run.In("Y@GRAD").data<float>();
  float* gradient = run.Out("X@GRAD").data<float>();
  if (run.op().Bool("soft_label")) {
    const float* labels = run.In("Label").data<float>();
    ForRows(x.dims()[0], classes, [&](std::int64_t row) {
      for (std::int64_t i = row * classes; i < (row + 1) * classes; ++i)
        gradient[i] = labels[i] == 0 ? 0 : -Bounded(d[row] * labels[i] / shares[i]);
    });
    return absl::OkStatus();
  }
  TY_RETURN_IF_ERROR(CheckLabels(run.In("Label"), classes));
  const std::int64_t* labels = run.In("Label").data<std::int64_t>();
  ForRows(x.dims()[0], classes, [&](std::int64_t row) {
    std::fill_n(gradient + row * classes, classes, 0.0F);
    const std::int64_t at = row * classes + labels[row];
    gradient[at] = -Bounded(d[row] / shares[at]);
  });
  return absl::OkStatus();
}

TY_VECTOR float MostOf(const float* x, std::int64_t count) {
  constexpr int kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  }
  for (; i < count; ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

// Writes the softmax of a row. The logarithm of the sum by which it was divided: log(sum(exp(x - most))).
double SoftmaxRow(const float* x, float most, std::int64_t classes, float* softmax) {
  MapRun(classes, softmax, [most](float value) { return Exp(value - most); }, x);
  const float* made = softmax;
  const double sum = SumRun(classes, [](double value) { return value; }, made);
  const auto share = static_cast<float>(1 / sum);
  MapRun(classes, softmax, [share](float value) { return value * share; }, made);
  return std::log(sum);
}

// The label's shares by the distance from the largest, and the sum of the shares.
struct SoftLabel {
  SoftLabel(const float* x, float most, const float* labels, std::int64_t classes)
      : distance(SumRun(
            classes,
            [most](double value, double share) {
              return share == 0 ? 0 : share * (value - static_cast<double>(most));
            },
            x, labels)),
        total(SumRun(classes, [](double share) { return share; }, labels)) {}
  double distance;
  double total;
};

// What is wanted of the logits is read before the softmax is written, which may lie where they do.
absl::Status SoftmaxWithCrossEntropy(OpRun& run) {
  const Tensor& logits = run.In("Logits");
  const std::int64_t classes = logits.dims()[1];
  const bool soft = run.op().Bool("soft_label");
  if (!soft) TY_RETURN_IF_ERROR(CheckLabels(run.In("Label"), classes));
  const float* shares = soft ? run.In("Label").data<float>() : nullptr;
  const std::int64_t* labels = soft ? nullptr : run.In("Label").data<std::int64_t>();
  const float* from = logits.data<float>();
  float* softmax = run.Out("Softmax").data<float>();
  float* loss = run.Out("Loss").data<float>();
  ForRows(logits.dims()[0], classes, [&](std::int64_t row) {
    const float* x = from + row * classes;
    const float most = MostOf(x, classes);
    if (soft) {
      const SoftLabel label(x, most, shares + row * classes, classes);
      const double log_sum = SoftmaxRow(x, most, classes, softmax + row * classes);
      loss[row] = static_cast<float>(label.total == 0 ? 0 : label.total * log_sum - label.distance);
    } else {
      const double distance = static_cast<double>(x[labels[row]]) - static_cast<double>(most);
      loss[row] = static_cast<float>(SoftmaxRow(x, most, classes, softmax + row * classes) - distance);
    }
  });
  return absl::OkStatus();
}

absl::Status SoftmaxWithCrossEntropyGradient(OpRun& run) {
  if (!run.HasOut("Logits@GRAD")) return absl::OkStatus();
  const Tensor& softmax = run.In("Softmax");
  const std::int64_t classes = softmax.dims()[1];
  const bool soft = run.op().Bool("soft_label");
  if (!soft) TY_RETURN_IF_ERROR(CheckLabels(run.In("Label"), classes));
  const float* shares = soft ? run.In("Label").data<float>() : nullptr;
  const std::int64_t* labels = soft ? nullptr : run.In("Label").data<std::int64_t>();
  const float* losses = run.In("Loss@GRAD").data<float>();
  float* gradient = run.Out("Logits@GRAD").data<float>();
  ForRows(softmax.dims()[0], classes, [&](std::int64_t row) {
    const float* p = softmax.data<float>() + row * classes;
    float* to = gradient + row * classes;
    const float d = losses[row];
    if (!soft) {
      MapRun(classes, to, [d](float share) { return share * d; }, p);
      to[labels[row]] -= d;
      return;
    }
    const float* label = shares + row * classes;
    const auto total = static_cast<float>(SumRun(classes, [](double share) { return share; }, label));
    MapRun(
        classes, to, [d, total](float share, float wanted) { return (share * total - wanted) * d; }, p,
        label);
  });
  return absl::OkStatus();
}

absl::Status SquareErrorCost(OpRun& run) {
  Map(run.Out("Out"), [](float x, float y) { return (x - y) * (x - y); }, run.In("X"), run.In("Y"));
  return absl::OkStatus();
}

absl::Status SquareErrorCostGradient(OpRun& run) {
  const Tensor& x = run.In("X");
  const Tensor& y = run.In("Y");
  const Tensor& d = run.In("Out@GRAD");
  // Y's first: X's may be written over Out's.
  if (run.HasOut("Y@GRAD"))
    Map(run.Out("Y@GRAD"), [](float a, float b, float out) { return 2 * (b - a) * out; }, x, y, d);
  if (run.HasOut("X@GRAD"))
    Map(run.Out("X@GRAD"), [](float a, float b, float out) { return 2 * (a - b) * out; }, x, y, d);
  return absl::OkStatus();
}

// The largest first; of equal ones the first. What is not a number comes last.
absl::Status TopK(OpRun& run) {
  const Tensor& x = run.In("X");
  const std::int64_t width = x.dims()[1];
  const std::int64_t k = run.op().Int("k");
  float* values = run.Out("Out").data<float>();
  std::int64_t* indices = run.Out("Indices").data<std::int64_t>();
  ForRows(x.dims()[0], width, [&](std::int64_t row) {
    const float* from = x.data<float>() + row * width;
    const auto rank = [&](std::int64_t i) {
      return std::isnan(from[i]) ? -std::numeric_limits<float>::infinity() : from[i];
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::int64_t a, std::int64_t b) {
      return rank(a) > rank(b) || (rank(a) == rank(b) && a < b);
    });
    for (std::int64_t i = 0; i < k; ++i) {
      indices[row * k + i] = order[static_cast<std::size_t>(i)];
      values[row * k + i] = from[order[static_cast<std::size_t>(i)]];
    }
  });
  return absl::OkStatus();
}

absl::Status Accuracy(OpRun& run) {
  const Tensor& indices = run.In("Indices");
  const std::int64_t rows = indices.dims()[0];
  const std::int64_t k = indices.dims()[1];
  const std::int64_t* labels = run.In("Label").data<std::int64_t>();
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t* first = indices.data<std::int64_t>() + row * k;
    correct += static_cast<std::int64_t>(std::find(first, first + k, labels[row]) != first + k);
  }
  run.Out("Accuracy").data<float>()[0] =
      rows == 0 ? 0 : static_cast<float>(static_cast<double>(correct) / static_cast<double>(rows));
  run.Out("Correct").data<std::int64_t>()[0] = correct;
  run.Out("Total").data<std::int64_t>()[0] = rows;
  return absl::OkStatus();
}

}  // namespace

void AddLossKernels(KernelTable& table) {
  table.Add("cross_entropy", CrossEntropy);
  table.Add("cross_entropy_grad", CrossEntropyGradient);
  table.Add("softmax_with_cross_entropy", SoftmaxWithCrossEntropy);
  table.Add("softmax_with_cross_entropy_grad", SoftmaxWithCrossEntropyGradient);
  table.Add("square_error_cost", SquareErrorCost);
  table.Add("square_error_cost_grad", SquareErrorCostGradient);
  table.Add("top_k", TopK);
  table.Add("accuracy", Accuracy);
}

}  // namespace trainyard::graph
