#include "graph/exec/executor.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build/builder.h"
#include "graph/pass/backward.h"

namespace trainyard::graph {
namespace {

using testing::HasSubstr;

Tensor Floats32(Dims dims, const std::vector<float>& values) {
  Tensor tensor(DataType::kFloat32, std::move(dims));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor Whole(Dims dims, const std::vector<std::int64_t>& values) {
  Tensor tensor(DataType::kInt64, std::move(dims));
  std::copy(values.begin(), values.end(), tensor.data<std::int64_t>());
  return tensor;
}

Op FillOp(const std::string& name, double value, const std::string& type = "f32") {
  return {.type = "fill_constant",
          .outputs = {{"Out", {name}}},
          .attrs = {{"shape", Ints{1}}, {"value", value}, {"dtype", type}}};
}

TEST(Executor, LearnsALine) {
  Builder net("line", {.seed = 5});
  const Ref x = net.Data("x", {2});
  const Ref y = net.Data("y", {1});
  const Ref loss = net.Mean(net.SquareErrorCost(net.Fc(x, 1), y));
  net.Minimize(loss, {.update = Sgd(), .rate = 0.1});
  const absl::StatusOr<Programs> programs = net.Finish();
  ASSERT_TRUE(programs.ok()) << programs.status();
  Scope scope;
  Services services;
  ASSERT_TRUE(RunOnce(programs->startup, scope, services).ok());
  auto block = PreparedBlock::Make(programs->main, 0, scope, {.check_finite = true});
  ASSERT_TRUE(block.ok()) << block.status();
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE((*block)->Feed("x", Floats32({4, 2}, {0, 0, 1, 0, 0, 1, 1, 1})).ok());
    ASSERT_TRUE((*block)->Feed("y", Floats32({4, 1}, {1, 3, 0, 2})).ok());
    const absl::Status run = (*block)->Run(services);
    ASSERT_TRUE(run.ok()) << run;
  }
  EXPECT_LT((*block)->Fetch(loss.name)->data<float>()[0], 1e-4);
  EXPECT_NEAR(scope.FindTensor("fc_0.w_0")->data<float>()[0], 2, 0.05);
  EXPECT_NEAR(scope.FindTensor("fc_0.w_0")->data<float>()[1], -1, 0.05);
  EXPECT_NEAR(scope.FindTensor("fc_0.b_0")->data<float>()[0], 1, 0.05);
}

TEST(Executor, TakesBatchesOfAnySizeOneAfterTheOther) {
  Builder net("net");
  const Ref out = net.Fc(net.Data("x", {3}), 2, {.activation = "softmax"});
  Scope scope;
  Services services;
  ASSERT_TRUE(RunOnce(net.Finish()->startup, scope, services).ok());
  auto block = PreparedBlock::Make(net.Finish()->main, 0, scope);
  ASSERT_TRUE(block.ok());
  for (const std::int64_t batch : {4, 1, 7, 4}) {
    ASSERT_TRUE((*block)->Feed("x", Tensor(DataType::kFloat32, {batch, 3})).ok());
    ASSERT_TRUE((*block)->Run(services).ok());
    EXPECT_EQ((*block)->Fetch(out.name)->dims(), (Dims{batch, 2}));
  }
}

TEST(Executor, SaysWhichOperatorLacksAValue) {
  Builder net("net");
  net.Fc(net.Data("x", {3}), 2);
  Scope scope;
  Services services;
  auto block = PreparedBlock::Make(net.Finish()->main, 0, scope);
  ASSERT_TRUE(block.ok());
  EXPECT_THAT(std::string((*block)->Run(services).message()),
              HasSubstr("operator 0 (mul): its input x has no value yet"));
  EXPECT_THAT(std::string((*block)->Feed("x", Tensor(DataType::kFloat32, {2, 4})).message()),
              HasSubstr("is f32[-1, 3] and cannot be fed f32[2, 4]"));
  EXPECT_TRUE(absl::IsNotFound((*block)->Feed("y", Tensor(DataType::kFloat32, {1}))));
}

TEST(Executor, NamesTheOperatorThatMadeANan) {
  Builder net("net");
  net.Activation(net.Data("x", {1}), "log");
  Scope scope;
  Services services;
  auto block = PreparedBlock::Make(net.Finish()->main, 0, scope, {.check_finite = true});
  ASSERT_TRUE((*block)->Feed("x", Floats32({2, 1}, {1, -1})).ok());
  EXPECT_THAT(std::string((*block)->Run(services).message()),
              HasSubstr("operator 0 (log): element 1 of log_0 is"));
}

TEST(Executor, RunsABlockAsLongAsItsConditionHolds) {
  Program program{.id = "loop"};
  for (const Op& op : {FillOp("i", 0, "i64"), FillOp("n", 5, "i64")})
    ASSERT_TRUE(AppendOp(program, 0, op).ok());
  const Op less{.type = "less_than", .inputs = {{"X", {"i"}}, {"Y", {"n"}}}, .outputs = {{"Out", {"more"}}}};
  ASSERT_TRUE(AppendOp(program, 0, less).ok());
  const int body = program.AddBlock(0);
  ASSERT_TRUE(
      AppendOp(program, body, {.type = "increment", .inputs = {{"X", {"i"}}}, .outputs = {{"Out", {"i"}}}})
          .ok());
  ASSERT_TRUE(AppendOp(program, body, less).ok());
  ASSERT_TRUE(
      AppendOp(program, 0,
               {.type = "while", .inputs = {{"Condition", {"more"}}}, .attrs = {{"block", BlockRef{body}}}})
          .ok());
  Scope scope;
  Services services;
  auto block = PreparedBlock::Make(program, 0, scope);
  ASSERT_TRUE(block.ok()) << block.status();
  const absl::Status run = (*block)->Run(services);
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_EQ((*block)->Fetch("i")->data<std::int64_t>()[0], 5);
}

TEST(Executor, RunsAConditionalBlockOnceOrNotAtAll) {
  for (const bool condition : {false, true}) {
    Program program{.id = "if"};
    ASSERT_TRUE(AppendOp(program, 0, FillOp("x", 0)).ok());
    ASSERT_TRUE(AppendOp(program, 0, FillOp("c", condition ? 1 : 0, "bool")).ok());
    const int body = program.AddBlock(0);
    ASSERT_TRUE(
        AppendOp(program, body, {.type = "increment", .inputs = {{"X", {"x"}}}, .outputs = {{"Out", {"x"}}}})
            .ok());
    ASSERT_TRUE(AppendOp(program, 0,
                         {.type = "conditional_block",
                          .inputs = {{"Condition", {"c"}}},
                          .attrs = {{"block", BlockRef{body}}}})
                    .ok());
    Scope scope;
    Services services;
    auto block = PreparedBlock::Make(program, 0, scope);
    ASSERT_TRUE(block.ok()) << block.status();
    ASSERT_TRUE((*block)->Run(services).ok());
    EXPECT_EQ((*block)->Fetch("x")->data<float>()[0], condition ? 1 : 0);
  }
}

// Three batches in each pass.
class ThreeBatches final : public BatchSource {
 public:
  absl::Status Next(absl::Span<Tensor* const> fields) override {
    if (batch_ == 3) {
      batch_ = 0;
      ++pass_;
      return absl::OutOfRangeError("the pass has ended");
    }
    *fields[0] = Floats32({2, 1}, {1, 2});
    ++batch_;
    return absl::OkStatus();
  }
  std::int64_t pass() const override { return pass_; }

 private:
  int batch_ = 0;
  std::int64_t pass_ = 0;
};

TEST(Executor, IteratesOverThePassesOfItsData) {
  Program program{.id = "train"};
  program.main().vars.push_back({.name = "seen", .type = {.dims = {1}}, .persistable = true});
  const int body = program.AddBlock(0);
  ASSERT_TRUE(AppendOp(program, body,
                       {.type = "read",
                        .outputs = {{"Out", {"x"}}},
                        .attrs = {{"sources", Strings{"f"}},
                                  {"batch_size", std::int64_t{2}},
                                  {"shapes", Strings{"1"}},
                                  {"types", Strings{"f32"}}}})
                  .ok());
  ASSERT_TRUE(
      AppendOp(program, body, {.type = "mean", .inputs = {{"X", {"x"}}}, .outputs = {{"Out", {"m"}}}}).ok());
  ASSERT_TRUE(AppendOp(program, body,
                       {.type = "elementwise_add",
                        .inputs = {{"X", {"seen"}}, {"Y", {"m"}}},
                        .outputs = {{"Out", {"seen"}}}})
                  .ok());
  ASSERT_TRUE(AppendOp(program, 0,
                       {.type = "iterate", .attrs = {{"block", BlockRef{body}}, {"passes", std::int64_t{4}}}})
                  .ok());
  Scope scope;
  scope.Put("seen", Floats32({1}, {0}));
  ThreeBatches batches;
  Services services{.batches = &batches};
  auto block = PreparedBlock::Make(program, 0, scope);
  ASSERT_TRUE(block.ok()) << block.status();
  const absl::Status run = (*block)->Run(services);
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_EQ(scope.FindTensor("seen")->data<float>()[0], 4 * 3 * 1.5F);
}

TEST(Executor, RefusesAProgramWhoseOperatorsDoNotFit) {
  Scope scope;
  Program program{.id = "bad"};
  program.main().ops = {{.type = "no_such_operator"}};
  EXPECT_THAT(std::string(PreparedBlock::Make(program, 0, scope).status().message()),
              HasSubstr("there is no operator no_such_operator"));
  program.main().vars = {{.name = "x", .type = {.dims = {2, 3}}},
                         {.name = "y", .type = {.dims = {4, 5}}},
                         {.name = "z", .type = {.dims = {2, 5}}}};
  program.main().ops = {{.type = "mul", .inputs = {{"X", {"x"}}, {"Y", {"y"}}}, .outputs = {{"Out", {"z"}}}}};
  EXPECT_THAT(std::string(PreparedBlock::Make(program, 0, scope).status().message()),
              HasSubstr("are not as many as the rows of Y"));
  program.main().ops = {{.type = "mean", .inputs = {{"X", {"x"}}}, .outputs = {{"Out", {"y"}}}}};
  EXPECT_THAT(std::string(PreparedBlock::Make(program, 0, scope).status().message()),
              HasSubstr("it makes f32[1] of y, which is declared as f32[4, 5]"));
}

TEST(CloneForTest, LeavesOutWhatTrains) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref label = net.Data("label", {1}, DataType::kInt64);
  const Ref out = net.Fc(net.Dropout(net.BatchNorm(net.Fc(x, 8)), 0.5), 2);
  const Ref loss = net.Mean(net.SoftmaxWithCrossEntropy(out, label));
  net.Minimize(loss, {.update = Adam()});
  ASSERT_TRUE(net.Finish().ok()) << net.Finish().status();
  Scope scope;
  Services services;
  ASSERT_TRUE(RunOnce(net.Finish()->startup, scope, services).ok());
  auto train = PreparedBlock::Make(net.Finish()->main, 0, scope);
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE((*train)->Feed("x", Floats32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})).ok());
  ASSERT_TRUE((*train)->Feed("label", Whole({2, 1}, {0, 1})).ok());
  ASSERT_TRUE((*train)->Run(services).ok());
  EXPECT_NE(scope.FindTensor("batch_norm_0.mean")->data<float>()[0], 0);
  const Tensor before = scope.FindTensor("fc_0.w_0")->Clone();
  auto test = PreparedBlock::Make(CloneForTest(net.Finish()->main), 0, scope);
  ASSERT_TRUE(test.ok()) << test.status();
  std::vector<float> first;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*test)->Feed("x", Floats32({1, 4}, {1, 2, 3, 4})).ok());
    ASSERT_TRUE((*test)->Feed("label", Whole({1, 1}, {0})).ok());
    ASSERT_TRUE((*test)->Run(services).ok());
    const Tensor result = *(*test)->Fetch(out.name);
    if (i == 1) {
      EXPECT_EQ(first, std::vector<float>(result.data<float>(), result.data<float>() + 2));
    }
    first.assign(result.data<float>(), result.data<float>() + 2);
  }
  EXPECT_EQ(0, std::memcmp(before.raw(), scope.FindTensor("fc_0.w_0")->raw(), before.bytes()));
}

}  // namespace
}  // namespace trainyard::graph
