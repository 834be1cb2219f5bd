#include "ps/rpc/tensor_parts.h"

#include <algorithm>

#include "base/text.h"
#include "graph/op/check.h"

namespace trainyard::ps {
namespace {

using graph::DataType;
using graph::Dims;
using graph::SparseRows;
using graph::Tensor;
using graph::Value;

struct Segment {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<void> owner;
};

// The memory of a value, in the order in which it travels.
std::vector<Segment> SegmentsOf(const Value& value) {
  const auto of = [](const Tensor& tensor) {
    return Segment{static_cast<std::byte*>(const_cast<void*>(tensor.raw())), tensor.bytes(), tensor.owner()};
  };
  const auto* rows = std::get_if<SparseRows>(&value);
  if (rows == nullptr) return {of(std::get<Tensor>(value))};
  auto* numbers = const_cast<std::int64_t*>(rows->rows.data());
  return {Segment{reinterpret_cast<std::byte*>(numbers), rows->rows.size() * sizeof(std::int64_t), nullptr},
          of(rows->value)};
}

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

}  // namespace

wire::TensorHead HeadOf(const Value& value) {
  const graph::VarType type = graph::TypeOf(value);
  wire::TensorHead head;
  head.set_data_type(static_cast<std::uint32_t>(type.data_type));
  *head.mutable_dims() = {type.dims.begin(), type.dims.end()};
  if (const auto* rows = std::get_if<SparseRows>(&value)) {
    head.set_sparse(true);
    head.set_rows(static_cast<std::int64_t>(rows->rows.size()));
  }
  return head;
}

std::size_t BytesOf(const Value& value) {
  std::size_t bytes = 0;
  for (const Segment& segment : SegmentsOf(value)) bytes += segment.size;
  return bytes;
}

std::vector<Payload> PartOf(const Value& value, std::size_t from, std::size_t size) {
  std::vector<Payload> parts;
  for (Segment& segment : SegmentsOf(value)) {
    if (from >= segment.size) {
      from -= segment.size;
      continue;
    }
    const std::size_t part = std::min(segment.size - from, size);
    if (segment.owner == nullptr) {
      // Nobody keeps the numbers of rows alive for a call that outlives its caller, so it gets its own.
      auto copy = std::make_shared<std::vector<std::byte>>(segment.data + from, segment.data + from + part);
      parts.push_back({copy->data(), part, copy});
    } else {
      parts.push_back({segment.data + from, part, std::move(segment.owner)});
    }
    size -= part;
    from = 0;
    if (size == 0) break;
  }
  return parts;
}

absl::StatusOr<Value> MakeValue(const wire::TensorHead& head, const graph::VarType& expected) {
  if (head.data_type() > static_cast<std::uint32_t>(DataType::kBool) || head.dims_size() > graph::kMaxRank)
    return Wrong("a tensor of an unknown type");
  const auto type = static_cast<DataType>(head.data_type());
  const Dims dims(absl::MakeConstSpan(head.dims().data(), static_cast<std::size_t>(head.dims_size())));
  const graph::VarType found = {.kind = head.sparse() ? graph::VarKind::kSparseRows : graph::VarKind::kDense,
                                .data_type = type,
                                .dims = dims};
  if (!dims.Known() || !graph::Agrees(expected, found)) {
    return absl::InvalidArgumentError(
        StrCat("it is ", graph::Print(found), " and should be ", graph::Print(expected)));
  }
  if (!head.sparse()) return Value(Tensor(type, dims));
  // Rows may come twice, but a message that claims more than there could be is no gradient.
  if (head.rows() < 0 ||
      head.rows() > graph::kMaxElements / std::max<std::int64_t>(1, dims.Count(1, dims.rank())))
    return Wrong("an absurd number of rows");
  SparseRows rows{.height = dims[0]};
  rows.rows.resize(static_cast<std::size_t>(head.rows()));
  Dims value = dims;
  value[0] = head.rows();
  rows.value = Tensor(type, value);
  return Value(std::move(rows));
}

absl::Status PutPart(const Unpacked& message, std::size_t from, std::size_t size, std::size_t offset,
                     Value& value) {
  const std::size_t bytes = BytesOf(value);
  if (offset > bytes || size > bytes - offset)
    return absl::InvalidArgumentError(StrCat(size, " bytes from ", offset, " on do not fit into ", bytes));
  for (const Segment& segment : SegmentsOf(value)) {
    if (offset >= segment.size) {
      offset -= segment.size;
      continue;
    }
    const std::size_t part = std::min(segment.size - offset, size);
    message.Copy(from, segment.data + offset, part);
    from += part;
    size -= part;
    offset = 0;
  }
  return absl::OkStatus();
}

}  // namespace trainyard::ps
