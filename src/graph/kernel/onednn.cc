#include "graph/kernel/onednn.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/tensor.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"
#include "oneapi/dnnl/dnnl.h"
#include "oneapi/dnnl/dnnl_version.h"

namespace trainyard::graph {
namespace {

using Product = decltype(&dnnl_sgemm);

// The library, and OpenCL behind it, would be part of every process that has this program's file, and few of
// them multiply matrices: so it is loaded when the first product is asked for, and stays.
absl::StatusOr<Product> LoadProduct() {
  const std::string file = StrCat("libdnnl.so.", DNNL_VERSION_MAJOR);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* product = library != nullptr ? ::dlsym(library, "dnnl_sgemm") : nullptr;
  if (product != nullptr) return reinterpret_cast<Product>(product);
  return absl::FailedPreconditionError(StrCat("products of matrices need oneDNN, and ", file,
                                              " cannot be loaded (", ::dlerror(),
                                              "): install Debian's package libdnnl", DNNL_VERSION_MAJOR));
}

const absl::StatusOr<Product>& OneDnnProduct() {
  static const absl::StatusOr<Product> product = LoadProduct();
  return product;
}

// Rows that begin a power of two after each other fall on the same few lines of the processor's cache, and
// the library reads matrices of a middling size where they lie: a product then takes up to three times as
// long. So they are copied to rows that lie a little farther apart first. The numbers are measured.
constexpr std::int64_t kCrowded = 512;         // elements from row to row, or a multiple of it
constexpr std::int64_t kCrowdedForSums = 256;  // the same where the rows of both matrices are added up
constexpr std::int64_t kGap = 16;              // between the copied rows
constexpr std::int64_t kPanel = 512;           // columns that are copied at once, to stay near the processor
constexpr std::int64_t kFewest = 16;  // rows or columns that a copy is multiplied with, or it does not pay

std::int64_t RowsOf(const MatrixView& matrix) { return matrix.transposed ? matrix.cols : matrix.rows; }
std::int64_t ColsOf(const MatrixView& matrix) { return matrix.transposed ? matrix.rows : matrix.cols; }

// A copy in `room`, its rows far enough apart.
MatrixView Spread(const MatrixView& matrix, Tensor& room) {
  MatrixView copy = matrix;
  copy.stride = RoomyStride(matrix.cols);
  room.Resize(DataType::kFloat32, {matrix.rows * copy.stride});
  float* to = room.data<float>();
  ParallelFor(matrix.rows, kGrain / matrix.cols + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      std::copy_n(matrix.data + row * matrix.stride, matrix.cols, to + row * copy.stride);
  });
  copy.data = to;
  return copy;
}

absl::Status Call(const MatrixView& a, const MatrixView& b, const ProductPlace& out) {
  const absl::StatusOr<Product>& product = OneDnnProduct();
  if (!product.ok()) [[unlikely]]
    return product.status();
  const dnnl_status_t status =
      (*product)(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', RowsOf(a), ColsOf(b), ColsOf(a), 1.0F,
                 a.data, a.stride, b.data, b.stride, out.add ? 1.0F : 0.0F, out.data, out.stride);
  if (status == dnnl_success) [[likely]]
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("the product of a [", RowsOf(a), ", ", ColsOf(a), "] and a [", RowsOf(b), ", ", ColsOf(b),
             "] matrix failed with oneDNN's code ", static_cast<int>(status), ": there may be no memory"));
}

absl::Status CallInPanels(const MatrixView& a, const MatrixView& b, const ProductPlace& out) {
  thread_local Tensor room;
  for (std::int64_t first = 0; first < b.cols; first += kPanel) {
    MatrixView panel = b;
    panel.data = b.data + first;
    panel.cols = std::min(kPanel, b.cols - first);
    TY_RETURN_IF_ERROR(
        Call(a, Spread(panel, room), {.data = out.data + first, .stride = out.stride, .add = out.add}));
  }
  return absl::OkStatus();
}

absl::Status CallForSums(MatrixView a, MatrixView b, const ProductPlace& out) {
  thread_local Tensor room_of_a;
  thread_local Tensor room_of_b;
  const bool spread_a = a.stride % kCrowdedForSums == 0 && ColsOf(b) >= kFewest;
  const bool spread_b = b.stride % kCrowdedForSums == 0 && RowsOf(a) >= kFewest;
  if (spread_a) a = Spread(a, room_of_a);
  if (spread_b) b = Spread(b, room_of_b);
  return Call(a, b, out);
}

}  // namespace

MatrixView Rows(const float* data, std::int64_t rows, std::int64_t cols) {
  return {.data = data, .rows = rows, .cols = cols, .stride = cols};
}

MatrixView Transposed(MatrixView matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

std::int64_t RoomyStride(std::int64_t cols) { return cols % kCrowdedForSums == 0 ? cols + kGap : cols; }

absl::Status Multiply(const MatrixView& a, const MatrixView& b, const ProductPlace& out) {
  TY_CHECK(ColsOf(a) == RowsOf(b), "matrices that are multiplied go together");
  if (RowsOf(a) == 0 || ColsOf(b) == 0) return absl::OkStatus();
  if (ColsOf(a) == 0) {  // a sum of nothing; the library leaves the place as it is
    for (std::int64_t row = 0; row < RowsOf(a) && !out.add; ++row)
      std::fill_n(out.data + row * out.stride, ColsOf(b), 0.0F);
    return absl::OkStatus();
  }
  if (b.transposed) return Call(a, b, out);
  if (a.transposed) return CallForSums(a, b, out);
  if (b.stride % kCrowded == 0 && a.rows >= kFewest) return CallInPanels(a, b, out);
  return Call(a, b, out);
}

}  // namespace trainyard::graph
