#include "graph/ir/types.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/text.h"

namespace trainyard::graph {

std::string_view Name(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "f32";
    case DataType::kInt64:
      return "i64";
    case DataType::kBool:
      return "bool";
  }
  return "?";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (const DataType type : {DataType::kFloat32, DataType::kInt64, DataType::kBool}) {
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

std::size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
      return 8;
    case DataType::kBool:
      return 1;
  }
  return 0;
}

std::int64_t Dims::Count(int from, int to) const {
  return std::accumulate(begin() + from, begin() + to, std::int64_t{1}, std::multiplies<>());
}

bool Dims::Known() const {
  return std::all_of(begin(), end(), [](std::int64_t size) { return size != kUnknownDim; });
}

Dims Dims::Part(int from, int to) const {
  return Dims(sizes().subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
}

std::string Print(const Dims& dims) {
  std::string text = "[";
  for (const std::int64_t size : dims) StrAppend(text, text.size() > 1 ? ", " : "", size);
  return text + "]";
}

std::string PrintNumber(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string Print(const VarType& type) {
  return StrCat(type.kind == VarKind::kSparseRows ? "sparse " : "", Name(type.data_type), Print(type.dims));
}

}  // namespace trainyard::graph
