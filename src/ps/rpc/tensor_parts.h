// Tensors in parts: which bytes go into which message, and where they belong on arrival.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"
#include "ps/rpc/frame.h"
#include "ps/rpc/message.pb.h"

namespace trainyard::ps {

wire::TensorHead HeadOf(const graph::Value& value);

// All bytes of a value: of a sparse one the numbers of its rows, then the rows.
std::size_t BytesOf(const graph::Value& value);

// The bytes [from, from + size) of the value, as payloads that keep it alive.
std::vector<Payload> PartOf(const graph::Value& value, std::size_t from, std::size_t size);

// Makes the value that the head tells of, without its elements. InvalidArgument: its size is absurd, or is
// not that of `expected`.
absl::StatusOr<graph::Value> MakeValue(const wire::TensorHead& head, const graph::VarType& expected);

// Copies the payload bytes [from, from + size) of a message, which must be there, to the bytes of the value
// from `offset` on. InvalidArgument: they do not fit.
absl::Status PutPart(const Unpacked& message, std::size_t from, std::size_t size, std::size_t offset,
                     graph::Value& value);

}  // namespace trainyard::ps
