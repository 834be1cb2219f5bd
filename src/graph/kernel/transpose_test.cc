#include "graph/kernel/transpose.h"

#include <algorithm>
#include <numeric>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

OpCall Transpose(Tensor x, Ints axis) {
  return {.type = "transpose", .in = {{"X", {std::move(x)}}}, .attrs = {{"axis", std::move(axis)}}};
}

// The slow way: each element by its coordinates.
std::vector<float> Transposed(const Tensor& x, const Ints& axis) {
  std::vector<float> out;
  Dims dims;
  for (const std::int64_t from : axis) dims.Append(x.dims()[static_cast<int>(from)]);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    for (int k = dims.rank() - 1; k >= 0; --k) {
      const int from = static_cast<int>(axis[static_cast<std::size_t>(k)]);
      at += rest % dims[k] * x.dims().Count(from + 1, x.dims().rank());
      rest /= dims[k];
    }
    out.push_back(x.data<float>()[at]);
  }
  return out;
}

TEST(Transpose, TurnsAMatrix) {
  const Tensor out = Output(Transpose(F32({2, 3}, {1, 2, 3, 4, 5, 6}), {1, 0}));
  EXPECT_EQ(out.dims(), (Dims{3, 2}));
  ExpectNear(out, {1, 4, 2, 5, 3, 6}, 0);
}

TEST(Transpose, IsRightForEveryOrderOfDims) {
  for (const Dims& dims : {Dims{}, Dims{5}, Dims{33, 65}, Dims{100, 1}, Dims{3, 1, 4}, Dims{2, 3, 4, 5},
                           Dims{1, 1, 1}, Dims{2, 35, 40, 1}, Dims{3, 0, 2}}) {
    const Tensor x = RandomTensor(dims, 1);
    Ints axis(static_cast<std::size_t>(dims.rank()));
    std::iota(axis.begin(), axis.end(), 0);
    do {
      OpCall call = Transpose(x, axis);
      call.threads = 2;
      ASSERT_EQ(ValuesOf<float>(Output(call)), Transposed(x, axis))
          << Print(dims) << " to " << Print(Dims(axis));
    } while (std::next_permutation(axis.begin(), axis.end()));
  }
}

TEST(Transpose, IsRightOnSeveralThreads) {
  const Tensor x = RandomTensor({3, 201, 303}, 1);
  for (const Ints& axis : {Ints{2, 1, 0}, Ints{0, 2, 1}, Ints{1, 0, 2}}) {
    OpCall call = Transpose(x, axis);
    call.threads = 3;
    ASSERT_EQ(ValuesOf<float>(Output(call)), Transposed(x, axis));
  }
}

TEST(Transpose, HasItsGradient) {
  CheckGradient(Transpose(RandomTensor({3, 4}, 1), {1, 0}));
  CheckGradient(Transpose(RandomTensor({2, 3, 5}, 1), {2, 0, 1}));
  CheckGradient(Transpose(RandomTensor({1, 3, 2, 2}, 1), {0, 2, 3, 1}));
}

}  // namespace
}  // namespace trainyard::graph
