// What moves elements and does not compute.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "base/text.h"
#include "base/whole_number.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/sparse.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/transpose.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

// Bytes that lie in rows of a larger tensor: `width` of each row, the rows `stride` apart.
struct Strip {
  std::byte* data;
  std::int64_t stride;
};

// Copies `width` bytes of each row; nothing if they are there already.
void CopyStrip(Strip from, Strip to, std::int64_t width, std::int64_t rows) {
  if (width == 0 || (from.data == to.data && from.stride == to.stride)) return;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain * 4 / width);
  ParallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      std::memcpy(to.data + row * to.stride, from.data + row * from.stride, static_cast<std::size_t>(width));
  });
}

std::byte* BytesOf(const Tensor& tensor) { return static_cast<std::byte*>(const_cast<void*>(tensor.raw())); }

// A whole, and parts of it side by side along dim `axis`.
class Parts {
 public:
  Parts(const Tensor& whole, std::int64_t axis)
      : rows_(whole.dims().Count(0, static_cast<int>(axis))),
        next_{BytesOf(whole), rows_ == 0 ? 0 : static_cast<std::int64_t>(whole.bytes()) / rows_} {}

  void CopyIn(const Tensor& part) {
    if (rows_ == 0) return;
    const std::int64_t width = static_cast<std::int64_t>(part.bytes()) / rows_;
    CopyStrip({BytesOf(part), rows_ == 1 ? next_.stride : width}, next_, width, rows_);
    next_.data += width;
  }
  void CopyOut(Tensor& part) {
    if (rows_ == 0) return;
    const std::int64_t width = static_cast<std::int64_t>(part.bytes()) / rows_;
    CopyStrip(next_, {BytesOf(part), rows_ == 1 ? next_.stride : width}, width, rows_);
    next_.data += width;
  }

 private:
  std::int64_t rows_;
  Strip next_;
};

// An output that is one of the inputs has taken the dims that it is to have, and the input's are gone.
absl::Status Overwritten() {
  return absl::InvalidArgumentError("it writes over its own input: give the output a variable of its own");
}

absl::Status Join(OpRun& run, std::string_view from, std::string_view to) {
  std::int64_t count = 0;
  for (int i = 0; i < run.CountIn(from); ++i) count += run.In(from, i).count();
  if (count != run.Out(to).count()) return Overwritten();
  Parts parts(run.Out(to), run.op().Int("axis"));
  for (int i = 0; i < run.CountIn(from); ++i) parts.CopyIn(run.In(from, i));
  return absl::OkStatus();
}

absl::Status Cut(OpRun& run, std::string_view from, std::string_view to) {
  std::int64_t count = 0;
  for (int i = 0; i < run.CountOut(to); ++i) count += run.Out(to, i).count();
  if (run.HasOut(to) && count != run.In(from).count()) return Overwritten();
  Parts parts(run.In(from), run.op().Int("axis"));
  for (int i = 0; i < run.CountOut(to); ++i) parts.CopyOut(run.Out(to, i));
  return absl::OkStatus();
}

absl::Status Concat(OpRun& run) { return Join(run, "X", "Out"); }
absl::Status ConcatGradient(OpRun& run) { return Cut(run, "Out@GRAD", "X@GRAD"); }
absl::Status Split(OpRun& run) { return Cut(run, "X", "Out"); }
absl::Status SplitGradient(OpRun& run) {
  return run.HasOut("X@GRAD") ? Join(run, "Out@GRAD", "X@GRAD") : absl::OkStatus();
}

absl::Status SplitByRef(OpRun& run) {
  // Not a reference: the first part may take X's own place.
  const Tensor x = run.In("X").Reshaped(run.In("X").dims());
  std::int64_t row = 0;
  for (int i = 0; i < run.CountOut("Out"); ++i) {
    Tensor& out = run.Out("Out", i);
    const std::int64_t rows = out.dims()[0];
    if (row + rows > x.dims()[0]) return Overwritten();
    out = x.Rows(row, rows);
    row += rows;
  }
  return absl::OkStatus();
}

absl::Status Reshape(OpRun& run) {
  Tensor& out = run.Out("Out");
  out = run.In("X").Reshaped(out.dims());
  return absl::OkStatus();
}

absl::Status ReshapeGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  Tensor& gradient = run.Out("X@GRAD");
  gradient = run.In("Out@GRAD").Reshaped(gradient.dims());
  return absl::OkStatus();
}

absl::Status Transpose(OpRun& run) {
  if (run.In("X").raw() == run.Out("Out").raw() && !run.In("X").empty()) return Overwritten();
  TransposeDims(run.In("X"), run.op().IntList("axis"), run.Out("Out"));
  return absl::OkStatus();
}

absl::Status TransposeGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  if (run.In("Out@GRAD").raw() == run.Out("X@GRAD").raw() && !run.In("X").empty()) return Overwritten();
  const Ints& axis = run.op().IntList("axis");
  Ints back(axis.size());
  for (std::size_t i = 0; i < axis.size(); ++i)
    back[static_cast<std::size_t>(axis[i])] = static_cast<std::int64_t>(i);
  TransposeDims(run.In("Out@GRAD"), back, run.Out("X@GRAD"));
  return absl::OkStatus();
}

absl::Status ToWholeNumbers(const Tensor& x, Tensor& out) {
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::optional<std::int64_t> number = WholeNumber(static_cast<double>(x.data<float>()[i]));
    if (!number) {
      return absl::InvalidArgumentError(StrCat(
          "element ", i, " is ", PrintNumber(static_cast<double>(x.data<float>()[i])), ", which is no i64"));
    }
    out.data<std::int64_t>()[i] = *number;
  }
  return absl::OkStatus();
}

template <typename From, typename To>
absl::Status Convert(const Tensor& x, Tensor& out) {
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, std::int64_t>) {
    return ToWholeNumbers(x, out);
  } else {
    const auto convert = [](From value) {
      if constexpr (std::is_same_v<To, bool>) {
        return value != From{};
      } else {
        return static_cast<To>(value);
      }
    };
    std::transform(x.data<From>(), x.data<From>() + x.count(), out.data<To>(), convert);
    return absl::OkStatus();
  }
}

template <typename From>
absl::Status ConvertFrom(const Tensor& x, Tensor& out) {
  switch (out.type()) {
    case DataType::kFloat32:
      return Convert<From, float>(x, out);
    case DataType::kInt64:
      return Convert<From, std::int64_t>(x, out);
    case DataType::kBool:
      return Convert<From, bool>(x, out);
  }
  return absl::InternalError("a tensor has a type that is none");
}

absl::Status Cast(OpRun& run) {
  const Tensor& x = run.In("X");
  switch (x.type()) {
    case DataType::kFloat32:
      return ConvertFrom<float>(x, run.Out("Out"));
    case DataType::kInt64:
      return ConvertFrom<std::int64_t>(x, run.Out("Out"));
    case DataType::kBool:
      return ConvertFrom<bool>(x, run.Out("Out"));
  }
  return absl::InternalError("a tensor has a type that is none");
}

void CopyElements(const Tensor& from, Tensor& to) {
  constexpr std::int64_t kRow = 4096;  // bytes
  const auto bytes = static_cast<std::int64_t>(from.bytes());
  CopyStrip({BytesOf(from), kRow}, {BytesOf(to), kRow}, kRow, bytes / kRow);
  const std::int64_t done = bytes / kRow * kRow;
  CopyStrip({BytesOf(from) + done, kRow}, {BytesOf(to) + done, kRow}, bytes - done, 1);
}

absl::Status Assign(OpRun& run) {
  if (!run.IsSparse("X")) {
    CopyElements(run.In("X"), run.Out("Out"));
    return absl::OkStatus();
  }
  ShapeLike(run.InRows("X"), run.OutRows("Out"));
  CopyElements(run.InRows("X").value, run.OutRows("Out").value);
  return absl::OkStatus();
}

}  // namespace

void AddShapeKernels(KernelTable& table) {
  table.Add("concat", Concat);
  table.Add("concat_grad", ConcatGradient);
  table.Add("split", Split);
  table.Add("split_grad", SplitGradient);
  table.Add("split_byref", SplitByRef);
  table.Add("reshape", Reshape);
  table.Add("reshape_grad", ReshapeGradient);
  table.Add("transpose", Transpose);
  table.Add("transpose_grad", TransposeGradient);
  table.Add("cast", Cast);
  table.Add("assign", Assign);
}

}  // namespace trainyard::graph
