// Lists of tensors on the wire: a head for each, and the bytes of all one behind the other, cut into
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"
#include "master/wire.pb.h"
#include "ps/rpc/frame.h"

namespace trainyard::master {

using NamedValues = std::vector<std::pair<std::string, graph::Value>>;
using NamedTypes = std::map<std::string, graph::VarType>;

wire::Variable HeadOf(const std::string& name, const graph::Value& value);
std::int64_t BytesOf(const NamedValues& values);
// The bytes [offset, offset + ps::kFrameBytes) of all values, or what there is of them, as payloads that keep
// them alive.
std::vector<ps::Payload> PartOf(const NamedValues& values, std::int64_t offset);

// Puts such a list together from its messages, which come in order.
class Assembly {
 public:
  // Makes the values that the heads tell of. InvalidArgument: one is not among those expected, comes twice,
  // or is of another type; or they do not have `total` bytes.
  absl::Status Begin(const google::protobuf::RepeatedPtrField<wire::Variable>& heads, std::int64_t total,
                     const NamedTypes& expected);
  // The same, whatever they are, up to so many bytes.
  absl::Status Begin(const google::protobuf::RepeatedPtrField<wire::Variable>& heads, std::int64_t total,
                     std::int64_t most_bytes);
  // The payload's place is `offset`. InvalidArgument: something is missing before it, or it is too long.
  absl::Status Add(std::int64_t offset, const ps::Unpacked& message);
  bool complete() const { return received_ == total_; }
  NamedValues Take() { return std::move(values_); }

 private:
  NamedValues values_;
  std::int64_t total_ = 0;
  std::int64_t received_ = 0;
  std::size_t current_ = 0;      // the value that the next byte belongs to
  std::int64_t in_current_ = 0;  // and its place there
};

}  // namespace trainyard::master
