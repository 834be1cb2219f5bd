// What bounds gradients: values, norms, and the factor for all of them together.
#include <cmath>
#include <cstdint>

#include "base/status.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/math_kernels.h"
#include "graph/kernel/sparse.h"

namespace trainyard::graph {
namespace {

struct Bounds {
  explicit Bounds(const Op& op)
      : least(static_cast<float>(op.Float("min"))), most(static_cast<float>(op.Float("max"))) {}
  float operator()(float x) const {
    const float raised = x < least ? least : x;
    return raised > most ? most : raised;
  }
  float least;
  float most;
};

absl::Status Clip(OpRun& run) {
  Map(run.Out("Out"), Bounds(run.op()), run.In("X"));
  return absl::OkStatus();
}

absl::Status ClipGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const auto pass = [bounds = Bounds(run.op())](float x, float d) {
    return x >= bounds.least && x <= bounds.most ? d : 0;
  };
  Map(run.Out("X@GRAD"), pass, run.In("X"), run.In("Out@GRAD"));
  return absl::OkStatus();
}

// What is bounded of a sparse X is what its rows add up to.
absl::Status ClipValues(OpRun& run, RowMerger& merger) {
  if (!run.IsSparse("X")) return Clip(run);
  TY_ASSIGN_OR_RETURN(const SparseRows* merged, merger.Merge(run.InRows("X")));
  SparseRows& out = run.OutRows("Out");
  ShapeLike(*merged, out);
  Map(out.value, Bounds(run.op()), merged->value);
  return absl::OkStatus();
}

absl::StatusOr<double> SquaredNorm(OpRun& run, RowMerger& merger) {
  const Tensor* values = nullptr;
  if (run.IsSparse("X")) {
    TY_ASSIGN_OR_RETURN(const SparseRows* merged, merger.Merge(run.InRows("X")));
    values = &merged->value;
  } else {
    values = &run.In("X");
  }
  return SumOfParts(values->count(), [&](std::int64_t begin, std::int64_t end) {
    return SumRun(end - begin, [](double value) { return value * value; }, values->data<float>() + begin);
  });
}

absl::Status SquaredL2Norm(OpRun& run, RowMerger& merger) {
  TY_ASSIGN_OR_RETURN(const double norm, SquaredNorm(run, merger));
  run.Out("Out").data<float>()[0] = static_cast<float>(norm);
  return absl::OkStatus();
}

absl::Status ClipByNorm(OpRun& run, RowMerger& merger) {
  TY_ASSIGN_OR_RETURN(const double squared, SquaredNorm(run, merger));
  const double norm = std::sqrt(squared);
  const double most = run.op().Float("max_norm");
  const auto factor = static_cast<float>(norm > most ? most / norm : 1);
  const auto scale = [factor](float x) { return factor * x; };
  if (!run.IsSparse("X")) {
    Map(run.Out("Out"), scale, run.In("X"));
    return absl::OkStatus();
  }
  SparseRows& out = run.OutRows("Out");
  ShapeLike(run.InRows("X"), out);
  Map(out.value, scale, run.InRows("X").value);
  return absl::OkStatus();
}

absl::Status ClipFactor(OpRun& run) {
  double squared = 0;
  for (int i = 0; i < run.CountIn("X"); ++i) {
    for (const float part : run.In("X", i).span<float>()) squared += static_cast<double>(part);
  }
  const double most = run.op().Float("max_norm");
  const double norm = std::sqrt(squared);
  run.Out("Out").data<float>()[0] = static_cast<float>(norm > most ? most / norm : 1);
  return absl::OkStatus();
}

}  // namespace

void AddClipKernels(KernelTable& table) {
  table.Add("clip", Clip);
  table.Add("clip_grad", ClipGradient);
  table.Add("clip_values", WithMerger(ClipValues));
  table.Add("clip_by_norm", WithMerger(ClipByNorm));
  table.Add("squared_l2_norm", WithMerger(SquaredL2Norm));
  table.Add("clip_factor", ClipFactor);
}

}  // namespace trainyard::graph
