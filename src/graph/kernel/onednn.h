// Products of matrices, by oneDNN. It is called for each product anew: on matrices as they lie here that is
// as fast as its prepared primitives are, and faster for small ones.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace trainyard::graph {

// A matrix that lies in rows, each `stride` elements after the one before.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  bool transposed = false;  // it stands for its transpose; rows and cols are those that lie there
};

// Of rows without gaps.
MatrixView Rows(const float* data, std::int64_t rows, std::int64_t cols);
MatrixView Transposed(MatrixView matrix);

// Where a product goes, as rows of which each begins `stride` elements after the one before.
struct ProductPlace {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool add = false;  // to what is there
};

// A stride for rows of `cols` elements at which products are fast.
std::int64_t RoomyStride(std::int64_t cols);

// The product of two matrices that go together, on Threads() threads; on one if a ParallelFor is around it.
// ResourceExhausted: there is no memory for it. FailedPrecondition: the library is not installed.
absl::Status Multiply(const MatrixView& a, const MatrixView& b, const ProductPlace& out);

}  // namespace trainyard::graph
