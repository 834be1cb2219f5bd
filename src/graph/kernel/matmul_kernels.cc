// Products of matrices: most of the time of most networks.
#include "base/status.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/onednn.h"

namespace trainyard::graph {
namespace {

// A tensor as a matrix: its first `row_dims` dims are the rows.
MatrixView Flat(const Tensor& tensor, std::int64_t row_dims) {
  const auto split = static_cast<int>(row_dims);
  return Rows(tensor.data<float>(), tensor.dims().Count(0, split),
              tensor.dims().Count(split, tensor.dims().rank()));
}

absl::Status Mul(OpRun& run) {
  const MatrixView x = Flat(run.In("X"), run.op().Int("x_num_col_dims"));
  const MatrixView y = Flat(run.In("Y"), run.op().Int("y_num_col_dims"));
  return Multiply(x, y, {.data = run.Out("Out").data<float>(), .stride = y.cols});
}

absl::Status MulGradient(OpRun& run) {
  const MatrixView x = Flat(run.In("X"), run.op().Int("x_num_col_dims"));
  const MatrixView y = Flat(run.In("Y"), run.op().Int("y_num_col_dims"));
  const MatrixView out = Rows(run.In("Out@GRAD").data<float>(), x.rows, y.cols);
  if (run.HasOut("X@GRAD")) {
    TY_RETURN_IF_ERROR(
        Multiply(out, Transposed(y), {.data = run.Out("X@GRAD").data<float>(), .stride = x.cols}));
  }
  if (run.HasOut("Y@GRAD")) {
    TY_RETURN_IF_ERROR(
        Multiply(Transposed(x), out, {.data = run.Out("Y@GRAD").data<float>(), .stride = y.cols}));
  }
  return absl::OkStatus();
}

}  // namespace

void AddMatmulKernels(KernelTable& table) {
  table.Add("mul", Mul);
  table.Add("mul_grad", MulGradient);
}

}  // namespace trainyard::graph
