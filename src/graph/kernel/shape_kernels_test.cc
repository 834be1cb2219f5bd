#include <cmath>
#include <limits>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

std::vector<bool> TruthsOf(const Tensor& tensor) {
  return std::vector<bool>(tensor.data<bool>(), tensor.data<bool>() + tensor.count());
}

const Tensor& Dense(const OpResults& results, const std::string& slot, std::size_t i = 0) {
  return std::get<Tensor>(results.at(slot)[i]);
}

OpCall Concat(std::vector<Value> x, std::int64_t axis) {
  return {.type = "concat", .in = {{"X", std::move(x)}}, .attrs = {{"axis", axis}}};
}

TEST(Concat, JoinsAlongAnyDim) {
  const Tensor a = F32({1, 2}, {1, 2});
  const Tensor b = F32({2, 2}, {3, 4, 5, 6});
  ExpectNear(Output(Concat({a, b}, 0)), {1, 2, 3, 4, 5, 6}, 0);
  const Tensor c = F32({2, 1}, {7, 8});
  ExpectNear(Output(Concat({b, c, b}, 1)), {3, 4, 7, 3, 4, 5, 6, 8, 5, 6}, 0);
  ExpectNear(Output(Concat({F32({2, 0}, {}), c}, 1)), {7, 8}, 0);
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Concat({I64({1}, {4}), I64({2}, {5, 6})}, 0))), (Numbers{4, 5, 6}));
}

TEST(Concat, LeavesAPartAloneThatIsInItsPlaceAlready) {
  OpCall call = Concat({F32({1, 2}, {1, 2}), F32({2, 2}, {3, 4, 5, 6})}, 0);
  const auto op = OneOp::Make(call);
  ASSERT_TRUE(op.ok()) << op.status();
  ASSERT_TRUE((*op)->Run().ok());
  const Tensor out = std::get<Tensor>((*op)->Get("Out"));
  Tensor second = out.Rows(1, 2);
  (*op)->Feed({{"X", {F32({1, 2}, {7, 8}), second}}});
  second.data<float>()[0] = 9;
  ASSERT_TRUE((*op)->Run().ok());
  EXPECT_EQ(std::get<Tensor>((*op)->Get("Out")).raw(), out.raw());
  ExpectNear(out, {7, 8, 9, 4, 5, 6}, 0);
}

TEST(Concat, HasItsGradient) {
  CheckGradient(Concat({RandomTensor({1, 3}, 1), RandomTensor({4, 3}, 2)}, 0));
  CheckGradient(
      Concat({RandomTensor({2, 3, 5}, 1), RandomTensor({2, 1, 5}, 2), RandomTensor({2, 2, 5}, 3)}, 1));
  CheckGradient(Concat({RandomTensor({1}, 1)}, 0));
}

OpCall Split(Tensor x, std::int64_t axis, Ints sections, int outs) {
  return {.type = "split",
          .in = {{"X", {std::move(x)}}},
          .attrs = {{"axis", axis}, {"sections", std::move(sections)}},
          .outs = {{"Out", outs}}};
}

TEST(Split, CutsAlongAnyDim) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto columns = RunOp(Split(x, 1, {1, 2}, 2));
  ASSERT_TRUE(columns.ok()) << columns.status();
  ExpectNear(Dense(*columns, "Out", 0), {1, 4}, 0);
  ExpectNear(Dense(*columns, "Out", 1), {2, 3, 5, 6}, 0);
  const auto rows = RunOp(Split(x, 0, {}, 2));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ExpectNear(Dense(*rows, "Out", 1), {4, 5, 6}, 0);
}

TEST(Split, HasItsGradient) {
  CheckGradient(Split(RandomTensor({5, 3}, 1), 0, {2, 2, 1}, 3));
  CheckGradient(Split(RandomTensor({2, 6, 3}, 1), 1, {}, 3));
}

TEST(Split, RefusesGradientsOfSomeOfItsPartsOnly) {
  const OpCall call = {.type = "split_grad",
                       .in = {{"X", {F32({4}, {1, 2, 3, 4})}}, {"Out@GRAD", {F32({2}, {1, 2})}}},
                       .attrs = {{"axis", std::int64_t{0}}, {"sections", Ints{2, 2}}}};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

TEST(SplitByRef, GivesViewsOfTheRows) {
  Tensor x = F32({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto results = RunOp(
      {.type = "split_byref", .in = {{"X", {x}}}, .attrs = {{"sections", Ints{1, 2}}}, .outs = {{"Out", 2}}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(Dense(*results, "Out", 0).dims(), (Dims{1, 2}));
  x.data<float>()[5] = 9;
  ExpectNear(Dense(*results, "Out", 1), {3, 4, 5, 9}, 0);
}

OpCall Reshape(Tensor x, Ints shape) {
  return {.type = "reshape", .in = {{"X", {std::move(x)}}}, .attrs = {{"shape", std::move(shape)}}};
}

TEST(Reshape, GivesAViewUnderOtherDims) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor out = Output(Reshape(x, {-1, 2}));
  EXPECT_EQ(out.dims(), (Dims{3, 2}));
  EXPECT_EQ(out.raw(), x.raw());
}

TEST(Reshape, FollowsWhenTheBatchChangesItsSize) {
  OpCall call = Reshape(F32({2, 3}, {1, 2, 3, 4, 5, 6}), {-1});
  auto program = ProgramOf(call);
  ASSERT_TRUE(program.ok()) << program.status();
  for (Var& var : program->main().vars) var.type.dims[0] = kUnknownDim;
  const auto op = OneOp::Make(*program, call);
  ASSERT_TRUE(op.ok()) << op.status();
  for (const std::int64_t rows : {2, 1, 4}) {
    const Tensor x = RandomTensor({rows, 3}, 1);
    (*op)->Feed({{"X", {x}}});
    ASSERT_TRUE((*op)->Run().ok());
    EXPECT_EQ(ValuesOf<float>(std::get<Tensor>((*op)->Get("Out"))), ValuesOf<float>(x));
  }
}

TEST(Reshape, HasItsGradient) {
  CheckGradient(Reshape(RandomTensor({2, 3, 4}, 1), {0, -1}));
  CheckGradient(Reshape(RandomTensor({1}, 1), {1, 1, 1}));
}

OpCall Cast(Tensor x, std::string to) {
  return {.type = "cast", .in = {{"X", {std::move(x)}}}, .attrs = {{"to", std::move(to)}}};
}

TEST(Cast, ConvertsBetweenAllTypes) {
  const Tensor floats = F32({4}, {-1.7F, 0, 0.5F, 3e9F});
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Cast(floats, "i64"))), (Numbers{-1, 0, 0, 3000000000}));
  EXPECT_EQ(TruthsOf(Output(Cast(floats, "bool"))), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(ValuesOf<float>(Output(Cast(floats, "f32"))), ValuesOf<float>(floats));
  const Tensor whole = I64({3}, {-5, 0, 7});
  ExpectNear(Output(Cast(whole, "f32")), {-5, 0, 7}, 0);
  EXPECT_EQ(TruthsOf(Output(Cast(whole, "bool"))), (std::vector<bool>{true, false, true}));
  ExpectNear(Output(Cast(Bool(true), "f32")), {1}, 0);
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Cast(Bool(false), "i64"))), (Numbers{0}));
}

TEST(Cast, NamesAnElementThatIsNoWholeNumber) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), 1e19F, -1e30F}) {
    const absl::Status status = RunOp(Cast(F32({2}, {1, value}), "i64")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_NE(Message(status).find("element 1"), std::string_view::npos) << status;
  }
}

OpCall Assign(Value x) { return {.type = "assign", .in = {{"X", {std::move(x)}}}}; }

TEST(Assign, CopiesTensorsOfAnyTypeAndSize) {
  for (const std::int64_t count : {0, 1, 1023, 1024, 5000}) {
    const Tensor x = RandomTensor({count}, 1);
    const Tensor out = Output(Assign(x));
    EXPECT_EQ(ValuesOf<float>(out), ValuesOf<float>(x));
    EXPECT_TRUE(out.empty() || out.raw() != x.raw());
  }
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Assign(I64({2}, {1, 2})))), (Numbers{1, 2}));
}

TEST(Assign, CopiesSparseRows) {
  const SparseRows x = Sparse(9, {4, 1}, F32({2, 2}, {1, 2, 3, 4}));
  const auto results = RunOp(Assign(x));
  ASSERT_TRUE(results.ok()) << results.status();
  const auto& out = std::get<SparseRows>(results->at("Out")[0]);
  EXPECT_EQ(out.rows, x.rows);
  EXPECT_EQ(out.height, 9);
  EXPECT_NE(out.value.raw(), x.value.raw());
  ExpectNear(out.value, {1, 2, 3, 4}, 0);
}

TEST(Assign, HasItsGradient) { CheckGradient(Assign(RandomTensor({3}, 1))); }

// With variables whose dims are known only when it runs, so that only then can it be seen to be wrong.
absl::Status RunOverItself(OpCall call, const std::string& out, const Tensor& x) {
  call.in_place = {{"Out", out}};
  auto program = ProgramOf(call);
  if (!program.ok()) return program.status();
  for (Var& var : program->main().vars) var.type.dims = {kUnknownDim, kUnknownDim};
  call.in["X"][0] = x;
  TY_ASSIGN_OR_RETURN(const auto op, OneOp::Make(*program, call));
  return op->Run();
}

TEST(ShapeKernels, RefuseToWriteOverAnInputOfOtherDims) {
  const Tensor square = RandomTensor({4, 4}, 1);
  const Tensor tall = RandomTensor({1000, 2}, 1);
  const OpCall transpose = {.type = "transpose", .in = {{"X", {square}}}, .attrs = {{"axis", Ints{1, 0}}}};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOverItself(transpose, "X", tall)));
  EXPECT_FALSE(
      RunOverItself(Concat({F32({1, 4}, {1, 2, 3, 4}), square}, 0), "X", RandomTensor({9, 4}, 1)).ok());
  EXPECT_FALSE(RunOverItself(Split(square, 0, {}, 2), "X", tall).ok());
}

}  // namespace
}  // namespace trainyard::graph
