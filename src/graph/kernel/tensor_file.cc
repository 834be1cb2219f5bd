#include "graph/kernel/tensor_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "base/text.h"

namespace trainyard::graph {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

constexpr std::string_view kMagic = "TYTENSOR";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = kMagic.size() + 3 * sizeof(std::uint32_t);
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);

// The numbers of the types in files, which must never change.
constexpr std::array<std::pair<DataType, std::uint32_t>, 3> kTypes = {
    {{DataType::kFloat32, 1}, {DataType::kInt64, 2}, {DataType::kBool, 3}}};

std::uint32_t NumberOf(DataType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.first == type; })
      ->second;
}

std::optional<DataType> TypeOfNumber(std::uint32_t number) {
  for (const auto& [type, known] : kTypes) {
    if (known == number) return type;
  }
  return std::nullopt;
}

template <typename Number>
void Append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename Number>
Number Take(std::string_view& bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

absl::StatusOr<Dims> TakeDims(std::string_view& bytes, std::uint32_t rank) {
  Dims dims;
  std::uint64_t count = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto size = Take<std::uint64_t>(bytes);
    if (size > kMaxElements || (size > 0 && count > kMaxElements / size))
      return absl::InvalidArgumentError(StrCat("it has a dim of ", size, ", which is too large"));
    if (size > 0) count *= size;
    dims.Append(static_cast<std::int64_t>(size));
  }
  return dims;
}

}  // namespace

std::size_t EncodedBytes(DataType type, const Dims& dims) {
  return kHeadBytes + static_cast<std::size_t>(dims.rank()) * sizeof(std::uint64_t) +
         static_cast<std::size_t>(dims.Count()) * SizeOf(type) + kChecksumBytes;
}

std::string EncodeTensor(const Tensor& tensor) {
  std::string out;
  out.reserve(EncodedBytes(tensor.type(), tensor.dims()));
  out += kMagic;
  Append(out, kVersion);
  Append(out, NumberOf(tensor.type()));
  Append(out, static_cast<std::uint32_t>(tensor.dims().rank()));
  for (const std::int64_t size : tensor.dims()) Append(out, static_cast<std::uint64_t>(size));
  if (!tensor.empty()) out.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  Append(out, Crc32c(out));
  return out;
}

namespace {

// The head, which goes off the bytes.
absl::StatusOr<VarType> TakeType(std::string_view& bytes) {
  if (bytes.size() < kHeadBytes + kChecksumBytes || !bytes.starts_with(kMagic))
    return absl::InvalidArgumentError("it is no tensor file");
  bytes.remove_prefix(kMagic.size());
  const auto version = Take<std::uint32_t>(bytes);
  if (version != kVersion)
    return absl::InvalidArgumentError(
        StrCat("it is of version ", version, ", and ", kVersion, " can be read"));
  const std::optional<DataType> type = TypeOfNumber(Take<std::uint32_t>(bytes));
  const auto rank = Take<std::uint32_t>(bytes);
  if (!type || rank > kMaxRank || bytes.size() < rank * sizeof(std::uint64_t) + kChecksumBytes)
    return absl::InvalidArgumentError("its head is not one of a tensor file");
  absl::StatusOr<Dims> dims = TakeDims(bytes, rank);
  if (!dims.ok()) return dims.status();
  return VarType{.data_type = *type, .dims = *std::move(dims)};
}

}  // namespace

absl::StatusOr<VarType> DecodeTensorType(std::string_view head) { return TakeType(head); }

absl::StatusOr<Tensor> DecodeTensor(std::string_view bytes) {
  const std::string_view whole = bytes;
  const absl::StatusOr<VarType> type = TakeType(bytes);
  if (!type.ok()) return type.status();
  const std::size_t wanted = EncodedBytes(type->data_type, type->dims);
  if (whole.size() != wanted)
    return absl::DataLossError(StrCat("it has ", whole.size(), " bytes and must have ", wanted));
  std::string_view end = whole.substr(whole.size() - kChecksumBytes);
  if (Crc32c(whole.substr(0, whole.size() - kChecksumBytes)) != Take<std::uint32_t>(end))
    return absl::DataLossError("its checksum is not that of its bytes");
  bytes.remove_suffix(kChecksumBytes);
  if (type->data_type == DataType::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    return absl::InvalidArgumentError("a bool in it is neither 0 nor 1");
  Tensor tensor(type->data_type, type->dims);
  if (!tensor.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace trainyard::graph
