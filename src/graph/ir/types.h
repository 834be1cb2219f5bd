// What a variable holds: the words of shapes and element types, shared by programs and tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace trainyard::graph {

enum class DataType : std::uint8_t { kFloat32, kInt64, kBool };

std::string_view Name(DataType type);
std::optional<DataType> ParseDataType(std::string_view name);
std::size_t SizeOf(DataType type);

// How a variable's elements are kept.
enum class VarKind : std::uint8_t {
  kDense,       // all of them
  kSparseRows,  // some rows of a matrix of `dims`, each with its number; a number may come twice
};

inline constexpr std::int64_t kUnknownDim = -1;  // known only when the program runs: the size of a batch

// The sizes of a tensor's dimensions; none at all: a scalar.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  explicit Dims(absl::Span<const std::int64_t> sizes) : sizes_(sizes.begin(), sizes.end()) {}

  int rank() const { return static_cast<int>(sizes_.size()); }
  std::int64_t operator[](int i) const { return sizes_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) { return sizes_[static_cast<std::size_t>(i)]; }
  void Append(std::int64_t size) { sizes_.push_back(size); }
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.end(); }
  absl::Span<const std::int64_t> sizes() const { return sizes_; }

  // The number of elements. Meant for known dims within kMaxElements.
  std::int64_t Count() const { return Count(0, rank()); }
  // The product of the dims [from, to).
  std::int64_t Count(int from, int to) const;
  bool Known() const;
  // The dims [from, to).
  Dims Part(int from, int to) const;

  bool operator==(const Dims&) const = default;

 private:
  absl::InlinedVector<std::int64_t, 4> sizes_;
};

// "[128, -1]"
std::string Print(const Dims& dims);

inline constexpr int kMaxRank = 8;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

struct VarType {
  VarKind kind = VarKind::kDense;
  DataType data_type = DataType::kFloat32;
  Dims dims;
  bool operator==(const VarType&) const = default;
};

// The shortest text that reads back as the number.
std::string PrintNumber(double number);

// "f32[128, 64]", "sparse f32[10000, 32]"
std::string Print(const VarType& type);

}  // namespace trainyard::graph
