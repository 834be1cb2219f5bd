// One answer on its way from whoever makes it, in any thread, to the connection that sends it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "http/server.h"

namespace trainyard::http {

// All calls from any thread; none blocks.
class Exchange {
 public:
  // `wake` makes the connection call Collect() soon; it is called without a lock held.
  Exchange(std::function<void()> wake, std::size_t max_backlog_bytes)
      : wake_(std::move(wake)), max_backlog_bytes_(max_backlog_bytes) {}

  // The maker's side: what Responder and BodyWriter promise.
  void Send(Response response);
  void Begin(Response head);
  bool Write(std::shared_ptr<const std::string> piece);
  std::size_t Backlog();
  void OnRoom(std::size_t bytes, std::function<void()> room);
  void Close() { End(true); }
  void Cut() { End(false); }  // the answer breaks off: whoever wrote it has gone
  void OnGone(std::function<void()> gone);

  // The connection's side.
  struct Collected {
    std::optional<Response> whole;
    std::optional<Response> head;
    std::vector<std::shared_ptr<const std::string>> pieces;
    bool closed = false;  // nothing follows
    bool cut = false;     // it breaks off here
  };
  // What has been made since the last call.
  Collected Collect();
  // That many bytes of the pieces have been sent.
  void Sent(std::size_t bytes);
  // The connection is gone.
  void Abandon();

 private:
  void End(bool complete);
  // True if the connection must be woken.
  bool Changed() TY_REQUIRES(mu_);

  const std::function<void()> wake_;
  const std::size_t max_backlog_bytes_;
  Mutex mu_;
  Collected fresh_ TY_GUARDED_BY(mu_);
  bool woken_ TY_GUARDED_BY(mu_) = false;  // since the last Collect()
  bool over_ TY_GUARDED_BY(mu_) = false;   // Send(), Close() or Cut(): the maker says no more
  bool gone_ TY_GUARDED_BY(mu_) = false;   // the connection
  bool lagging_ TY_GUARDED_BY(mu_) = false;
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;
  std::function<void()> on_gone_ TY_GUARDED_BY(mu_);
  std::size_t room_at_ TY_GUARDED_BY(mu_) = 0;
  std::function<void()> on_room_ TY_GUARDED_BY(mu_);
};

// The maker's end of an exchange. One that is dropped without an answer is answered with 500.
std::unique_ptr<Responder> NewResponder(std::shared_ptr<Exchange> exchange,
                                        ErrorPrinter print_error = PrintJsonError);

}  // namespace trainyard::http
