// What each path of the gateway does, from the body of a request to the body of its answer. Knows nothing of
// HTTP servers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv/etcd/etcd_server_calls.h"

namespace trainyard::kv {

struct GatewayAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";

  static GatewayAnswer Error(const absl::Status& status);
  static GatewayAnswer Text(int code, std::string body);
};

// An answer that comes line by line. Used by one thread at a time.
class LineStream {
 public:
  virtual ~LineStream() = default;
  // The next line, if there is one now.
  virtual std::optional<std::string> Next() = 0;
  // Whether the last line has been taken.
  virtual bool Ended() const = 0;
  // The client takes nothing: nothing is to be held for it that can be had again.
  virtual void Park() = 0;
};

struct GatewayRoute {
  std::string_view method = "POST";
  bool needs_token = true;
  // One of the two. Both are called on a worker, and may block; `done` is called once, on a worker.
  std::function<void(EtcdCalls&, const std::string& body, std::function<void(GatewayAnswer)> done)> answer;
  // `wake` is called, from any thread, when the stream may have a line that it had not; it must not block.
  std::function<absl::StatusOr<std::unique_ptr<LineStream>>(EtcdCalls&, const std::string& body,
                                                            std::function<void()> wake)>
      stream;
};

// Null if there is no such path.
const GatewayRoute* FindRoute(std::string_view path);

}  // namespace trainyard::kv
