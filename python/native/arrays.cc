#include "arrays.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "errors.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using graph::DataType;

py::dtype DtypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return py::dtype::of<float>();
    case DataType::kInt64:
      return py::dtype::of<std::int64_t>();
    case DataType::kBool:
      return py::dtype::of<bool>();
  }
  return {};
}

// Equal types need not be one object: numpy has two whole numbers of eight bytes, and makes new types when it
// reads arrays from files.
bool IsOf(const py::dtype& dtype, DataType type) {
  const py::dtype wanted = DtypeOf(type);
  return dtype.kind() == wanted.kind() && dtype.itemsize() == wanted.itemsize() &&
         dtype.byteorder() == wanted.byteorder();
}

}  // namespace

ArrayView ViewOf(const py::array& array) {
  if (array.ndim() > graph::kMaxRank) {
    Raise(absl::InvalidArgumentError(
        StrCat("an array has ", array.ndim(), " dims, and ", graph::kMaxRank, " is the most")));
  }
  ArrayView view{.data = array.data()};
  for (py::ssize_t i = 0; i < array.ndim(); ++i) view.dims.Append(array.shape(i));
  for (const DataType type : {DataType::kFloat32, DataType::kInt64, DataType::kBool}) {
    view.type = type;
    if (IsOf(array.dtype(), type) && (array.flags() & py::array::c_style) != 0) return view;
  }
  throw py::type_error("an array must be contiguous, of float32, int64 or bool");
}

py::array ArrayOf(graph::Tensor tensor) {
  auto kept = std::make_unique<graph::Tensor>(std::move(tensor));
  const graph::Tensor& view = *kept;
  const py::capsule owner(kept.get(), [](void* pointer) { delete static_cast<graph::Tensor*>(pointer); });
  static_cast<void>(kept.release());
  const std::vector<py::ssize_t> shape(view.dims().begin(), view.dims().end());
  return py::array(DtypeOf(view.type()), shape, {}, view.raw(), owner);
}

}  // namespace trainyard::python
