#include <cmath>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

std::vector<bool> Truths(const Tensor& tensor) {
  return std::vector<bool>(tensor.data<bool>(), tensor.data<bool>() + tensor.count());
}

OpCall Fill(Ints shape, double value, std::string dtype) {
  return {.type = "fill_constant",
          .attrs = {{"shape", std::move(shape)}, {"value", value}, {"dtype", std::move(dtype)}}};
}

TEST(FillConstant, FillsWithAnyType) {
  ExpectNear(Output(Fill({2, 1}, -1.5, "f32")), {-1.5F, -1.5F}, 0);
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Fill({2}, 7, "i64"))), (Numbers{7, 7}));
  EXPECT_EQ(Truths(Output(Fill({1}, 1, "bool"))), (std::vector<bool>{true}));
  EXPECT_TRUE(Output(Fill({0, 3}, 1, "f32")).empty());
  ExpectNear(Output(Fill({}, 2, "f32")), {2}, 0);
}

TEST(FillConstant, RefusesAWholeNumberThatIsNone) {
  for (const double value : {1e30, std::nan("")}) EXPECT_FALSE(RunOp(Fill({1}, value, "i64")).ok());
}

TEST(FillZerosLike, FillsWithZerosOfTheSameType) {
  ExpectNear(Output({.type = "fill_zeros_like", .in = {{"X", {F32({2}, {1, 2})}}}}), {0, 0}, 0);
  const Tensor whole = Output({.type = "fill_zeros_like", .in = {{"X", {I64({1}, {5})}}}});
  EXPECT_EQ(ValuesOf<std::int64_t>(whole), (Numbers{0}));
}

TEST(FillZerosLike, OfSparseRowsHasNoRows) {
  const SparseRows x = Sparse(9, {4, 1}, F32({2, 2}, {1, 2, 3, 4}));
  const auto results = RunOp({.type = "fill_zeros_like", .in = {{"X", {x}}}});
  ASSERT_TRUE(results.ok()) << results.status();
  const auto& out = std::get<SparseRows>(results->at("Out")[0]);
  EXPECT_TRUE(out.rows.empty());
  EXPECT_EQ(out.WholeDims(), (Dims{9, 2}));
}

TEST(AssignValue, HasItsValues) {
  const OpCall call = {.type = "assign_value",
                       .attrs = {{"shape", Ints{2, 2}}, {"values", Floats{1, 2.5, -3, 0}}}};
  ExpectNear(Output(call), {1, 2.5F, -3, 0}, 0);
}

struct Random {
  std::string type = "uniform_random";
  Ints shape;
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  int threads = 1;
  std::int64_t seed = 5;
};

std::vector<float> Make(const Random& random, const Services& services = {}) {
  const auto results = RunOp({.type = random.type,
                              .attrs = {{"shape", random.shape},
                                        {"seed", random.seed},
                                        {"offset", random.offset},
                                        {"row_stride", random.stride}},
                              .threads = random.threads},
                             services);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? ValuesOf<float>(std::get<Tensor>(results->at("Out")[0])) : std::vector<float>();
}

class RandomKernels : public testing::TestWithParam<const char*> {};

TEST_P(RandomKernels, GiveASliceTheValuesThatItHasInTheWhole) {
  const std::vector<float> whole = Make({.type = GetParam(), .shape = {30, 7}});
  for (const std::int64_t first : {0, 1, 13}) {
    const std::vector<float> slice = Make({.type = GetParam(), .shape = {5, 7}, .offset = first * 7});
    EXPECT_TRUE(std::equal(slice.begin(), slice.end(), whole.begin() + first * 7)) << "from row " << first;
  }
  const std::vector<float> flat = Make({.type = GetParam(), .shape = {100}, .offset = 51});
  EXPECT_TRUE(std::equal(flat.begin(), flat.end(), whole.begin() + 51));
}

TEST_P(RandomKernels, GiveEveryNthRowTheValuesThatItHasInTheWhole) {
  for (const std::int64_t width : {1, 7, 300}) {
    const std::vector<float> whole = Make({.type = GetParam(), .shape = {30, width}});
    for (const std::int64_t first : {0, 1, 2}) {
      const std::vector<float> part =
          Make({.type = GetParam(), .shape = {10, width}, .offset = first * width, .stride = 3});
      for (std::int64_t row = 0; row < 10; ++row) {
        EXPECT_TRUE(std::equal(part.begin() + row * width, part.begin() + (row + 1) * width,
                               whole.begin() + (first + 3 * row) * width))
            << "row " << row << " of shard " << first;
      }
    }
  }
}

TEST_P(RandomKernels, GiveTheSameValuesOnAnyNumberOfThreads) {
  const std::vector<float> one = Make({.type = GetParam(), .shape = {401, 333}});
  for (const int threads : {2, 3})
    EXPECT_EQ(Make({.type = GetParam(), .shape = {401, 333}, .threads = threads}), one);
}

TEST_P(RandomKernels, TakeTheProgramsSeedIfTheyHaveNone) {
  const Random none = {.type = GetParam(), .shape = {10}, .seed = 0};
  EXPECT_EQ(Make(none, {.seed = 5}), Make({.type = GetParam(), .shape = {10}}));
  EXPECT_NE(Make(none, {.seed = 5}), Make(none, {.seed = 6}));
  EXPECT_EQ(Make({.type = GetParam(), .shape = {10}}, {.seed = 1}),
            Make({.type = GetParam(), .shape = {10}}));
}

INSTANTIATE_TEST_SUITE_P(Both, RandomKernels, testing::Values("uniform_random", "gaussian_random"));

TEST(UniformRandom, IsTheFunctionOfSeedAndElementThatItPromises) {
  const std::vector<float> values = Make({.shape = {1000}, .offset = 17});
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<float>(-1.0 + 2.0 * UniformAt(5, 0, i + 17)));
}

TEST(GaussianRandom, IsTheFunctionOfSeedAndElementThatItPromises) {
  const OpCall call = {
      .type = "gaussian_random",
      .attrs = {{"shape", Ints{100}}, {"seed", std::int64_t{5}}, {"mean", 3.0}, {"std", 0.5}}};
  const Tensor out = Output(call);
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_FLOAT_EQ(out.span<float>()[i], static_cast<float>(3 + 0.5 * NormalAt(5, 0, i)));
}

}  // namespace
}  // namespace trainyard::graph
