// What makes values of nothing: constants and random numbers.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/whole_number.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/random_block.h"

namespace trainyard::graph {
namespace {

absl::Status FillConstant(OpRun& run) {
  Tensor& out = run.Out("Out");
  const double value = run.op().Float("value");
  switch (out.type()) {
    case DataType::kFloat32:
      Map(out, [number = static_cast<float>(value)] { return number; });
      break;
    case DataType::kInt64: {
      const std::optional<std::int64_t> number = WholeNumber(value);
      if (!number)
        return absl::InvalidArgumentError(StrCat("value is ", PrintNumber(value), ", which is no i64"));
      std::fill_n(out.data<std::int64_t>(), out.count(), *number);
      break;
    }
    case DataType::kBool:
      std::fill_n(out.data<bool>(), out.count(), value != 0);
      break;
  }
  return absl::OkStatus();
}

// Of sparse rows all zeros are no rows.
absl::Status FillZerosLike(OpRun& run) {
  if (!run.IsSparse("X")) {
    Tensor& out = run.Out("Out");
    if (!out.empty()) std::memset(out.raw(), 0, out.bytes());
    return absl::OkStatus();
  }
  SparseRows& out = run.OutRows("Out");
  Dims dims = run.InRows("X").value.dims();
  if (dims.rank() > 0) dims[0] = 0;
  out.height = run.InRows("X").height;
  out.rows.clear();
  out.value.Resize(run.InRows("X").value.type(), std::move(dims));
  return absl::OkStatus();
}

absl::Status AssignValue(OpRun& run) {
  const Floats& values = run.op().FloatList("values");
  std::transform(values.begin(), values.end(), run.Out("Out").data<float>(),
                 [](double value) { return static_cast<float>(value); });
  return absl::OkStatus();
}

// What tells one variable's numbers from another's is the seed: a slice must not need the name of the whole.
constexpr std::uint64_t kStream = 0;

using FillRun = void (*)(const RandomRun& run, double a, double b, std::int64_t count, float* out);

struct Distribution {
  FillRun fill;
  double a;
  double b;
};

// Row r begins with number offset + r * row_stride * width; rows that follow each other are one run.
absl::Status FillRandomly(OpRun& run, const Distribution& distribution) {
  Tensor& out = run.Out("Out");
  if (out.empty()) return absl::OkStatus();
  const Op& op = run.op();
  const auto stride = static_cast<std::uint64_t>(op.Int("row_stride"));
  const std::int64_t rows = stride == 1 || out.dims().rank() == 0 ? 1 : out.dims()[0];
  const std::int64_t width = out.count() / rows;
  const RandomRun whole = {
      .seed = op.Int("seed") != 0 ? static_cast<std::uint64_t>(op.Int("seed")) : run.services().seed,
      .stream = kStream,
      .first = static_cast<std::uint64_t>(op.Int("offset"))};
  float* to = out.data<float>();
  ParallelFor(out.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at / width;
      const std::int64_t count = std::min(end, (row + 1) * width) - at;
      RandomRun part = whole;
      part.first += static_cast<std::uint64_t>(row * width) * stride + static_cast<std::uint64_t>(at % width);
      distribution.fill(part, distribution.a, distribution.b, count, to + at);
      at += count;
    }
  });
  return absl::OkStatus();
}

absl::Status UniformRandom(OpRun& run) {
  return FillRandomly(run, {FillUniform, run.op().Float("min"), run.op().Float("max")});
}

absl::Status GaussianRandom(OpRun& run) {
  return FillRandomly(run, {FillNormal, run.op().Float("mean"), run.op().Float("std")});
}

}  // namespace

void AddFillKernels(KernelTable& table) {
  table.Add("fill_constant", FillConstant);
  table.Add("fill_zeros_like", FillZerosLike);
  table.Add("assign_value", AssignValue);
  table.Add("uniform_random", UniformRandom);
  table.Add("gaussian_random", GaussianRandom);
}

}  // namespace trainyard::graph
