#include "ps/rpc/frame.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace trainyard::ps {
namespace {

constexpr std::size_t kPrefix = 4;

// A slice over memory that an owner keeps.
grpc::Slice Borrow(Payload payload) {
  auto* owner = new std::shared_ptr<void>(std::move(payload.owner));
  // gRPC reads it and never writes.
  return {const_cast<void*>(payload.data), payload.size,
          [](void* kept) { delete static_cast<std::shared_ptr<void>*>(kept); }, owner};
}

void PutLength(char* to, std::uint32_t length) {
  for (std::size_t i = 0; i < kPrefix; ++i) to[i] = static_cast<char>(length >> (8 * i));
}

}  // namespace

grpc::ByteBuffer Pack(const google::protobuf::MessageLite& head, std::vector<Payload> payloads) {
  std::string front(kPrefix, '\0');
  head.AppendToString(&front);
  PutLength(front.data(), static_cast<std::uint32_t>(front.size() - kPrefix));
  std::vector<grpc::Slice> slices;
  slices.emplace_back(front);
  for (Payload& payload : payloads) {
    if (payload.size > 0) slices.push_back(Borrow(std::move(payload)));
  }
  return {slices.data(), slices.size()};
}

absl::Status Unpacked::Parse(const grpc::ByteBuffer& buffer, Unpacked& out) {
  out = Unpacked();
  if (!buffer.Dump(&out.slices_).ok()) return absl::InvalidArgumentError("a message cannot be read");
  const std::size_t total = buffer.Length();
  out.payload_size_ = total;
  if (total < kPrefix)
    return absl::InvalidArgumentError(StrCat("a message of ", total, " bytes has no head"));
  unsigned char prefix[kPrefix];
  out.Copy(0, prefix, kPrefix);
  std::size_t length = 0;
  for (std::size_t i = 0; i < kPrefix; ++i) length |= static_cast<std::size_t>(prefix[i]) << (8 * i);
  if (length > kMaxHeadBytes || length > total - kPrefix)
    return absl::InvalidArgumentError(StrCat("a message of ", total, " bytes has a head of ", length));
  out.head_.resize(length);
  out.Copy(kPrefix, out.head_.data(), length);
  out.payload_begin_ = kPrefix + length;
  out.payload_size_ = total - out.payload_begin_;
  return absl::OkStatus();
}

bool Unpacked::Head(google::protobuf::MessageLite& head) const { return head.ParseFromString(head_); }

void Unpacked::Copy(std::size_t from, void* to, std::size_t size) const {
  std::size_t skip = payload_begin_ + from;
  char* out = static_cast<char*>(to);
  for (const grpc::Slice& slice : slices_) {
    if (size == 0) return;
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    const std::size_t part = std::min(slice.size() - skip, size);
    std::memcpy(out, slice.begin() + skip, part);
    out += part;
    size -= part;
    skip = 0;
  }
}

}  // namespace trainyard::ps
