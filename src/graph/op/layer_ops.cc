// Convolution, pooling, normalisation and tables of rows.
#include <algorithm>

#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

constexpr std::int64_t kMaxWindow = 1
                                    << 20;  // of a size, stride, padding: far beyond use, far below overflow

absl::Status ExpectPair(const Op& op, std::string_view name, std::int64_t least) {
  const Ints& pair = op.IntList(name);
  const bool good = pair.size() == 2 && std::all_of(pair.begin(), pair.end(), [&](std::int64_t value) {
                      return value >= least && value <= kMaxWindow;
                    });
  if (good) return absl::OkStatus();
  return Wrong(name, " must be two whole numbers from ", least, " on");
}

// How many places a window of `size` has in `length`; 0 if it does not fit.
std::int64_t Places(std::int64_t length, std::int64_t size, std::int64_t stride, std::int64_t padding) {
  if (length == kUnknownDim) return kUnknownDim;
  const std::int64_t room = length + 2 * padding - size;
  return room < 0 ? 0 : room / stride + 1;
}

absl::Status InferConv2d(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Input"));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Filter"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "Input", 4));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "Filter", 4));
  const Op& op = typing.op();
  TY_RETURN_IF_ERROR(ExpectPair(op, "strides", 1));
  TY_RETURN_IF_ERROR(ExpectPair(op, "paddings", 0));
  TY_RETURN_IF_ERROR(ExpectPair(op, "dilations", 1));
  const Dims& input = typing.In("Input").dims;
  const Dims& filter = typing.In("Filter").dims;
  const std::int64_t groups = op.Int("groups");
  if (!filter.Known()) return Wrong("the dims of Filter must be known and are ", Print(filter));
  if (groups < 1 || filter[0] % groups != 0 || !MayEqual(input[1], filter[1] * groups)) {
    return Wrong("Input ", Print(input), " and Filter ", Print(filter), " do not go together in ", groups,
                 " groups");
  }
  Dims out = {input[0], filter[0]};
  for (int i = 0; i < 2; ++i) {
    const std::int64_t size = op.IntList("dilations")[static_cast<std::size_t>(i)] * (filter[2 + i] - 1) + 1;
    out.Append(Places(input[2 + i], size, op.IntList("strides")[static_cast<std::size_t>(i)],
                      op.IntList("paddings")[static_cast<std::size_t>(i)]));
    if (out[2 + i] == 0)
      return Wrong("Filter ", Print(filter), " is larger than Input ", Print(input), " with its paddings");
  }
  typing.SetOut("Output", {.dims = out});
  return absl::OkStatus();
}

absl::Status InferPool2d(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "X", 4));
  const Op& op = typing.op();
  if (op.String("pooling_type") != "max" && op.String("pooling_type") != "avg") {
    return Wrong("pooling_type must be max or avg and is ", op.String("pooling_type").substr(0, 32));
  }
  const Dims& x = typing.In("X").dims;
  Dims out = {x[0], x[1], 1, 1};
  if (!op.Bool("global_pooling")) {
    TY_RETURN_IF_ERROR(ExpectPair(op, "ksize", 1));
    TY_RETURN_IF_ERROR(ExpectPair(op, "strides", 1));
    TY_RETURN_IF_ERROR(ExpectPair(op, "paddings", 0));
    for (int i = 0; i < 2; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (op.IntList("paddings")[at] >= op.IntList("ksize")[at])
        return Wrong("paddings must be smaller than ksize");
      out[2 + i] =
          Places(x[2 + i], op.IntList("ksize")[at], op.IntList("strides")[at], op.IntList("paddings")[at]);
      if (out[2 + i] == 0) return Wrong("ksize is larger than X ", Print(x), " with its paddings");
    }
  }
  typing.SetOut("Out", {.dims = out});
  return absl::OkStatus();
}

// X is [N, C, ...]; everything else is [C].
absl::Status InferBatchNorm(Typing& typing) {
  for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance"})
    TY_RETURN_IF_ERROR(ExpectDense(typing, slot));
  const Dims& x = typing.In("X").dims;
  if (x.rank() < 2) return Wrong("X must have at least two dims and is ", Print(x));
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    TY_RETURN_IF_ERROR(ExpectDims(typing, slot, {x[1]}));
  typing.SetOut("Y", typing.In("X"));
  for (const char* slot : {"BatchMean", "BatchVariance"}) typing.SetOut(slot, {.dims = {x[1]}});
  return absl::OkStatus();
}

absl::Status InferLookup(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "W"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "W", 2));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Ids", DataType::kInt64));
  const Dims& ids = typing.In("Ids").dims;
  if (ids.rank() < 1 || ids.rank() > 2 || (ids.rank() == 2 && ids[1] != 1)) {
    return Wrong("Ids must be [n] or [n, 1] and is ", Print(ids));
  }
  typing.SetOut("Out", {.dims = {ids[0], typing.In("W").dims[1]}});
  return absl::OkStatus();
}

absl::Status InferLookupGradient(Typing& typing) {
  VarType type = typing.In("W");
  if (typing.op().Bool("is_sparse")) type.kind = VarKind::kSparseRows;
  typing.SetOut("W@GRAD", type);
  return absl::OkStatus();
}

}  // namespace

void AddLayerOps(OpTable& table) {
  const Ints ones = {1, 1};
  const Ints zeros = {0, 0};
  table.AddWithGradient(
      {.type = "conv2d",
       .inputs = {{"Input"}, {"Filter"}},
       .outputs = {{"Output"}},
       .attrs = {{"strides", ones}, {"paddings", zeros}, {"dilations", ones}, {"groups", std::int64_t{1}}},
       .infer = InferConv2d},
      {.of = {"Input", "Filter"}, .from = {"Output"}});
  // An average is over the elements of the window that are not padding.
  table.AddWithGradient({.type = "pool2d",
                         .inputs = {{"X"}},
                         .outputs = {{"Out"}},
                         .attrs = {{"pooling_type", std::string("max")},
                                   {"ksize", ones},
                                   {"strides", ones},
                                   {"paddings", zeros},
                                   {"global_pooling", false}},
                         .infer = InferPool2d},
                        {.of = {"X"}, .reads = {"Out"}});
  // Mean and Variance are those over all batches, used when is_test; moving_average keeps them.
  table.AddWithGradient(
      {.type = "batch_norm",
       .inputs = {{"X"}, {"Scale"}, {"Bias"}, {"Mean"}, {"Variance"}},
       .outputs = {{"Y"}, {"BatchMean"}, {"BatchVariance"}},
       .attrs = {{"epsilon", 1e-5}, {"is_test", false}},
       .infer = InferBatchNorm},
      {.of = {"X", "Scale", "Bias"},
       .reads = {"Mean", "Variance", "BatchMean", "BatchVariance"},  // the first two for their types' sake
       .from = {"Y"}});
  table.AddWithGradient(
      {.type = "lookup_table",
       .inputs = {{"W"}, {"Ids"}},
       .outputs = {{"Out"}},
       .attrs = {{"is_sparse", false}, {"is_distributed", false}, {"padding_idx", std::int64_t{-1}}},
       .infer = InferLookup},
      {.of = {"W"}, .reads = {"Ids"}}, InferLookupGradient);
}

}  // namespace trainyard::graph
