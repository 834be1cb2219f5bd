#include <cmath>
#include <limits>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

OpCall WithLabels(std::string type, Tensor scores, Tensor labels) {
  const bool soft = labels.type() == DataType::kFloat32;
  const std::string slot = type.starts_with("softmax") ? "Logits" : "X";
  return {.type = std::move(type),
          .in = {{slot, {std::move(scores)}}, {"Label", {std::move(labels)}}},
          .attrs = {{"soft_label", soft}}};
}

// One label for each row.
Tensor Labels(std::int64_t rows, std::int64_t classes) {
  Tensor labels(DataType::kInt64, {rows, 1});
  for (std::int64_t i = 0; i < rows; ++i) labels.data<std::int64_t>()[i] = (i * 7 + 3) % classes;
  return labels;
}

TEST(CrossEntropy, IsTheLogarithmOfTheLabelsShare) {
  const Tensor shares = F32({2, 2}, {0.25F, 0.75F, 1, 0});
  ExpectNear(Output(WithLabels("cross_entropy", shares, I64({2, 1}, {0, 0})), "Y"), {1.3862944F, 0}, 1e-6);
  const Tensor soft = F32({2, 2}, {0.5F, 0.5F, 1, 0});
  ExpectNear(Output(WithLabels("cross_entropy", shares, soft), "Y"), {0.8369882F, 0}, 1e-6);
}

TEST(CrossEntropy, OfAShareOfZeroIsLargeAndANumber) {
  const Tensor shares = F32({1, 2}, {1, 0});
  ExpectNear(Output(WithLabels("cross_entropy", shares, I64({1, 1}, {1})), "Y"), {1e20F});
  ExpectNear(Output(WithLabels("cross_entropy", shares, F32({1, 2}, {1, 0})), "Y"), {0});
  OpCall gradient = WithLabels("cross_entropy_grad", shares, I64({1, 1}, {1}));
  gradient.in["Y@GRAD"] = {F32({1, 1}, {1})};
  ExpectNear(Output(gradient, "X@GRAD"), {0, -1e20F});
}

TEST(CrossEntropy, HasItsGradient) {
  for (const auto& [rows, classes] : {std::pair{1, 1}, {1, 5}, {7, 3}, {4, 33}}) {
    const Tensor shares = RandomTensor({rows, classes}, 3, 0.3, 1);
    CheckGradient(WithLabels("cross_entropy", shares, Labels(rows, classes)));
    CheckGradient(WithLabels("cross_entropy", shares, RandomTensor({rows, classes}, 4, 0, 1)),
                  {.slots = {"X"}});
  }
}

TEST(SoftmaxWithCrossEntropy, IsTheTwoTogether) {
  const auto results =
      RunOp(WithLabels("softmax_with_cross_entropy", F32({2, 3}, {1, 2, 3, 0, 0, 0}), I64({2, 1}, {2, 1})));
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("Softmax")[0]),
             {0.09003057F, 0.24472848F, 0.66524094F, 1.0F / 3, 1.0F / 3, 1.0F / 3}, 1e-6);
  ExpectNear(std::get<Tensor>(results->at("Loss")[0]), {0.40760595F, 1.0986123F}, 1e-6);
}

TEST(SoftmaxWithCrossEntropy, HoldsForLogitsOfAnySize) {
  const Tensor logits = F32({2, 2}, {10000, -10000, -1e30F, -1e30F});
  const OpCall call = WithLabels("softmax_with_cross_entropy", logits, I64({2, 1}, {1, 0}));
  ExpectNear(Output(call, "Loss"), {20000, 0.6931472F}, 1e-6);
  ExpectNear(Output(call, "Softmax"), {1, 0, 0.5F, 0.5F}, 1e-6);
}

TEST(SoftmaxWithCrossEntropy, TakesSharesForLabels) {
  const Tensor logits = F32({1, 2}, {0, 1});
  const Tensor half = F32({1, 2}, {0.5F, 0.5F});
  ExpectNear(Output(WithLabels("softmax_with_cross_entropy", logits, half), "Loss"), {0.8132617F}, 1e-6);
  // A class that nobody wants may be impossible.
  const Tensor impossible = F32({1, 2}, {0, -std::numeric_limits<float>::infinity()});
  const Tensor first = F32({1, 2}, {1, 0});
  ExpectNear(Output(WithLabels("softmax_with_cross_entropy", impossible, first), "Loss"), {0}, 0);
}

TEST(SoftmaxWithCrossEntropy, HasItsGradient) {
  for (const auto& [rows, classes] : {std::pair{1, 1}, {1, 5}, {7, 3}, {4, 37}}) {
    const Tensor logits = RandomTensor({rows, classes}, 3, -2, 2);
    CheckGradient(WithLabels("softmax_with_cross_entropy", logits, Labels(rows, classes)));
    const Tensor shares = RandomTensor({rows, classes}, 4, 0, 1);
    CheckGradient(WithLabels("softmax_with_cross_entropy", logits, shares), {.slots = {"Logits"}});
  }
}

TEST(SoftmaxWithCrossEntropy, MayWriteTheSoftmaxOverTheLogits) {
  for (const Tensor& labels : {Labels(3, 19), RandomTensor({3, 19}, 8, 0, 1)}) {
    OpCall call = WithLabels("softmax_with_cross_entropy", RandomTensor({3, 19}, 1), labels);
    const std::vector<float> wanted = ValuesOf<float>(Output(call, "Loss"));
    call.in_place = {{"Softmax", "Logits"}};
    EXPECT_EQ(ValuesOf<float>(Output(call, "Loss")), wanted);
  }
}

TEST(LossKernels, NameALabelThatIsNoClass) {
  for (const char* type : {"cross_entropy", "softmax_with_cross_entropy"}) {
    for (const std::int64_t label : {-1, 3, 1000000000}) {
      const absl::Status status =
          RunOp(WithLabels(type, RandomTensor({2, 3}, 1), I64({2, 1}, {0, label}))).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status));
      EXPECT_NE(Message(status).find(StrCat("label of row 1 is ", label)), std::string_view::npos) << status;
    }
  }
}

TEST(LossKernels, NameALabelThatIsNoClassInGradients) {
  const Tensor scores = RandomTensor({1, 3}, 1, 0.1, 1);
  OpCall call = WithLabels("cross_entropy_grad", scores, I64({1, 1}, {3}));
  call.in["Y@GRAD"] = {F32({1, 1}, {1})};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
  OpCall fused = WithLabels("softmax_with_cross_entropy_grad", scores, I64({1, 1}, {-1}));
  fused.in["Softmax"] = {scores};
  fused.in["Loss@GRAD"] = {F32({1, 1}, {1})};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(fused).status()));
}

OpCall SquareError(Tensor x, Tensor y) {
  return {.type = "square_error_cost", .in = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}}};
}

TEST(SquareErrorCost, IsTheSquareOfTheDifference) {
  ExpectNear(Output(SquareError(F32({3}, {1, 2, 3}), F32({3}, {1, 4, 0}))), {0, 4, 9}, 0);
}

TEST(SquareErrorCost, HasItsGradient) {
  for (const Dims& dims : {Dims{1, 1}, Dims{5, 3}})
    CheckGradient(SquareError(RandomTensor(dims, 1), RandomTensor(dims, 2)));
}

struct Best {
  std::vector<float> values;
  std::vector<std::int64_t> indices;
};

Best TopK(const Tensor& x, std::int64_t k) {
  const auto results = RunOp({.type = "top_k", .in = {{"X", {x}}}, .attrs = {{"k", k}}});
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  return {ValuesOf<float>(std::get<Tensor>(results->at("Out")[0])),
          ValuesOf<std::int64_t>(std::get<Tensor>(results->at("Indices")[0]))};
}

TEST(TopK, FindsTheLargestOfEachRowInOrder) {
  const Best best = TopK(F32({2, 4}, {1, 9, 3, 7, -1, -9, -3, -7}), 3);
  EXPECT_EQ(best.values, (std::vector<float>{9, 7, 3, -1, -3, -7}));
  EXPECT_EQ(best.indices, (std::vector<std::int64_t>{1, 3, 2, 0, 2, 3}));
}

TEST(TopK, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(TopK(F32({1, 5}, {2, 5, 5, 1, 5}), 2).indices, (std::vector<std::int64_t>{1, 2}));
}

TEST(TopK, PutsNotANumberLast) {
  EXPECT_EQ(TopK(F32({1, 4}, {kNan, -5, kNan, 3}), 4).indices, (std::vector<std::int64_t>{3, 1, 0, 2}));
}

TEST(TopK, OfAllIsAllInOrder) {
  const Best best = TopK(Shuffled({1, 501}, 3), 501);
  EXPECT_TRUE(std::is_sorted(best.values.rbegin(), best.values.rend()));
}

TEST(Accuracy, CountsRowsThatHaveTheLabelAmongTheirBest) {
  const auto results = RunOp(
      {.type = "accuracy",
       .in = {{"Indices", {I64({4, 2}, {0, 1, 2, 3, 1, 0, 3, 2})}}, {"Label", {I64({4, 1}, {1, 2, 5, 0})}}}});
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("Accuracy")[0]), {0.5F}, 0);
  EXPECT_EQ(std::get<Tensor>(results->at("Correct")[0]).data<std::int64_t>()[0], 2);
  EXPECT_EQ(std::get<Tensor>(results->at("Total")[0]).data<std::int64_t>()[0], 4);
}

TEST(Accuracy, OfNoRowsIsZero) {
  const OpCall call = {.type = "accuracy",
                       .in = {{"Indices", {I64({0, 2}, {})}}, {"Label", {I64({0, 1}, {})}}}};
  ExpectNear(Output(call, "Accuracy"), {0}, 0);
}

}  // namespace
}  // namespace trainyard::graph
