// What a network is judged by.
#include "base/status.h"
#include "graph/ir/wrong.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

// A label for each row of `scores`: its number, or with soft_label a share for each class.
absl::Status ExpectLabels(const Typing& typing, std::string_view scores) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, scores));
  TY_RETURN_IF_ERROR(ExpectRank(typing, scores, 2));
  if (typing.op().Bool("soft_label")) {
    TY_RETURN_IF_ERROR(ExpectDense(typing, "Label"));
    return ExpectSameDims(typing, scores, "Label");
  }
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Label", DataType::kInt64));
  return ExpectDims(typing, "Label", {typing.In(scores).dims[0], 1});
}

absl::Status InferCrossEntropy(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectLabels(typing, "X"));
  typing.SetOut("Y", {.dims = {typing.In("X").dims[0], 1}});
  return absl::OkStatus();
}

absl::Status InferSoftmaxWithCrossEntropy(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectLabels(typing, "Logits"));
  typing.SetOut("Softmax", typing.In("Logits"));
  typing.SetOut("Loss", {.dims = {typing.In("Logits").dims[0], 1}});
  return absl::OkStatus();
}

absl::Status InferSquareError(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Y"));
  TY_RETURN_IF_ERROR(ExpectSameDims(typing, "X", "Y"));
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

absl::Status InferTopK(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "X", 2));
  const Dims& x = typing.In("X").dims;
  const std::int64_t k = typing.op().Int("k");
  if (k < 1 || (x[1] != kUnknownDim && k > x[1])) return Wrong("k is ", k, " and X is ", Print(x));
  typing.SetOut("Out", {.dims = {x[0], k}});
  typing.SetOut("Indices", {.data_type = DataType::kInt64, .dims = {x[0], k}});
  return absl::OkStatus();
}

absl::Status InferAccuracy(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Indices", DataType::kInt64));
  TY_RETURN_IF_ERROR(ExpectDense(typing, "Label", DataType::kInt64));
  TY_RETURN_IF_ERROR(ExpectRank(typing, "Indices", 2));
  TY_RETURN_IF_ERROR(ExpectDims(typing, "Label", {typing.In("Indices").dims[0], 1}));
  typing.SetOut("Accuracy", {.dims = {1}});
  typing.SetOut("Correct", {.data_type = DataType::kInt64, .dims = {1}});
  typing.SetOut("Total", {.data_type = DataType::kInt64, .dims = {1}});
  return absl::OkStatus();
}

}  // namespace

void AddLossOps(OpTable& table) {
  table.AddWithGradient({.type = "cross_entropy",
                         .inputs = {{"X"}, {"Label"}},
                         .outputs = {{"Y"}},
                         .attrs = {{"soft_label", false}},
                         .infer = InferCrossEntropy},
                        {.of = {"X"}, .reads = {"Label"}, .from = {"Y"}});
  table.AddWithGradient({.type = "softmax_with_cross_entropy",
                         .inputs = {{"Logits"}, {"Label"}},
                         .outputs = {{"Softmax"}, {"Loss"}},
                         .attrs = {{"soft_label", false}},
                         .infer = InferSoftmaxWithCrossEntropy},
                        {.of = {"Logits"}, .reads = {"Label", "Softmax"}, .from = {"Loss"}});
  table.AddWithGradient({.type = "square_error_cost",
                         .inputs = {{"X"}, {"Y"}},
                         .outputs = {{"Out"}},
                         .infer = InferSquareError},
                        {.of = {"X", "Y"}});
  table.Add({.type = "top_k",
             .inputs = {{"X"}},
             .outputs = {{"Out"}, {"Indices"}},
             .attrs = {{"k", std::int64_t{1}}},
             .infer = InferTopK});
  table.Add({.type = "accuracy",
             .inputs = {{"Indices"}, {"Label"}},
             .outputs = {{"Accuracy"}, {"Correct"}, {"Total"}},
             .infer = InferAccuracy});
}

}  // namespace trainyard::graph
