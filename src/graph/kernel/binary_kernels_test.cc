#include <cmath>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

OpCall Binary(std::string type, Tensor x, Tensor y, std::int64_t axis = -1) {
  return {.type = std::move(type),
          .in = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
          .attrs = {{"axis", axis}}};
}

TEST(BinaryKernels, WorkOnElementsOfTheSamePlace) {
  const Tensor x = F32({2, 2}, {6, -4, 9, 1});
  const Tensor y = F32({2, 2}, {3, 2, -2, 1});
  ExpectNear(Output(Binary("elementwise_add", x, y)), {9, -2, 7, 2}, 0);
  ExpectNear(Output(Binary("elementwise_sub", x, y)), {3, -6, 11, 0}, 0);
  ExpectNear(Output(Binary("elementwise_mul", x, y)), {18, -8, -18, 1}, 0);
  ExpectNear(Output(Binary("elementwise_div", x, y)), {2, -2, -4.5F, 1}, 0);
  ExpectNear(Output(Binary("elementwise_min", x, y)), {3, -4, -2, 1}, 0);
  ExpectNear(Output(Binary("elementwise_max", x, y)), {6, 2, 9, 1}, 0);
  ExpectNear(Output(Binary("elementwise_pow", x, y)), {216, 16, 1.0F / 81, 1}, 1e-6);
}

TEST(BinaryKernels, SpreadYOverTheLastDimsOfX) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectNear(Output(Binary("elementwise_add", x, F32({3}, {10, 20, 30}))), {11, 22, 33, 14, 25, 36}, 0);
  ExpectNear(Output(Binary("elementwise_sub", x, F32({3}, {1, 2, 3}), 1)), {0, 0, 0, 3, 3, 3}, 0);
}

TEST(BinaryKernels, SpreadYOverAnyRunOfDimsOfX) {
  const Tensor x = F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  ExpectNear(Output(Binary("elementwise_mul", x, F32({2}, {10, 1}), 1)), {10, 20, 3, 4, 50, 60, 7, 8}, 0);
  ExpectNear(Output(Binary("elementwise_mul", x, F32({2}, {10, 1}), 0)), {10, 20, 30, 40, 5, 6, 7, 8}, 0);
  ExpectNear(Output(Binary("elementwise_mul", x, F32({2, 2}, {1, 2, 3, 4}), 0)), {1, 2, 6, 8, 15, 18, 28, 32},
             0);
}

TEST(BinaryKernels, SpreadOneElementOverAll) {
  const Tensor x = F32({3, 1}, {1, 2, 4});
  ExpectNear(Output(Binary("elementwise_div", x, F32({1}, {2}))), {0.5F, 1, 2}, 0);
  ExpectNear(Output(Binary("elementwise_div", x, F32({1, 1, 1}, {2}))), {0.5F, 1, 2}, 0);
  ExpectNear(Output(Binary("elementwise_add", F32({}, {3}), F32({}, {2}))), {5}, 0);
}

TEST(BinaryKernels, DoNothingToNothing) {
  EXPECT_TRUE(Output(Binary("elementwise_add", F32({0, 3}, {}), F32({3}, {1, 2, 3}))).empty());
  EXPECT_TRUE(Output(Binary("elementwise_add", F32({0, 3}, {}), F32({1}, {1}))).empty());
}

TEST(BinaryKernels, MayWriteOverX) {
  OpCall call = Binary("elementwise_add", F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({3}, {1, 1, 1}));
  call.in_place = {{"Out", "X"}};
  ExpectNear(Output(call), {2, 3, 4, 5, 6, 7}, 0);
}

TEST(BinaryKernels, GiveTheSameBitsOnAnyNumberOfThreads) {
  for (const Dims& y : {Dims{301}, Dims{1}, Dims{257, 301}}) {
    for (const char* type : {"elementwise_mul", "elementwise_mul_grad"}) {
      std::vector<std::vector<float>> results;
      for (const int threads : {1, 2, 3}) {
        OpCall call = Binary(type, RandomTensor({257, 301}, 1), RandomTensor(y, 2));
        call.threads = threads;
        if (std::string_view(type) != "elementwise_mul") call.in["Out@GRAD"] = {RandomTensor({257, 301}, 3)};
        results.push_back(ValuesOf<float>(Output(call, call.in.contains("Out@GRAD") ? "Y@GRAD" : "Out")));
      }
      EXPECT_EQ(results[0], results[1]);
      EXPECT_EQ(results[0], results[2]);
    }
  }
}

class BinaryGradients : public testing::TestWithParam<const char*> {};

TEST_P(BinaryGradients, AreTheDifferences) {
  const auto check = [&](const Dims& x, const Dims& y, std::int64_t axis = -1) {
    SCOPED_TRACE(StrCat(Print(x), " and ", Print(y), " from ", axis));
    CheckGradient(Binary(GetParam(), RandomTensor(x, 1), RandomTensor(y, 2, 0.7, 2), axis));
  };
  check({3, 5}, {3, 5});
  check({1, 7}, {7});
  check({4, 7}, {7});
  check({4, 3, 5}, {3}, 1);
  check({4, 3, 5}, {4}, 0);
  check({4, 3, 5}, {3, 5});
  check({4, 3, 5}, {4, 3}, 0);
  check({5, 3}, {1});
  check({1}, {1});
  check({2, 1}, {1});
  check({3, 300}, {300});
}

INSTANTIATE_TEST_SUITE_P(All, BinaryGradients,
                         testing::Values("elementwise_add", "elementwise_sub", "elementwise_mul",
                                         "elementwise_div"));

TEST(BinaryKernels, MayWriteXsGradientOverOuts) {
  const OpCall call = {
      .type = "elementwise_mul_grad",
      .in = {{"X", {F32({2}, {3, 4})}}, {"Y", {F32({2}, {5, 6})}}, {"Out@GRAD", {F32({2}, {1, 2})}}},
      .in_place = {{"X@GRAD", "Out@GRAD"}}};
  const auto results = RunOp(call);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("X@GRAD")[0]), {5, 12}, 0);
  ExpectNear(std::get<Tensor>(results->at("Y@GRAD")[0]), {3, 8}, 0);
}

TEST(BinaryKernels, RefuseAGradientOfOtherDims) {
  const OpCall call = {
      .type = "elementwise_add_grad",
      .in = {{"X", {F32({2}, {3, 4})}}, {"Y", {F32({2}, {5, 6})}}, {"Out@GRAD", {F32({1}, {1})}}}};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

}  // namespace
}  // namespace trainyard::graph
