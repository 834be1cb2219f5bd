#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

struct Window {
  Ints ksize;
  Ints strides = {1, 1};
  Ints paddings = {0, 0};
};

OpCall Pool(Tensor x, const std::string& type, const Window& window) {
  return {.type = "pool2d",
          .in = {{"X", {std::move(x)}}},
          .attrs = {{"pooling_type", type},
                    {"ksize", window.ksize},
                    {"strides", window.strides},
                    {"paddings", window.paddings}}};
}

OpCall GlobalPool(Tensor x, const std::string& type) {
  return {.type = "pool2d",
          .in = {{"X", {std::move(x)}}},
          .attrs = {{"pooling_type", type}, {"global_pooling", true}}};
}

const std::vector<float> kNine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

std::vector<std::pair<Dims, Window>> Windows() {
  return {
      {{1, 1, 1, 1}, {.ksize = {1, 1}}},
      {{2, 3, 4, 6}, {.ksize = {2, 2}, .strides = {2, 2}}},
      {{1, 2, 7, 35}, {.ksize = {2, 2}, .strides = {2, 2}}},
      {{2, 1, 5, 7}, {.ksize = {3, 3}, .strides = {2, 2}, .paddings = {1, 1}}},
      {{1, 2, 5, 6}, {.ksize = {3, 2}, .strides = {1, 2}, .paddings = {2, 0}}},
      {{1, 1, 6, 5}, {.ksize = {2, 3}, .strides = {3, 3}}},
      {{1, 1, 2, 3}, {.ksize = {3, 5}, .paddings = {2, 4}}},
  };
}

TEST(Pool2d, TakesTheLargestOfEachWindow) {
  ExpectNear(Output(Pool(F32({1, 1, 3, 3}, kNine), "max", {.ksize = {2, 2}})), {5, 6, 8, 9});
}

TEST(Pool2d, NeverTakesThePaddingForTheLargest) {
  const Tensor x = F32({1, 1, 2, 2}, {-1, -2, -3, -4});
  ExpectNear(Output(Pool(x, "max", {.ksize = {2, 2}, .strides = {2, 2}, .paddings = {1, 1}})),
             {-1, -2, -3, -4});
}

TEST(Pool2d, AveragesWhatIsNotPadding) {
  const Tensor x = F32({1, 1, 3, 3}, kNine);
  ExpectNear(Output(Pool(x, "avg", {.ksize = {2, 2}})), {3, 4, 6, 7});
  ExpectNear(Output(Pool(x, "avg", {.ksize = {2, 2}, .strides = {2, 2}, .paddings = {1, 1}})),
             {1, 2.5, 5.5, 7});
}

TEST(Pool2d, LeavesOutWhatTheLastWindowDoesNotReach) {
  ExpectNear(Output(Pool(F32({1, 1, 3, 3}, kNine), "max", {.ksize = {2, 2}, .strides = {2, 2}})), {5});
}

TEST(Pool2d, TakesTheWholePlaneIfGlobal) {
  std::vector<float> two = kNine;
  two.insert(two.end(), 9, -1);
  const Tensor x = F32({1, 2, 3, 3}, two);
  ExpectNear(Output(GlobalPool(x, "max")), {9, -1});
  ExpectNear(Output(GlobalPool(x, "avg")), {5, -1});
  EXPECT_EQ(Output(GlobalPool(x, "avg")).dims(), (Dims{1, 2, 1, 1}));
}

// The fast way for windows of two by two against the way for all windows.
TEST(Pool2d, IsTheSameForTwoByTwoAsForAnyOther) {
  for (const Dims& dims : {Dims{2, 3, 4, 6}, Dims{1, 1, 2, 2}, Dims{3, 2, 9, 41}, Dims{1, 1, 17, 64}}) {
    const Tensor x = RandomTensor(dims, 5);
    const Tensor out = Output(Pool(x, "max", {.ksize = {2, 2}, .strides = {2, 2}}));
    // A padding that only the first window would notice, of an image that is moved by as much.
    Tensor moved(DataType::kFloat32, {dims[0], dims[1], dims[2] + 1, dims[3] + 1});
    std::fill(moved.span<float>().begin(), moved.span<float>().end(), -5.0F);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::int64_t line = i / dims[3];
      const std::int64_t at =
          (line / dims[2] * (dims[2] + 1) + line % dims[2] + 1) * (dims[3] + 1) + i % dims[3] + 1;
      moved.data<float>()[at] = x.data<float>()[i];
    }
    const Tensor other = Output(Pool(moved, "max", {.ksize = {2, 2}, .strides = {2, 2}, .paddings = {1, 1}}));
    for (std::int64_t plane = 0; plane < dims[0] * dims[1]; ++plane) {
      for (std::int64_t y = 0; y < dims[2] / 2; ++y) {
        for (std::int64_t k = 0; k < dims[3] / 2; ++k) {
          EXPECT_EQ(out.data<float>()[(plane * (dims[2] / 2) + y) * (dims[3] / 2) + k],
                    other.data<float>()[(plane * other.dims()[2] + y + 1) * other.dims()[3] + k + 1]);
        }
      }
    }
  }
}

TEST(Pool2dGradient, EqualsDifferences) {
  for (const auto& [dims, window] : Windows()) {
    SCOPED_TRACE(StrCat(Print(dims), " with windows of ", window.ksize[0], " by ", window.ksize[1]));
    CheckGradient(Pool(Shuffled(dims, 3), "max", window));
    CheckGradient(Pool(RandomTensor(dims, 4), "avg", window));
  }
  CheckGradient(GlobalPool(Shuffled({2, 3, 3, 5}, 3), "max"));
  CheckGradient(GlobalPool(RandomTensor({2, 3, 3, 5}, 3), "avg"));
}

TEST(Pool2dGradient, GoesToTheFirstOfEqualOnes) {
  for (const Ints& strides : {Ints{2, 2}, Ints{1, 1}}) {
    const Tensor x = F32({1, 1, 2, 2}, {3, 3, 3, 3});
    OpCall call = Pool(x, "max", {.ksize = {2, 2}, .strides = strides});
    call.type = "pool2d_grad";
    call.in["Out"] = {F32({1, 1, 1, 1}, {3})};
    call.in["Out@GRAD"] = {F32({1, 1, 1, 1}, {7})};
    ExpectNear(Output(call, "X@GRAD"), {7, 0, 0, 0});
  }
}

TEST(Pool2d, IsTheSameOnSeveralThreads) {
  OpCall call = Pool(RandomTensor({8, 16, 33, 31}, 1), "max", {.ksize = {3, 3}, .strides = {2, 2}});
  const std::vector<float> alone = ValuesOf<float>(Output(call));
  call.threads = 3;
  EXPECT_EQ(ValuesOf<float>(Output(call)), alone);
}

}  // namespace
}  // namespace trainyard::graph
