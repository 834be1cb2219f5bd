#include "graph/kernel/onednn.h"

#include <vector>

#include <gtest/gtest.h>

#include "graph/kernel/kernel_testing.h"

namespace trainyard::graph {
namespace {

float At(const MatrixView& matrix, std::int64_t row, std::int64_t col) {
  return matrix.transposed ? matrix.data[col * matrix.stride + row] : matrix.data[row * matrix.stride + col];
}

TEST(Multiply, TakesEitherMatrixTransposedAndWithGaps) {
  const Tensor left = RandomTensor({7, 9}, 1);
  const Tensor right = RandomTensor({9, 11}, 2);
  for (const bool turn_left : {false, true}) {
    for (const bool turn_right : {false, true}) {
      MatrixView a = {.data = left.data<float>(), .rows = 5, .cols = 3, .stride = 9};
      MatrixView b = {.data = right.data<float>(), .rows = 3, .cols = 4, .stride = 11};
      if (turn_left) a = Transposed({.data = a.data, .rows = 3, .cols = 5, .stride = 9});
      if (turn_right) b = Transposed({.data = b.data, .rows = 4, .cols = 3, .stride = 11});
      std::vector<float> out(5 * 6, 9.0F);
      ASSERT_TRUE(Multiply(a, b, {.data = out.data(), .stride = 6}).ok());
      for (std::int64_t row = 0; row < 5; ++row) {
        for (std::int64_t col = 0; col < 4; ++col) {
          float wanted = 0;
          for (std::int64_t k = 0; k < 3; ++k) wanted += At(a, row, k) * At(b, k, col);
          EXPECT_NEAR(out[static_cast<std::size_t>(row * 6 + col)], wanted, 1e-5);
        }
        EXPECT_EQ(out[static_cast<std::size_t>(row * 6 + 4)], 9) << "beyond the columns nothing is written";
      }
    }
  }
}

// Rows a power of two apart are copied first, some columns at a time.
TEST(Multiply, IsTheSameForRowsAPowerOfTwoApart) {
  for (const std::int64_t size : {256, 512, 1024}) {
    const Tensor left = RandomTensor({size, 65}, 1);
    const Tensor right = RandomTensor({65, size + 3}, 2);
    const MatrixView sums = Transposed({.data = left.data<float>(), .rows = 65, .cols = 64, .stride = size});
    const MatrixView plain = {.data = left.data<float>(), .rows = 64, .cols = 65, .stride = 65};
    for (const std::int64_t stride : {size, size + 3}) {
      const MatrixView b = {.data = right.data<float>(), .rows = 65, .cols = size, .stride = stride};
      if (65 * stride > right.count()) continue;
      for (const MatrixView& a : {plain, sums}) {
        std::vector<float> out(static_cast<std::size_t>(64 * size), 1.0F);
        ASSERT_TRUE(Multiply(a, b, {.data = out.data(), .stride = size, .add = true}).ok());
        for (std::int64_t i = 0; i < 64 * size; i += 101) {
          double wanted = 1;
          for (std::int64_t k = 0; k < 65; ++k)
            wanted += static_cast<double>(At(a, i / size, k)) * static_cast<double>(At(b, k, i % size));
          ASSERT_NEAR(out[static_cast<std::size_t>(i)], wanted, 1e-4)
              << "element " << i << " of rows of " << size;
        }
      }
    }
  }
}

TEST(Multiply, AddsToWhatIsThereIfAsked) {
  const std::vector<float> a = {1, 2};
  const std::vector<float> b = {3, 4};
  float out = 100;
  ASSERT_TRUE(
      Multiply(Rows(a.data(), 1, 2), Rows(b.data(), 2, 1), {.data = &out, .stride = 1, .add = true}).ok());
  EXPECT_EQ(out, 111);
}

TEST(Multiply, ASumOfNothingIsZero) {
  std::vector<float> out = {7, 7, 7, 7};
  ASSERT_TRUE(
      Multiply(Rows(out.data(), 2, 0), Rows(out.data(), 0, 2), {.data = out.data(), .stride = 2}).ok());
  EXPECT_EQ(out, std::vector<float>(4, 0.0F));
  ASSERT_TRUE(
      Multiply(Rows(out.data(), 0, 2), Rows(out.data(), 2, 2), {.data = out.data(), .stride = 2}).ok());
}

}  // namespace
}  // namespace trainyard::graph
