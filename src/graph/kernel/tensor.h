// The values of variables while a program runs: dense tensors, and rows of a large one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "base/check.h"
#include "graph/ir/types.h"

namespace trainyard::graph {

// Elements one after the other, the last dim fastest. A copy of a Tensor is another view of the same
// elements.
class Tensor {
 public:
  Tensor() = default;
  // Elements are zero.
  Tensor(DataType type, Dims dims) { Resize(type, std::move(dims)); }

  // Makes room for that type and these dims. The memory that there is stays if its size is the same, also
  // under the views that others have of it; it is used again if it suffices and nobody else has a view.
  // Elements are then what they were.
  void Resize(DataType type, Dims dims);
  // The same memory under other dims with as many elements.
  Tensor Reshaped(Dims dims) const;
  // A view of rows [first, first + count) of dim 0.
  Tensor Rows(std::int64_t first, std::int64_t count) const;
  // A view of `dims` elements from the element `first` on.
  Tensor Part(std::int64_t first, Dims dims) const;
  // Elements of its own.
  Tensor Clone() const;
  // Takes the place of this tensor's elements: the same dims, another memory that `owner` keeps alive.
  static Tensor Over(void* data, DataType type, Dims dims, std::shared_ptr<void> owner);

  DataType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * SizeOf(type_); }
  bool empty() const { return count_ == 0; }

  // T must be the element type: float, std::int64_t or bool.
  template <typename T>
  T* data() {
    CheckType<T>();
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    CheckType<T>();
    return static_cast<const T*>(data_);
  }
  template <typename T>
  absl::Span<T> span() {
    return absl::Span<T>(data<T>(), static_cast<std::size_t>(count_));
  }
  template <typename T>
  absl::Span<const T> span() const {
    return absl::Span<const T>(data<T>(), static_cast<std::size_t>(count_));
  }
  void* raw() { return data_; }
  const void* raw() const { return data_; }
  // Keeps the elements alive, for whom hands their address to a library.
  const std::shared_ptr<void>& owner() const { return owner_; }

 private:
  template <typename T>
  void CheckType() const {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, bool>);
    constexpr DataType wanted = std::is_same_v<T, float>          ? DataType::kFloat32
                                : std::is_same_v<T, std::int64_t> ? DataType::kInt64
                                                                  : DataType::kBool;
    TY_CHECK(type_ == wanted, "a tensor's elements are asked for as another type");
  }

  DataType type_ = DataType::kFloat32;
  Dims dims_ = {0};
  std::int64_t count_ = 0;
  std::size_t room_ = 0;  // bytes behind data_ that are ours
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

// Some rows of a matrix with `height` rows: row rows[i] is value's row i. A row may come twice: its values
// then add.
struct SparseRows {
  std::int64_t height = 0;
  std::vector<std::int64_t> rows;
  Tensor value;  // [rows.size(), the other dims...]

  // Dims of the whole matrix.
  Dims WholeDims() const;
};

using Value = std::variant<Tensor, SparseRows>;

VarType TypeOf(const Value& value);

}  // namespace trainyard::graph
