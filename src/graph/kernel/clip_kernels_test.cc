#include <cmath>
#include <limits>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

OpCall OfX(std::string type, Value x, Attrs attrs = {}) {
  return {.type = std::move(type), .in = {{"X", {std::move(x)}}}, .attrs = std::move(attrs)};
}

const Attrs kBounds = {{"min", -1.0}, {"max", 2.0}};

SparseRows ClipRowsOf(const OpCall& call) {
  const auto results = RunOp(call);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? std::get<SparseRows>(results->at("Out")[0]) : SparseRows();
}

TEST(ClipKernels, BoundValues) {
  const Tensor x = F32({5}, {-3, -1, 0.5F, 2, 7});
  ExpectNear(Output(OfX("clip", x, kBounds)), {-1, -1, 0.5F, 2, 2}, 0);
  ExpectNear(Output(OfX("clip_values", x, kBounds)), {-1, -1, 0.5F, 2, 2}, 0);
}

TEST(ClipKernels, LeaveNotANumberToBeSeen) {
  const Tensor x = F32({1}, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(Output(OfX("clip", x, kBounds)).data<float>()[0]));
}

TEST(ClipKernels, PassGradientsOfWhatIsInside) {
  for (const Dims& dims : {Dims{1}, Dims{7, 9}}) CheckGradient(OfX("clip", Shuffled(dims, 3, 0.13), kBounds));
  const OpCall edge = {
      .type = "clip_grad",
      .in = {{"X", {F32({4}, {-1.5F, -1, 2, 2.5F})}}, {"Out@GRAD", {F32({4}, {1, 1, 1, 1})}}},
      .attrs = kBounds};
  ExpectNear(Output(edge, "X@GRAD"), {0, 1, 1, 0}, 0);
}

TEST(ClipKernels, BoundWhatSparseRowsAddUpTo) {
  const SparseRows rows =
      ClipRowsOf(OfX("clip_values", Sparse(9, {5, 0, 5}, F32({3, 1}, {1.5F, 7, 1.5F})), kBounds));
  EXPECT_EQ(rows.rows, (Numbers{0, 5}));
  ExpectNear(rows.value, {2, 2}, 0);
}

TEST(ClipKernels, BoundSparseRowsInPlace) {
  for (const Numbers& numbers : {Numbers{1, 2}, Numbers{2, 2}}) {
    OpCall call = OfX("clip_values", Sparse(9, numbers, F32({2, 1}, {1.5F, 7})), kBounds);
    call.in_place = {{"Out", "X"}};
    EXPECT_EQ(ClipRowsOf(call).rows.size(), numbers[0] == numbers[1] ? 1u : 2u);
  }
}

TEST(ClipKernels, AddSquares) {
  ExpectNear(Output(OfX("squared_l2_norm", F32({2, 2}, {1, -2, 3, -4}))), {30}, 0);
  ExpectNear(Output(OfX("squared_l2_norm", Sparse(9, {5, 0, 5}, F32({3, 1}, {1, 2, 3})))), {20}, 0);
  ExpectNear(Output(OfX("squared_l2_norm", F32({0}, {}))), {0}, 0);
}

TEST(ClipKernels, AddSquaresToTheSameBitsOnAnyNumberOfThreads) {
  OpCall call = OfX("squared_l2_norm", RandomTensor({123457}, 4));
  const float one = Output(call).data<float>()[0];
  for (const int threads : {2, 5}) {
    call.threads = threads;
    EXPECT_EQ(Output(call).data<float>()[0], one);
  }
}

TEST(ClipKernels, ShortenWhatIsTooLong) {
  const Tensor x = F32({2}, {3, -4});
  ExpectNear(Output(OfX("clip_by_norm", x, {{"max_norm", 2.5}})), {1.5F, -2}, 1e-6);
  ExpectNear(Output(OfX("clip_by_norm", x, {{"max_norm", 5.0}})), {3, -4}, 0);
  ExpectNear(Output(OfX("clip_by_norm", F32({2}, {0, 0}), {{"max_norm", 1.0}})), {0, 0}, 0);
}

TEST(ClipKernels, ShortenSparseRowsByWhatTheyAddUpTo) {
  const OpCall call = OfX("clip_by_norm", Sparse(9, {5, 0, 5}, F32({3, 1}, {1, -4, 2})), {{"max_norm", 2.5}});
  const SparseRows rows = ClipRowsOf(call);
  EXPECT_EQ(rows.rows, (Numbers{5, 0, 5}));
  ExpectNear(rows.value, {0.5F, -2, 1}, 1e-6);
}

TEST(ClipKernels, FindTheFactorForAllGradientsTogether) {
  const OpCall call = {
      .type = "clip_factor", .in = {{"X", {F32({1}, {9}), F32({1}, {16})}}}, .attrs = {{"max_norm", 2.5}}};
  ExpectNear(Output(call), {0.5F}, 0);
  OpCall small = call;
  small.attrs = {{"max_norm", 6.0}};
  ExpectNear(Output(small), {1}, 0);
}

}  // namespace
}  // namespace trainyard::graph
