// Tensors for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "graph/kernel/random.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

template <typename T>
Tensor Filled(DataType type, Dims dims, const std::vector<T>& values) {
  Tensor tensor(type, std::move(dims));
  TY_CHECK(tensor.span<T>().size() == values.size(), "there is a value for each element");
  std::copy(values.begin(), values.end(), tensor.span<T>().begin());
  return tensor;
}

inline Tensor F32(Dims dims, const std::vector<float>& values) {
  return Filled<float>(DataType::kFloat32, std::move(dims), values);
}
inline Tensor I64(Dims dims, const std::vector<std::int64_t>& values) {
  return Filled<std::int64_t>(DataType::kInt64, std::move(dims), values);
}
inline Tensor Bool(bool value) {
  Tensor tensor(DataType::kBool, {1});
  tensor.data<bool>()[0] = value;
  return tensor;
}
inline SparseRows Sparse(std::int64_t height, std::vector<std::int64_t> rows, Tensor value) {
  return {.height = height, .rows = std::move(rows), .value = std::move(value)};
}

// The same numbers for the same seed, in [low, high).
inline Tensor RandomTensor(const Dims& dims, std::uint64_t seed, double low = -1, double high = 1) {
  Tensor tensor(DataType::kFloat32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    tensor.data<float>()[i] =
        static_cast<float>(low + (high - low) * UniformAt(seed, 0, static_cast<std::uint64_t>(i)));
  }
  return tensor;
}

// Each number once, `step` apart and around 0, in an order that looks random: nothing ties, and nothing is
// nearer to 0 than half a step.
inline Tensor Shuffled(const Dims& dims, std::uint64_t seed, double step = 0.1) {
  Tensor tensor(DataType::kFloat32, dims);
  const auto values = tensor.span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<double>(i / 2) + 0.5;
    values[i] = static_cast<float>((i % 2 == 0 ? place : -place) * step);
  }
  for (std::size_t i = values.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(UniformAt(seed, 0, i) * static_cast<double>(i));
    std::swap(values[i - 1], values[std::min(other, i - 1)]);
  }
  return tensor;
}

template <typename T>
std::vector<T> ValuesOf(const Tensor& tensor) {
  return {tensor.span<T>().begin(), tensor.span<T>().end()};
}

inline void ExpectNear(const Tensor& tensor, const std::vector<float>& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(tensor.span<float>().size(), wanted.size()) << Print(tensor.dims());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(tensor.span<float>()[i], wanted[i], tolerance * std::max(1.0F, std::abs(wanted[i])))
        << "element " << i << " of " << Print(tensor.dims());
  }
}

// The sparse rows as the whole matrix; of a dense value itself.
inline Tensor WholeOf(const Value& value) {
  if (const auto* dense = std::get_if<Tensor>(&value)) return *dense;
  const auto& sparse = std::get<SparseRows>(value);
  Tensor whole(DataType::kFloat32, sparse.WholeDims());
  const std::int64_t width = whole.dims().Count(1, whole.dims().rank());
  for (std::size_t i = 0; i < sparse.rows.size(); ++i) {
    for (std::int64_t k = 0; k < width; ++k) {
      whole.data<float>()[sparse.rows[i] * width + k] +=
          sparse.value.data<float>()[static_cast<std::int64_t>(i) * width + k];
    }
  }
  return whole;
}

}  // namespace trainyard::graph
