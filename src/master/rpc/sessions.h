// Streams of workers as the master has them: messages in both directions, each a head and a payload
// (ps/rpc/frame.h). A stream that ends is told of at once, and it ends when its process does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "ps/rpc/frame.h"

namespace trainyard::master {

// One worker's stream. All calls from any thread.
class Session {
 public:
  virtual ~Session() = default;
  // In order; dropped if the stream has ended.
  virtual void Send(const google::protobuf::MessageLite& head, std::vector<ps::Payload> payloads = {}) = 0;
  // Ends the stream, after what was sent, with that reason.
  virtual void Close(const absl::Status& why) = 0;
};

// Called on the server's one thread.
class SessionHandler {
 public:
  virtual ~SessionHandler() = default;
  virtual void OnMessage(const std::shared_ptr<Session>& session, ps::Unpacked message) = 0;
  // After one or more messages: no other waits to be read just now.
  virtual void OnPause() {}
  // Once for every session that a message came from; none comes after it.
  virtual void OnEnd(const std::shared_ptr<Session>& session) = 0;
};

struct SessionServerOptions {
  std::string address = "127.0.0.1:0";  // port 0: any that is free
  std::string token;                    // whoever does not know it is refused; "": nobody is
};

class SessionServer {
 public:
  // The handler outlives it. Unavailable: the address cannot be had.
  static absl::StatusOr<std::unique_ptr<SessionServer>> Start(const SessionServerOptions& options,
                                                              SessionHandler& handler);
  // Ends all streams, telling the handler of each.
  virtual ~SessionServer() = default;
  virtual int port() const = 0;
};

}  // namespace trainyard::master
