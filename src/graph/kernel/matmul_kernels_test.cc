#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

OpCall Mul(Tensor x, Tensor y, Attrs attrs = {}) {
  return {.type = "mul", .in = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}}, .attrs = std::move(attrs)};
}

TEST(Mul, MultipliesMatrices) {
  const Tensor out = Output(Mul(F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({3, 2}, {1, 0, 0, 1, 2, 3})));
  EXPECT_EQ(out.dims(), (Dims{2, 2}));
  EXPECT_EQ(ValuesOf<float>(out), (std::vector<float>{7, 11, 16, 23}));
}

TEST(Mul, FlattensDimsToRowsAndColumns) {
  const Attrs attrs = {{"x_num_col_dims", std::int64_t{2}}, {"y_num_col_dims", std::int64_t{2}}};
  const Tensor x = RandomTensor({2, 3, 4}, 1);
  const Tensor y = RandomTensor({2, 2, 5, 1}, 2);
  const Tensor out = Output(Mul(x, y, attrs));
  EXPECT_EQ(out.dims(), (Dims{2, 3, 5, 1}));
  ExpectNear(out, ValuesOf<float>(Output(Mul(x.Reshaped({6, 4}), y.Reshaped({4, 5})))));
}

TEST(Mul, HasNoRowsForABatchOfNone) {
  EXPECT_EQ(Output(Mul(Tensor(DataType::kFloat32, {0, 3}), RandomTensor({3, 2}, 1))).dims(), (Dims{0, 2}));
}

TEST(Mul, IsZeroWithoutColumns) {
  const Tensor out = Output(Mul(Tensor(DataType::kFloat32, {2, 0}), Tensor(DataType::kFloat32, {0, 2})));
  EXPECT_EQ(ValuesOf<float>(out), std::vector<float>(4, 0.0F));
}

TEST(Mul, RunsAgainWithABatchOfAnotherSize) {
  const Tensor y = RandomTensor({5, 3}, 1);
  auto op = OneOp::Make(Mul(RandomTensor({8, 5}, 2), y));
  ASSERT_TRUE(op.ok()) << op.status();
  for (const std::int64_t batch : {8, 3, 8, 1, 16}) {
    const Tensor x = RandomTensor({batch, 5}, 3);
    (*op)->Feed({{"X", {x}}});
    ASSERT_TRUE((*op)->Run().ok());
    ExpectNear(std::get<Tensor>((*op)->Get("Out")), ValuesOf<float>(Output(Mul(x, y))));
  }
}

TEST(Mul, IsTheSameOnSeveralThreads) {
  OpCall call = Mul(RandomTensor({64, 300}, 1), RandomTensor({300, 70}, 2));
  const std::vector<float> alone = ValuesOf<float>(Output(call));
  call.threads = 3;
  ExpectNear(Output(call), alone);
}

TEST(MulGradient, EqualsDifferences) {
  for (const auto& [rows, inner, cols] :
       std::vector<std::tuple<int, int, int>>{{1, 1, 1}, {1, 7, 3}, {5, 4, 1}, {4, 9, 6}, {17, 13, 11}}) {
    CheckGradient(Mul(RandomTensor({rows, inner}, 1), RandomTensor({inner, cols}, 2)));
  }
}

TEST(MulGradient, EqualsDifferencesForMoreDims) {
  CheckGradient(
      Mul(RandomTensor({2, 3, 4}, 1), RandomTensor({4, 5}, 2), {{"x_num_col_dims", std::int64_t{2}}}));
  CheckGradient(
      Mul(RandomTensor({3, 2, 2}, 1), RandomTensor({2, 2, 5}, 2), {{"y_num_col_dims", std::int64_t{2}}}));
}

TEST(MulGradient, IsComputedForOneInputAlone) {
  const OpCall call = Mul(RandomTensor({3, 4}, 1), RandomTensor({4, 2}, 2));
  CheckGradient(call, {.slots = {"X"}});
  CheckGradient(call, {.slots = {"Y"}});
}

}  // namespace
}  // namespace trainyard::graph
