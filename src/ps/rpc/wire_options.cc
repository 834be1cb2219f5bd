#include "ps/rpc/wire_options.h"

#include <utility>

#include "ps/rpc/frame.h"

namespace trainyard::ps {
namespace {

constexpr int kMaxMessage = static_cast<int>(kFrameBytes) + static_cast<int>(kMaxHeadBytes) + 1024;
constexpr int kReadChunk = 1 << 20;        // what one read from the socket asks for
constexpr int kHttpFrame = (1 << 24) - 1;  // the largest that HTTP/2 has
constexpr int kWindow = 64 << 20;

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
}

}  // namespace

void Tune(grpc::ServerBuilder& builder) {
  Apply([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

void Tune(grpc::ChannelArguments& arguments) {
  Apply([&](const char* name, int value) { arguments.SetInt(name, value); });
  // A peer that comes back is tried at once, and one that is gone without a word is noticed.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 10);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
}

}  // namespace trainyard::ps
