#include "ps/rpc/wire_options.h"

#include <malloc.h>

#include <utility>

#include "ps/rpc/frame.h"

namespace trainyard::ps {
namespace {

constexpr int kMaxMessage = static_cast<int>(kFrameBytes) + static_cast<int>(kMaxHeadBytes) + 1024;
constexpr int kReadChunk = 1 << 20;        // what one read from the socket asks for
constexpr int kHttpFrame = (1 << 24) - 1;  // the largest that HTTP/2 has
constexpr int kWindow = 64 << 20;
constexpr int kHandshakeMs = 10000;

// The same on both sides; applied through whatever takes a name and a number.
template <typename Set>
void Apply(Set set) {
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxMessage);
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, kMaxMessage);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunk);
  set(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kReadChunk / 4);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 * kReadChunk);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttpFrame);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, kWindow);
  // What a call passes through and we have no use for: it is tried again by whoever made it, tensors do not
  // shrink, and nobody looks at the statistics.
  set(GRPC_ARG_ENABLE_RETRIES, 0);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  set(GRPC_ARG_ENABLE_CHANNELZ, 0);
}

// What gRPC reads into is megabytes large, used once and freed by another thread. As the allocator is set by
// itself it gives such memory back to the system each time, and the next message pays for every page anew: a
// third of a pserver's time. So this process keeps it, in one place that all threads share, until it has not
// needed it for some seconds (spare_memory.h).
void KeepBuffers() {
  constexpr int kLargest = 32 << 20;  // that the allocator takes from what it keeps; the most it can be told
  constexpr int kMostUnused = 512 << 20;
  constexpr int kGrowth = 16 << 20;
  [[maybe_unused]] static const bool once =
      ::mallopt(M_ARENA_MAX, 1) == 1 && ::mallopt(M_MMAP_THRESHOLD, kLargest) == 1 &&
      ::mallopt(M_TRIM_THRESHOLD, kMostUnused) == 1 && ::mallopt(M_TOP_PAD, kGrowth) == 1;
}

}  // namespace

void Tune(grpc::ServerBuilder& builder) {
  KeepBuffers();
  Apply([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // One that connects and does not speak HTTP/2 holds a buffer for no longer than this.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
}

void Tune(grpc::ChannelArguments& arguments) {
  KeepBuffers();
  Apply([&](const char* name, int value) { arguments.SetInt(name, value); });
  // A peer that comes back is tried at once, and one that is gone without a word is noticed.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 10);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A peer that moved to another node has the same name and another address.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 200);
}

}  // namespace trainyard::ps
