#include "graph/op/infer.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/ir/wrong.h"

namespace trainyard::graph {
absl::Status ExpectDense(const Typing& typing, std::string_view slot, DataType type) {
  for (int i = 0; i < typing.CountOf(slot); ++i) {
    const VarType& found = typing.In(slot, i);
    if (found.kind != VarKind::kDense || found.data_type != type) {
      return Wrong(slot, " must be dense ", Name(type), " and is ", Print(found));
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectRank(const Typing& typing, std::string_view slot, int rank) {
  if (typing.In(slot).dims.rank() == rank) return absl::OkStatus();
  return Wrong(slot, " must have ", rank, " dims and has ", Print(typing.In(slot).dims));
}

absl::Status ExpectScalar(const Typing& typing, std::string_view slot, DataType type) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, slot, type));
  const Dims& dims = typing.In(slot).dims;
  if (dims.Known() && dims.Count() == 1) return absl::OkStatus();
  return Wrong(slot, " must have one element and is ", Print(dims));
}

absl::Status ExpectSameDims(const Typing& typing, std::string_view a, std::string_view b) {
  if (MayEqual(typing.In(a).dims, typing.In(b).dims)) return absl::OkStatus();
  return Wrong(a, " and ", b, " must have the same dims and have ", Print(typing.In(a).dims), " and ",
               Print(typing.In(b).dims));
}

absl::Status ExpectDims(const Typing& typing, std::string_view slot, const Dims& dims) {
  if (MayEqual(typing.In(slot).dims, dims)) return absl::OkStatus();
  return Wrong(slot, " must be ", Print(dims), " and is ", Print(typing.In(slot).dims));
}

bool MayEqual(std::int64_t a, std::int64_t b) { return a == b || a == kUnknownDim || b == kUnknownDim; }

bool MayEqual(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](std::int64_t x, std::int64_t y) { return MayEqual(x, y); });
}

InferFunction SameAs(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](Typing& typing) {
    typing.SetOut(to, typing.In(from));
    return absl::OkStatus();
  };
}

std::int64_t ProductOf(const Dims& dims, int from, int to) {
  std::int64_t product = 1;
  for (int i = from; i < to; ++i) {
    if (dims[i] == kUnknownDim) return kUnknownDim;
    product *= dims[i];
  }
  return product;
}

}  // namespace trainyard::graph
