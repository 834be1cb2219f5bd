#include "master/variables.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::master {
namespace {

using graph::Value;

ps::wire::TensorHead TensorHeadOf(const wire::Variable& variable) {
  ps::wire::TensorHead head;
  head.set_data_type(variable.data_type());
  *head.mutable_dims() = variable.dims();
  head.set_sparse(variable.sparse());
  head.set_rows(variable.rows());
  return head;
}

}  // namespace

wire::Variable HeadOf(const std::string& name, const Value& value) {
  const ps::wire::TensorHead head = ps::HeadOf(value);
  wire::Variable variable;
  variable.set_name(name);
  variable.set_data_type(head.data_type());
  *variable.mutable_dims() = head.dims();
  variable.set_sparse(head.sparse());
  variable.set_rows(head.rows());
  return variable;
}

std::int64_t BytesOf(const NamedValues& values) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : values) bytes += ps::BytesOf(value);
  return static_cast<std::int64_t>(bytes);
}

std::vector<ps::Payload> PartOf(const NamedValues& values, std::int64_t offset) {
  std::vector<ps::Payload> part;
  auto skip = static_cast<std::size_t>(offset);
  auto left = static_cast<std::size_t>(ps::kFrameBytes);
  for (const auto& [name, value] : values) {
    const std::size_t bytes = ps::BytesOf(value);
    if (skip >= bytes) {
      skip -= bytes;
      continue;
    }
    const std::size_t size = std::min(bytes - skip, left);
    for (ps::Payload& payload : ps::PartOf(value, skip, size)) part.push_back(std::move(payload));
    left -= size;
    skip = 0;
    if (left == 0) break;
  }
  return part;
}

absl::Status Assembly::Begin(const google::protobuf::RepeatedPtrField<wire::Variable>& heads,
                             std::int64_t total, const NamedTypes& expected) {
  *this = Assembly();
  std::set<std::string> names;
  for (const wire::Variable& head : heads) {
    const auto found = expected.find(head.name());
    if (found == expected.end())
      return absl::InvalidArgumentError(
          StrCat("the model has no variable ", Shortened(Escaped(head.name()), 128), " to be told of"));
    if (!names.insert(head.name()).second)
      return absl::InvalidArgumentError(StrCat("variable ", head.name(), " comes twice"));
    graph::VarType type = found->second;
    // Rows may come where all could, and all where rows could.
    type.kind = head.sparse() ? graph::VarKind::kSparseRows : graph::VarKind::kDense;
    auto value = ps::MakeValue(TensorHeadOf(head), type);
    if (!value.ok()) return Annotate(value.status(), StrCat("variable ", head.name()));
    values_.emplace_back(head.name(), *std::move(value));
  }
  total_ = total;
  if (BytesOf(values_) != total)
    return absl::InvalidArgumentError(
        StrCat("the variables have ", BytesOf(values_), " bytes, and ", total, " are told of"));
  return absl::OkStatus();
}

absl::Status Assembly::Begin(const google::protobuf::RepeatedPtrField<wire::Variable>& heads,
                             std::int64_t total, std::int64_t most_bytes) {
  if (total < 0 || total > most_bytes)
    return absl::InvalidArgumentError(StrCat("a model of ", total, " bytes: there may be ", most_bytes));
  NamedTypes types;
  std::int64_t bytes = 0;
  for (const wire::Variable& head : heads) {
    graph::VarType type;
    if (!graph::IsName(head.name()) ||
        head.data_type() > static_cast<std::uint32_t>(graph::DataType::kBool) ||
        head.dims_size() > graph::kMaxRank || head.sparse())
      return absl::InvalidArgumentError(
          StrCat("variable ", Shortened(Escaped(head.name()), 128), " cannot be one of a model"));
    type.data_type = static_cast<graph::DataType>(head.data_type());
    std::int64_t count = 1;
    for (const std::int64_t size : head.dims()) {
      if (size < 0 || (size > 0 && count > most_bytes / size))
        return absl::InvalidArgumentError(StrCat("variable ", head.name(), " has absurd dims"));
      count *= size;
      type.dims.Append(size);
    }
    bytes += count * static_cast<std::int64_t>(graph::SizeOf(type.data_type));
    if (bytes > total) break;
    types.emplace(head.name(), type);
  }
  if (bytes != total)
    return absl::InvalidArgumentError(
        StrCat("the variables do not have the ", total, " bytes that are told of"));
  return Begin(heads, total, types);
}

absl::Status Assembly::Add(std::int64_t offset, const ps::Unpacked& message) {
  const auto size = static_cast<std::int64_t>(message.payload_size());
  if (offset != received_ || size > total_ - received_) {
    return absl::InvalidArgumentError(
        StrCat(size, " bytes come for place ", offset, ", and ", received_, " of ", total_, " are there"));
  }
  std::int64_t from = 0;
  while (from < size) {
    Value& value = values_[current_].second;
    const auto bytes = static_cast<std::int64_t>(ps::BytesOf(value));
    const std::int64_t part = std::min(size - from, bytes - in_current_);
    TY_RETURN_IF_ERROR(ps::PutPart(message, static_cast<std::size_t>(from), static_cast<std::size_t>(part),
                                   static_cast<std::size_t>(in_current_), value));
    from += part;
    in_current_ += part;
    if (in_current_ == bytes) {
      ++current_;
      in_current_ = 0;
    }
  }
  received_ += size;
  return absl::OkStatus();
}

}  // namespace trainyard::master
