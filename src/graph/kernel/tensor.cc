#include "graph/kernel/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace trainyard::graph {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and what the widest vector instructions want

// Aligned by hand: what glibc's aligned_alloc() gives back when it is freed is too small for the next request
// of the same size, so that a process which makes and frees tensors would grow and grow.
std::shared_ptr<void> Allocate(std::size_t bytes) {
  const std::size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  void* const memory = std::malloc(rounded + kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  std::size_t room = rounded + kAlignment;
  void* aligned = memory;
  TY_CHECK(std::align(kAlignment, rounded, aligned, room) != nullptr, "there is room to align");
  std::memset(aligned, 0, rounded);
  return {aligned, [memory](void*) { std::free(memory); }};
}

}  // namespace

void Tensor::Resize(DataType type, Dims dims) {
  TY_CHECK(dims.Known(), "a tensor's dims are known");
  const std::int64_t count = dims.Count();
  const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(type);
  if (owner_ == nullptr || bytes > room_ || owner_.use_count() > 1) {
    if (owner_ == nullptr || bytes != this->bytes()) {
      owner_ = Allocate(bytes);
      data_ = owner_.get();
      room_ = bytes;
    }
  }
  type_ = type;
  dims_ = std::move(dims);
  count_ = count;
}

Tensor Tensor::Reshaped(Dims dims) const {
  TY_CHECK(dims.Known() && dims.Count() == count_, "a reshaped tensor has as many elements as before");
  Tensor view = *this;
  view.dims_ = std::move(dims);
  return view;
}

Tensor Tensor::Rows(std::int64_t first, std::int64_t count) const {
  TY_CHECK(dims_.rank() >= 1, "a tensor with rows has a dim");
  Dims dims = dims_;
  dims[0] = count;
  return Part(first * dims_.Count(1, dims_.rank()), std::move(dims));
}

Tensor Tensor::Part(std::int64_t first, Dims dims) const {
  const std::int64_t count = dims.Count();
  TY_CHECK(first >= 0 && count >= 0 && first + count <= count_, "a part is inside its tensor");
  Tensor view = *this;
  view.data_ = static_cast<std::byte*>(data_) + static_cast<std::size_t>(first) * SizeOf(type_);
  view.dims_ = std::move(dims);
  view.count_ = count;
  view.room_ = view.bytes();
  return view;
}

Tensor Tensor::Clone() const {
  Tensor copy(type_, dims_);
  if (count_ > 0) std::memcpy(copy.data_, data_, bytes());
  return copy;
}

Tensor Tensor::Over(void* data, DataType type, Dims dims, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.count_ = dims.Count();
  tensor.dims_ = std::move(dims);
  tensor.data_ = data;
  tensor.room_ = tensor.bytes();
  tensor.owner_ = std::move(owner);
  return tensor;
}

Dims SparseRows::WholeDims() const {
  Dims dims = value.dims();
  if (dims.rank() > 0) dims[0] = height;
  return dims;
}

VarType TypeOf(const Value& value) {
  if (const auto* rows = std::get_if<SparseRows>(&value)) {
    return {.kind = VarKind::kSparseRows, .data_type = rows->value.type(), .dims = rows->WholeDims()};
  }
  const auto& tensor = std::get<Tensor>(value);
  return {.kind = VarKind::kDense, .data_type = tensor.type(), .dims = tensor.dims()};
}

}  // namespace trainyard::graph
