#include "graph/exec/finite.h"

#include <cmath>
#include <limits>

#include "graph/build/builder.h"
#include "graph/kernel/tensor_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FindNonFinite, NamesTheFirstElementThatIsNotFinite) {
  Tensor tensor(DataType::kFloat32, {1000});
  EXPECT_EQ(FindNonFinite("w", tensor), "");
  tensor.data<float>()[0] = std::numeric_limits<float>::max();
  tensor.data<float>()[1] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(FindNonFinite("w", tensor), "");
  tensor.data<float>()[998] = -kInfinity;
  EXPECT_EQ(FindNonFinite("w", tensor), "element 998 of w is -inf");
  tensor.data<float>()[997] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FindNonFinite("w", tensor), "element 997 of w is nan");
  EXPECT_EQ(FindNonFinite("n", Tensor(DataType::kInt64, {3})), "");
}

// Two parameters of one block, each with momentum.
class UpdateGuardTest : public testing::Test {
 protected:
  void Make(OnNonFinite policy) {
    for (const std::string name : {"a", "b"}) {
      for (const std::string& kept : {name, name + ".v"}) {
        program_.main().vars.push_back({.name = kept, .type = {.dims = {2}}, .persistable = true});
        scope_.Put(kept, Tensor(DataType::kFloat32, {2}));
      }
      program_.main().vars.push_back({.name = name + "@GRAD", .type = {.dims = {2}}});
      program_.main().ops.push_back({.type = "momentum",
                                     .inputs = {{"Param", {name}},
                                                {"Velocity", {name + ".v"}},
                                                {"Grad", {name + "@GRAD"}},
                                                {"LearningRate", {"rate"}}},
                                     .outputs = {{"ParamOut", {name}}, {"VelocityOut", {name + ".v"}}},
                                     .attrs = {{"mu", 0.5}},
                                     .role = Role::kOptimize,
                                     .parameter = name});
    }
    program_.main().vars.push_back({.name = "rate", .type = {.dims = {1}}, .persistable = true});
    Tensor rate(DataType::kFloat32, {1});
    rate.data<float>()[0] = 1;
    scope_.Put("rate", rate);
    auto block = PreparedBlock::Make(program_, 0, scope_);
    ASSERT_TRUE(block.ok()) << block.status();
    block_ = *std::move(block);
    guard_ = std::make_unique<UpdateGuard>(program_, 0, *block_, policy);
  }
  std::string Run(float a, float b) {
    for (const auto& [name, value] : {std::pair("a@GRAD", a), std::pair("b@GRAD", b)}) {
      Tensor gradient(DataType::kFloat32, {2});
      gradient.data<float>()[1] = value;
      EXPECT_TRUE(block_->Feed(name, gradient).ok());
    }
    guard_->Remember();
    Services services;
    EXPECT_TRUE(block_->Run(services).ok());
    return guard_->Check();
  }
  float At(const std::string& name) { return scope_.FindTensor(name)->data<float>()[1]; }

  Program program_{.id = "update"};
  Scope scope_;
  std::unique_ptr<PreparedBlock> block_;
  std::unique_ptr<UpdateGuard> guard_;
};

TEST_F(UpdateGuardTest, NamesWhatBecameNonFiniteAndLeavesIt) {
  Make(OnNonFinite::kWarn);
  EXPECT_EQ(Run(1, 1), "");
  EXPECT_EQ(Run(1, kInfinity), "element 1 of b is nan");
  EXPECT_TRUE(std::isnan(At("b")));
}

TEST_F(UpdateGuardTest, UndoesAllThatTheOperatorOfASkippedUpdateWrote) {
  Make(OnNonFinite::kSkip);
  EXPECT_EQ(Run(1, 1), "");
  EXPECT_EQ(Run(1, kInfinity), "element 1 of b is nan");
  EXPECT_EQ(At("a"), -2.5) << "the other parameter learns";
  EXPECT_EQ(At("b"), -1);
  EXPECT_EQ(At("b.v"), 1);
  EXPECT_EQ(Run(0, 1), "");
  EXPECT_EQ(At("b"), -2.5);
}

TEST_F(UpdateGuardTest, LooksAtTheRowsOfASparseGradient) {
  Make(OnNonFinite::kWarn);
  scope_.Get("a").value = Tensor(DataType::kFloat32, {2});
  Variable* const gradient = block_->Find("a@GRAD");
  for (const std::int64_t row : {0, 1}) {
    scope_.Put("a", Tensor(DataType::kFloat32, {2}));
    SparseRows rows{.height = 2, .rows = {row}, .value = Tensor(DataType::kFloat32, {1})};
    rows.value.data<float>()[0] = kInfinity;
    gradient->value = rows;
    std::get<Tensor>(scope_.Get("a").value).data<float>()[row] = kInfinity;
    EXPECT_EQ(guard_->Check(), "element " + std::to_string(row) + " of a is inf");
  }
}

}  // namespace
}  // namespace trainyard::graph
