#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

OpCall BatchNorm(Tensor x, bool is_test) {
  const Dims channels = {x.dims()[1]};
  return {.type = "batch_norm",
          .in = {{"X", {std::move(x)}},
                 {"Scale", {RandomTensor(channels, 11, 0.5, 2)}},
                 {"Bias", {RandomTensor(channels, 12)}},
                 {"Mean", {RandomTensor(channels, 13)}},
                 {"Variance", {RandomTensor(channels, 14, 0.5, 2)}}},
          .attrs = {{"is_test", is_test}}};
}

const std::vector<Dims> kShapes = {{1, 1, 2, 2}, {4, 3}, {5, 2, 1}, {2, 3, 4, 5}, {3, 17}, {2, 1, 37}};

TEST(BatchNorm, BringsEachChannelToTheScaleAndTheBias) {
  OpCall call = BatchNorm(F32({2, 2, 2}, {1, 3, 10, 10, 5, 7, 20, 20}), false);
  call.in["Scale"] = {F32({2}, {1, 2})};
  call.in["Bias"] = {F32({2}, {0, 100})};
  const auto results = RunOp(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("BatchMean")[0]), {4, 15});
  ExpectNear(std::get<Tensor>(results->at("BatchVariance")[0]), {5, 25});
  const auto deviation = static_cast<float>(std::sqrt(5.0));
  ExpectNear(std::get<Tensor>(results->at("Y")[0]),
             {-3 / deviation, -1 / deviation, 98, 98, 1 / deviation, 3 / deviation, 102, 102});
}

TEST(BatchNorm, UsesTheGivenMeanAndVarianceInATest) {
  OpCall call = BatchNorm(F32({1, 1, 2}, {3, 5}), true);
  call.in["Scale"] = {F32({1}, {2})};
  call.in["Bias"] = {F32({1}, {1})};
  call.in["Mean"] = {F32({1}, {1})};
  call.in["Variance"] = {F32({1}, {4})};
  const auto results = RunOp(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("Y")[0]), {3, 5});
  ExpectNear(std::get<Tensor>(results->at("BatchMean")[0]), {1});
  ExpectNear(std::get<Tensor>(results->at("BatchVariance")[0]), {4});
}

TEST(BatchNorm, KeepsItsDigitsWhenTheMeanIsLarge) {
  OpCall call = BatchNorm(F32({4, 1}, {10001, 10002, 10003, 10004}), false);
  const auto results = RunOp(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("BatchVariance")[0]), {1.25});
}

TEST(BatchNorm, IsTheSameOnSeveralThreads) {
  OpCall call = BatchNorm(RandomTensor({16, 7, 40, 30}, 1), false);
  const std::vector<float> alone = ValuesOf<float>(Output(call, "Y"));
  call.threads = 3;
  EXPECT_EQ(ValuesOf<float>(Output(call, "Y")), alone);
}

TEST(BatchNorm, HasNothingToNormaliseInABatchOfNone) {
  EXPECT_EQ(Output(BatchNorm(Tensor(DataType::kFloat32, {0, 3}), false), "Y").dims(), (Dims{0, 3}));
}

TEST(BatchNormGradient, EqualsDifferences) {
  for (const Dims& shape : kShapes) {
    SCOPED_TRACE(Print(shape));
    const GradientCheck check = {.slots = {"X", "Scale", "Bias"}, .tolerance = 2e-2};
    CheckGradient(BatchNorm(Shuffled(shape, 3), false), check);
    CheckGradient(BatchNorm(Shuffled(shape, 3), true), check);
  }
}

TEST(BatchNormGradient, IsComputedForOneInputAlone) {
  for (const char* slot : {"X", "Scale", "Bias"})
    CheckGradient(BatchNorm(Shuffled({3, 2, 3}, 3), false), {.slots = {slot}, .tolerance = 2e-2});
}

TEST(BatchNormGradient, RefusesAGradientOfOtherDims) {
  OpCall call = BatchNorm(RandomTensor({2, 3}, 1), false);
  call.type = "batch_norm_grad";
  call.in["BatchMean"] = call.in["BatchVariance"] = {RandomTensor({3}, 1)};
  call.in["Y@GRAD"] = {RandomTensor({1, 3}, 1)};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
  call.in["Y@GRAD"] = {RandomTensor({2, 3}, 1)};
  EXPECT_TRUE(RunOp(call).ok());
  call.in["BatchMean"] = {RandomTensor({2}, 1)};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

OpCall Softmax(Tensor x) { return {.type = "softmax", .in = {{"X", {std::move(x)}}}}; }

TEST(Softmax, SharesOutOneAmongTheElementsOfARow) {
  const auto e = static_cast<float>(std::exp(1.0));
  ExpectNear(Output(Softmax(F32({2, 2}, {0, 0, 1, 2}))), {0.5, 0.5, 1 / (1 + e), e / (1 + e)});
}

TEST(Softmax, GoesOverTheLastDimOfAnyRank) {
  for (const Dims& dims : {Dims{7}, Dims{3, 1}, Dims{2, 3, 4}, Dims{2, 2, 2, 65}}) {
    const Tensor out = Output(Softmax(RandomTensor(dims, 1, -3, 3)));
    const std::int64_t width = dims[dims.rank() - 1];
    for (std::int64_t row = 0; row < out.count() / width; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < width; ++i) sum += static_cast<double>(out.data<float>()[row * width + i]);
      EXPECT_NEAR(sum, 1, 1e-6) << Print(dims);
    }
  }
}

TEST(Softmax, NeitherOverflowsNorLosesTheLargest) {
  ExpectNear(Output(Softmax(F32({1, 3}, {1000, 0, -1000}))), {1, 0, 0});
  ExpectNear(Output(Softmax(F32({1, 2}, {-3e38F, -3e38F}))), {0.5, 0.5});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ExpectNear(Output(Softmax(F32({1, 3}, {1, -kInfinity, 1}))), {0.5, 0, 0.5});
}

TEST(Softmax, HasNoElementsInRowsOfNone) {
  EXPECT_EQ(Output(Softmax(Tensor(DataType::kFloat32, {3, 0}))).dims(), (Dims{3, 0}));
}

TEST(SoftmaxGradient, EqualsDifferences) {
  for (const Dims& dims : {Dims{5}, Dims{1, 10}, Dims{3, 33}, Dims{2, 3, 7}}) {
    SCOPED_TRACE(Print(dims));
    CheckGradient(Softmax(RandomTensor(dims, 1, -2, 2)));
  }
}

}  // namespace
}  // namespace trainyard::graph
