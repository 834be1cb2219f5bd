// Takes calls of other graphs. A call is answered when whoever handles it says so, from any thread: one that
// waits for a step to be applied holds no thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "ps/rpc/frame.h"

namespace trainyard::ps {

// One call. Answered once, by Reply() or Fail(); one that is dropped unanswered fails as Unavailable.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual std::string_view method() const = 0;  // "Push"
  virtual const Unpacked& message() const = 0;
  virtual void Reply(const google::protobuf::MessageLite& head, std::vector<Payload> payloads = {}) = 0;
  virtual void Fail(const absl::Status& status) = 0;
};

struct RpcServerOptions {
  std::string address = "127.0.0.1:0";  // port 0: any that is free
  std::string token;                    // whoever does not know it is refused; "": nobody is
  int threads = 2;                      // that run the handler
};

class RpcServer {
 public:
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;
  // The handler is called on the server's own threads, several at a time. Unavailable: the address cannot be
  // had.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options, Handler handler);
  // Takes no more calls, fails those that are open, and waits for the handlers.
  virtual ~RpcServer() = default;
  virtual int port() const = 0;
};

}  // namespace trainyard::ps
