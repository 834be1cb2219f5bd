#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

struct Shape {
  Dims input;
  Dims filter;
  Ints strides = {1, 1};
  Ints paddings = {0, 0};
  Ints dilations = {1, 1};
  std::int64_t groups = 1;
};

// Odd sizes, one image, one channel, windows that overhang, groups down to single channels, single elements.
std::vector<Shape> Shapes() {
  return {
      {.input = {1, 1, 5, 5}, .filter = {1, 1, 3, 3}},
      {.input = {2, 3, 7, 6}, .filter = {4, 3, 3, 2}},
      {.input = {2, 2, 5, 4}, .filter = {3, 2, 3, 3}, .paddings = {1, 2}},
      {.input = {1, 2, 9, 8}, .filter = {2, 2, 3, 3}, .strides = {2, 3}, .paddings = {1, 1}},
      {.input = {2, 1, 9, 10}, .filter = {2, 1, 3, 2}, .paddings = {2, 1}, .dilations = {2, 3}},
      {.input = {3, 4, 5, 5}, .filter = {6, 2, 3, 3}, .paddings = {1, 1}, .groups = 2},
      {.input = {2, 3, 4, 4}, .filter = {3, 1, 2, 2}, .strides = {2, 2}, .groups = 3},
      {.input = {2, 5, 3, 3}, .filter = {4, 5, 1, 1}},
      {.input = {2, 4, 3, 4}, .filter = {4, 2, 1, 1}, .groups = 2},
      {.input = {2, 3, 5, 5}, .filter = {2, 3, 1, 1}, .strides = {2, 2}},
      {.input = {1, 1, 2, 2}, .filter = {1, 1, 4, 4}, .paddings = {3, 3}},
      {.input = {1, 2, 3, 3}, .filter = {2, 2, 1, 1}, .paddings = {2, 2}},
  };
}

OpCall Conv(const Shape& shape) {
  return {.type = "conv2d",
          .in = {{"Input", {RandomTensor(shape.input, 1)}}, {"Filter", {RandomTensor(shape.filter, 2)}}},
          .attrs = {{"strides", shape.strides},
                    {"paddings", shape.paddings},
                    {"dilations", shape.dilations},
                    {"groups", shape.groups}}};
}

// By the definition, one product after the other.
std::vector<float> Wanted(const Shape& shape, const Tensor& input, const Tensor& filter, const Dims& out) {
  std::vector<float> wanted;
  const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    const Dims& dims = shape.input;
    if (y < 0 || y >= dims[2] || x < 0 || x >= dims[3]) return 0.0F;
    return input.data<float>()[((n * dims[1] + c) * dims[2] + y) * dims[3] + x];
  };
  const std::int64_t channels = shape.filter[1];
  const std::int64_t filters = shape.filter[0] / shape.groups;
  for (std::int64_t n = 0; n < out[0]; ++n) {
    for (std::int64_t o = 0; o < out[1]; ++o) {
      for (std::int64_t y = 0; y < out[2]; ++y) {
        for (std::int64_t x = 0; x < out[3]; ++x) {
          double sum = 0;
          for (std::int64_t i = 0; i < filter.dims().Count(1, 4); ++i) {
            const std::int64_t kx = i % shape.filter[3];
            const std::int64_t ky = i / shape.filter[3] % shape.filter[2];
            const std::int64_t c = o / filters * channels + i / shape.filter[3] / shape.filter[2];
            const float value = at(n, c, y * shape.strides[0] - shape.paddings[0] + ky * shape.dilations[0],
                                   x * shape.strides[1] - shape.paddings[1] + kx * shape.dilations[1]);
            sum += static_cast<double>(value * filter.data<float>()[o * filter.dims().Count(1, 4) + i]);
          }
          wanted.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return wanted;
}

TEST(Conv2d, IsTheSumOfProductsOfEachPatch) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(StrCat(Print(shape.input), " by ", Print(shape.filter)));
    OpCall call = Conv(shape);
    for (const int threads : {1, 3}) {
      call.threads = threads;
      const Tensor out = Output(call, "Output");
      ExpectNear(out, Wanted(shape, std::get<Tensor>(call.in["Input"][0]),
                             std::get<Tensor>(call.in["Filter"][0]), out.dims()));
    }
  }
}

TEST(Conv2dGradient, EqualsDifferences) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(StrCat(Print(shape.input), " by ", Print(shape.filter)));
    CheckGradient(Conv(shape));
  }
}

TEST(Conv2dGradient, IsComputedForOneInputAlone) {
  CheckGradient(Conv(Shapes()[2]), {.slots = {"Input"}});
  CheckGradient(Conv(Shapes()[2]), {.slots = {"Filter"}});
}

TEST(Conv2dGradient, EqualsDifferencesWhenImagesAreSharedOut) {
  const Shape shape = {.input = {17, 8, 12, 12}, .filter = {4, 4, 5, 5}, .paddings = {2, 2}, .groups = 2};
  OpCall call = Conv(shape);
  call.threads = 3;
  CheckGradient(call, {.most = 40});
}

// The patches of one such image are more than are written out at once. The last band of the second has 256
// patches, for which rows would lie farther apart than for the others.
TEST(Conv2dGradient, EqualsDifferencesForImagesThatAreCutIntoBands) {
  for (const Shape& shape : {Shape{.input = {1, 16, 90, 90}, .filter = {1, 16, 5, 5}, .paddings = {2, 2}},
                             Shape{.input = {1, 160, 133, 8}, .filter = {1, 160, 5, 5}}}) {
    SCOPED_TRACE(StrCat(Print(shape.input), " by ", Print(shape.filter)));
    const OpCall call = Conv(shape);
    CheckGradient(call, {.most = 12});
    const Tensor out = Output(call, "Output");
    ExpectNear(out,
               Wanted(shape, std::get<Tensor>(call.in.at("Input")[0]),
                      std::get<Tensor>(call.in.at("Filter")[0]), out.dims()),
               1e-4);
  }
}

TEST(Conv2d, RunsAgainWithABatchOfAnotherSize) {
  const Shape shape = {.input = {4, 2, 6, 6}, .filter = {3, 2, 3, 3}};
  auto op = OneOp::Make(Conv(shape));
  ASSERT_TRUE(op.ok()) << op.status();
  for (const std::int64_t batch : {4, 1, 7, 0, 4}) {
    Shape other = shape;
    other.input[0] = batch;
    const OpCall call = Conv(other);
    (*op)->Feed(call.in);
    ASSERT_TRUE((*op)->Run().ok());
    ExpectNear(std::get<Tensor>((*op)->Get("Output")), ValuesOf<float>(Output(call, "Output")));
  }
}

TEST(Conv2dGradient, OfNoImagesIsZero) {
  const Tensor gradient = Output({.type = "conv2d_grad",
                                  .in = {{"Input", {Tensor(DataType::kFloat32, {0, 1, 4, 4})}},
                                         {"Filter", {RandomTensor({2, 1, 3, 3}, 1)}},
                                         {"Output@GRAD", {Tensor(DataType::kFloat32, {0, 2, 2, 2})}}}},
                                 "Filter@GRAD");
  EXPECT_EQ(ValuesOf<float>(gradient), std::vector<float>(18, 0.0F));
}

}  // namespace
}  // namespace trainyard::graph
