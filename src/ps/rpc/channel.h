// Calls another graph at a known address.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "ps/rpc/frame.h"

namespace trainyard::ps {

// From any thread. Calls may be under way when it is destroyed; their `done` still comes.
class Channel {
 public:
  Channel(const std::string& address, std::string token);
  ~Channel();

  // `done` is called once, on a thread of gRPC's: it must not block.
  using Done = std::function<void(absl::StatusOr<Unpacked>)>;
  void Start(std::string_view method, const google::protobuf::MessageLite& head,
             std::vector<Payload> payloads, absl::Duration timeout, Done done);

  // The same, and waits. `reply` is filled if it is OK; Internal: the answer is none of its kind.
  absl::Status Call(std::string_view method, const google::protobuf::MessageLite& head,
                    absl::Duration timeout, google::protobuf::MessageLite& reply);

 private:
  struct Line;
  std::shared_ptr<Line> line_;
};

}  // namespace trainyard::ps
