#include "graph/pass/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build/builder.h"
#include "graph/pass/pass_testing.h"

namespace trainyard::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> BackwardOf(const Program& program) {
  std::vector<std::string> types;
  for (const Op& op : program.main().ops) {
    if (op.role == Role::kBackward) types.push_back(op.type);
  }
  return types;
}

Programs Built(Builder& net) {
  absl::StatusOr<Programs> programs = net.Finish();
  EXPECT_TRUE(programs.ok()) << programs.status();
  return programs.ok() ? *programs : Programs();
}

TEST(AppendBackward, GoesBackThroughEveryOperatorOnce) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref y = net.Data("y", {1});
  const Ref loss = net.Mean(net.SquareErrorCost(net.Fc(x, 1), y));
  Program program = Built(net).main;
  const auto pairs = AppendBackward(program, loss.name);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_THAT(*pairs, ElementsAre(ParameterGradient{"fc_0.w_0", "fc_0.w_0@GRAD"},
                                  ParameterGradient{"fc_0.b_0", "fc_0.b_0@GRAD"}));
  EXPECT_THAT(BackwardOf(program), ElementsAre("fill_constant", "mean_grad", "square_error_cost_grad",
                                               "elementwise_add_grad", "mul_grad"));
  EXPECT_EQ(program.main().Find("fc_0.w_0@GRAD")->type.dims, (Dims{4, 1}));
  // Data gets no gradient, so mul_grad makes none of it.
  EXPECT_TRUE(program.main().ops.back().Out("X@GRAD").empty());
  EXPECT_EQ(program.main().Find("x@GRAD"), nullptr);
}

TEST(AppendBackward, FindsALossWithALongName) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref loss = net.Add(net.Mean(net.Fc(x, 1)), net.Mean(net.Fc(x, 2)));
  ASSERT_GT(loss.name.size(), sizeof(std::string) / 2) << "it must not fit into a string itself";
  Program program = Built(net).main;
  const auto pairs = AppendBackward(program, loss.name);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_EQ(pairs->size(), 4U);
}

TEST(AppendBackward, AddsTheSharesOfAVariableThatIsUsedTwice) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref h = net.Fc(x, 3);
  const Ref left = net.Activation(h, "relu");
  const Ref right = net.Activation(h, "tanh");
  const Ref loss = net.Mean(net.Add(left, right));
  Program program = Built(net).main;
  ASSERT_TRUE(AppendBackward(program, loss.name).ok());
  EXPECT_THAT(BackwardOf(program),
              ElementsAre("fill_constant", "mean_grad", "elementwise_add_grad", "tanh_grad", "relu_grad",
                          "sum", "elementwise_add_grad", "mul_grad"));
  const auto sum = std::find_if(program.main().ops.begin(), program.main().ops.end(),
                                [](const Op& op) { return op.type == "sum"; });
  EXPECT_THAT(sum->In("X"), ElementsAre(h.name + "@GRAD@RENAME@0", h.name + "@GRAD@RENAME@1"));
  EXPECT_EQ(sum->OneOut("Out"), h.name + "@GRAD");
}

TEST(AppendBackward, StopsWhereAVariableIsMarked) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref first = net.Fc(x, 3);
  net.StopGradient(first);
  const Ref loss = net.Mean(net.Fc(first, 1));
  Program program = Built(net).main;
  const auto pairs = AppendBackward(program, loss.name);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  ASSERT_EQ(pairs->size(), 2);
  EXPECT_EQ(pairs->front().parameter, "fc_1.w_0");
  EXPECT_THAT(BackwardOf(program),
              ElementsAre("fill_constant", "mean_grad", "elementwise_add_grad", "mul_grad"));
}

TEST(AppendBackward, MakesTheGradientOfASparseTableSparse) {
  Builder net("net");
  const Ref ids = net.Data("ids", {1}, DataType::kInt64);
  EmbeddingOptions options;
  options.sparse = true;
  options.weight.name = "table";
  const Ref one = net.Embedding(ids, 100, 8, options);
  const Ref two = net.Embedding(ids, 100, 8, options);
  const Ref loss = net.Mean(net.Add(one, two));
  Program program = Built(net).main;
  ASSERT_TRUE(AppendBackward(program, loss.name).ok());
  EXPECT_EQ(program.main().Find("table@GRAD")->type,
            (VarType{.kind = VarKind::kSparseRows, .dims = {100, 8}}));
}

TEST(AppendBackward, FillsZerosForOutputsThatNothingUses) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref h = net.Fc(x, 4);
  Program program = Built(net).main;
  ASSERT_TRUE(AppendOp(program, 0,
                       {.type = "split",
                        .inputs = {{"X", {h.name}}},
                        .outputs = {{"Out", {"left", "right"}}},
                        .attrs = {{"axis", std::int64_t{1}}, {"sections", Ints{1, 3}}}})
                  .ok());
  ASSERT_TRUE(
      AppendOp(program, 0, {.type = "mean", .inputs = {{"X", {"right"}}}, .outputs = {{"Out", {"loss"}}}})
          .ok());
  ASSERT_TRUE(AppendBackward(program, "loss").ok());
  EXPECT_THAT(BackwardOf(program), ElementsAre("fill_constant", "mean_grad", "fill_zeros_like", "split_grad",
                                               "elementwise_add_grad", "mul_grad"));
}

TEST(AppendBackward, SaysWhatIsWrongWithALoss) {
  Builder net("net");
  const Ref x = net.Data("x", {4});
  const Ref h = net.Fc(x, 3);
  const Ref alone = net.Parameter({2}, {.name = "alone"});
  const Ref loss = net.Mean(h);
  Program program = Built(net).main;
  EXPECT_THAT(std::string(AppendBackward(program, h.name).status().message()),
              HasSubstr("must be one number; take its mean"));
  EXPECT_THAT(std::string(AppendBackward(program, "nothing").status().message()),
              HasSubstr("no variable nothing"));
  EXPECT_THAT(std::string(AppendBackward(program, loss.name, {.parameters = {"alone"}}).status().message()),
              HasSubstr("does not depend on the parameter alone"));
}

}  // namespace
}  // namespace trainyard::graph
