// Messages between graphs as gRPC carries them: the length of the head, the head, the payload. Payloads are
// neither copied on their way out nor put together on their way in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace trainyard::ps {

// The most payload that one message carries; larger tensors go in parts.
inline constexpr std::int64_t kFrameBytes = std::int64_t{4} << 20;
inline constexpr std::size_t kMaxHeadBytes = std::size_t{1} << 20;

// Bytes that somebody owns; `owner` keeps them until they are sent.
struct Payload {
  const void* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<void> owner;
};

grpc::ByteBuffer Pack(const google::protobuf::MessageLite& head, std::vector<Payload> payloads = {});

// A message that has come. Its payload lies in several pieces.
class Unpacked {
 public:
  // InvalidArgument: it is too short for its head, or the head is too long.
  static absl::Status Parse(const grpc::ByteBuffer& buffer, Unpacked& out);

  // False: the bytes are no such message.
  bool Head(google::protobuf::MessageLite& head) const;
  std::size_t payload_size() const { return payload_size_; }
  // Copies the payload bytes [from, from + size) out; they must be there.
  void Copy(std::size_t from, void* to, std::size_t size) const;

 private:
  std::string head_;
  std::vector<grpc::Slice> slices_;
  std::size_t payload_begin_ = 0;  // in the first slices
  std::size_t payload_size_ = 0;
};

}  // namespace trainyard::ps
