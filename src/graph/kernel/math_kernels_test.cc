#include "graph/kernel/math_kernels.h"

#include <cmath>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

OpCall MathOfX(std::string type, Value x, Attrs attrs = {}) {
  return {.type = std::move(type), .in = {{"X", {std::move(x)}}}, .attrs = std::move(attrs)};
}

SparseRows MathRowsOf(const OpCall& call) {
  const auto results = RunOp(call);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? std::get<SparseRows>(results->at("Out")[0]) : SparseRows();
}

TEST(MathKernels, ComputeFunctionsOfOneElement) {
  ExpectNear(Output(MathOfX("square", F32({3}, {-2, 0, 3}))), {4, 0, 9}, 0);
  ExpectNear(Output(MathOfX("exp", F32({3}, {0, 1, -50}))), {1, 2.7182817F, 1.9287498e-22F}, 1e-6);
  ExpectNear(Output(MathOfX("log", F32({2}, {1, 10}))), {0, 2.302585F}, 1e-6);
  ExpectNear(Output(MathOfX("sqrt", F32({3}, {0, 4, 2}))), {0, 2, 1.4142135F}, 1e-7);
  ExpectNear(Output(MathOfX("abs", F32({3}, {-1.5F, 0, 2}))), {1.5F, 0, 2}, 0);
  ExpectNear(Output(MathOfX("sign", F32({3}, {-1.5F, 0, 2}))), {-1, 0, 1}, 0);
  ExpectNear(Output(MathOfX("floor", F32({4}, {-1.5F, 0, 2.9F, 3}))), {-2, 0, 2, 3}, 0);
  ExpectNear(Output(MathOfX("ceil", F32({4}, {-1.5F, 0, 2.1F, 3}))), {-1, 0, 3, 3}, 0);
}

TEST(MathKernels, HaveTheGradientsOfTheirFunctions) {
  for (const Dims& dims : {Dims{1}, Dims{3, 7}, Dims{2, 1, 5}}) {
    for (const char* type : {"square", "exp"}) CheckGradient(MathOfX(type, RandomTensor(dims, 5)));
    for (const char* type : {"log", "sqrt"}) CheckGradient(MathOfX(type, RandomTensor(dims, 6, 0.5, 2)));
    CheckGradient(MathOfX("abs", Shuffled(dims, 7)));
    CheckGradient(MathOfX("mean", RandomTensor(dims, 8)), {.step = 1e-1});
    CheckGradient(MathOfX("scale", RandomTensor(dims, 9), {{"scale", -2.5}, {"bias", 3.0}}));
  }
}

TEST(MathKernels, ScaleDenseValues) {
  ExpectNear(Output(MathOfX("scale", F32({2}, {1, -2}), {{"scale", 3.0}, {"bias", 0.5}})), {3.5F, -5.5F}, 0);
  OpCall call = MathOfX("scale", F32({2}, {1, -2}), {{"scale", 3.0}});
  call.in["Factor"] = {F32({1}, {0.25F})};
  ExpectNear(Output(call), {0.25F, -0.5F}, 0);
  call.attrs = {};
  call.type = "scale_by";
  ExpectNear(Output(call), {0.25F, -0.5F}, 0);
}

TEST(MathKernels, ScaleByAFactorInTheGradientToo) {
  OpCall call = MathOfX("scale", RandomTensor({3}, 1));
  call.in["Factor"] = {F32({1}, {-4})};
  CheckGradient(call, {.slots = {"X"}});
}

TEST(MathKernels, ScaleSparseRowsAndKeepTheirNumbers) {
  OpCall call = MathOfX("scale", Sparse(9, {4, 4}, F32({2, 2}, {1, 2, 3, 4})), {{"scale", 2.0}});
  for (const bool in_place : {false, true}) {
    if (in_place) call.in_place = {{"Out", "X"}};
    const SparseRows rows = MathRowsOf(call);
    EXPECT_EQ(rows.rows, (Numbers{4, 4}));
    EXPECT_EQ(rows.height, 9);
    ExpectNear(rows.value, {2, 4, 6, 8}, 0);
  }
  call.attrs["bias"] = 1.0;
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call).status()));
}

TEST(MathKernels, AverageLargeTensorsWithoutLosingThem) {
  // One by one in floats the sum would stop growing at 2^24.
  const std::int64_t count = 20'000'000;
  Tensor x(DataType::kFloat32, {count});
  std::fill_n(x.data<float>(), count, 1.0F);
  ExpectNear(Output(MathOfX("mean", x)), {1}, 0);
  EXPECT_FALSE(RunOp(MathOfX("mean", F32({0}, {}))).ok());
}

TEST(MathKernels, AverageToTheSameBitsOnAnyNumberOfThreads) {
  OpCall call = MathOfX("mean", RandomTensor({300, 777}, 4));
  const float one = Output(call).data<float>()[0];
  for (const int threads : {2, 3, 7}) {
    call.threads = threads;
    EXPECT_EQ(Output(call).data<float>()[0], one);
  }
}

OpCall Sum(std::vector<Value> x) { return {.type = "sum", .in = {{"X", std::move(x)}}}; }

TEST(SumKernel, AddsDenseTensors) {
  const Tensor a = F32({2}, {1, 2});
  const Tensor b = F32({2}, {10, 20});
  const Tensor c = F32({2}, {100, 200});
  ExpectNear(Output(Sum({a})), {1, 2}, 0);
  ExpectNear(Output(Sum({a, b})), {11, 22}, 0);
  ExpectNear(Output(Sum({a, b, c})), {111, 222}, 0);
  ExpectNear(Output(Sum({a, a, a, a})), {4, 8}, 0);
}

TEST(SumKernel, AddsManyLargeTensorsInTheOrderOfItsInputs) {
  std::vector<Value> inputs;
  inputs.reserve(5);
  for (std::uint64_t i = 0; i < 5; ++i) inputs.emplace_back(RandomTensor({70001}, i));
  std::vector<float> wanted(70001);
  for (const Value& input : inputs) {
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += std::get<Tensor>(input).span<float>()[i];
  }
  OpCall call = Sum(inputs);
  call.threads = 2;
  EXPECT_EQ(ValuesOf<float>(Output(call)), wanted);
}

TEST(SumKernel, MayWriteOverAnInput) {
  for (const int count : {1, 2, 3}) {
    OpCall call = Sum({F32({2}, {1, 2})});
    for (int i = 1; i < count; ++i) call.in["X"].emplace_back(F32({2}, {10, 20}));
    call.in_place = {{"Out", "X"}};
    const auto added = static_cast<float>(count - 1);
    ExpectNear(Output(call), {1 + 10 * added, 2 + 20 * added}, 0);
  }
}

TEST(SumKernel, JoinsTheRowsOfSparseInputs) {
  const SparseRows a = Sparse(9, {4, 1}, F32({2, 1}, {1, 2}));
  const SparseRows b = Sparse(9, {4}, F32({1, 1}, {3}));
  OpCall call = Sum({a, Sparse(9, {}, F32({0, 1}, {})), b});
  for (const bool in_place : {false, true}) {
    if (in_place) call.in_place = {{"Out", "X"}};
    const SparseRows rows = MathRowsOf(call);
    EXPECT_EQ(rows.rows, (Numbers{4, 1, 4}));
    EXPECT_EQ(rows.height, 9);
    ExpectNear(rows.value, {1, 2, 3}, 0);
  }
}

TEST(SumKernel, JoinsRowsAgainAndAgainWithoutTouchingWhatItGaveOut) {
  const auto op = OneOp::Make(Sum({Sparse(9, {4}, F32({1, 1}, {1})), Sparse(9, {5}, F32({1, 1}, {2}))}));
  ASSERT_TRUE(op.ok()) << op.status();
  ASSERT_TRUE((*op)->Run().ok());
  const SparseRows kept = std::get<SparseRows>((*op)->Get("Out"));
  for (float value = 10; value < 14; ++value) {
    (*op)->Feed({{"X", {Sparse(9, {6}, F32({1, 1}, {value}))}}});
    ASSERT_TRUE((*op)->Run().ok());
    const auto& rows = std::get<SparseRows>((*op)->Get("Out"));
    EXPECT_EQ(rows.rows, (Numbers{6, 5}));
    ExpectNear(rows.value, {value, 2}, 0);
  }
  ExpectNear(kept.value, {1, 2}, 0);
}

TEST(SumKernel, AddsSparseRowsToDenseTensors) {
  const SparseRows rows = Sparse(3, {2, 2}, F32({2, 2}, {1, 2, 3, 4}));
  const Tensor dense = F32({3, 2}, {0, 0, 1, 1, 2, 2});
  ExpectNear(Output(Sum({rows, dense})), {0, 0, 1, 1, 6, 8}, 0);
  ExpectNear(Output(Sum({dense, rows, dense})), {0, 0, 2, 2, 8, 10}, 0);
}

TEST(SumKernel, NamesARowThatIsNotThere) {
  const absl::Status status = RunOp(Sum({Sparse(3, {3}, F32({1, 1}, {1})), F32({3, 1}, {0, 0, 0})})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(Message(status).find("row 3"), std::string_view::npos) << status;
}

TEST(SumKernel, PassesOverWhatIsAbsentIfItIsToldTo) {
  OpCall call = Sum({F32({2}, {1, 2}), F32({2}, {10, 20}), F32({2}, {100, 200})});
  call.attrs = {{"skip_absent", true}};
  const auto program = ProgramOf(call);
  ASSERT_TRUE(program.ok()) << program.status();
  Scope scope;
  const auto block = PreparedBlock::Make(*program, 0, scope);
  ASSERT_TRUE(block.ok()) << block.status();
  Services services;
  EXPECT_FALSE((*block)->Run(services).ok()) << "nothing is there to be added";
  ASSERT_TRUE((*block)->Feed("X.1", F32({2}, {10, 20})).ok());
  ASSERT_TRUE((*block)->Run(services).ok());
  ExpectNear(*(*block)->Fetch("Out"), {10, 20}, 0);
  ASSERT_TRUE((*block)->Feed("X", F32({2}, {1, 2})).ok());
  ASSERT_TRUE((*block)->Run(services).ok());
  ExpectNear(*(*block)->Fetch("Out"), {11, 22}, 0);
}

TEST(SumKernel, GivesItsGradientToEveryInput) {
  CheckGradient(Sum({RandomTensor({2, 3}, 1), RandomTensor({2, 3}, 2), RandomTensor({2, 3}, 3)}));
}

}  // namespace
}  // namespace trainyard::graph
