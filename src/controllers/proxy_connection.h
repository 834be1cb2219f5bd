// One connection through the service proxy: a client on the one side, a backend on the other, and bytes both
// ways.
//
//   [connecting] ── a backend answers ──▶ [open] ── both sides have sent their end ──▶ closed
//        │                                   │
//        └── no backend answers ──▶ reset    └── either side breaks ──▶ both are reset
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "controllers/proxy_feed.h"
#include "http/event_loop.h"

namespace trainyard::controllers {

// Used by the loop's thread.
class ProxyConnection {
 public:
  // `backends` are tried in their order. `closed` is called last, when the connection is over, and destroys
  // it.
  ProxyConnection(http::EventLoop& loop, Fd client, std::vector<Backend> backends,
                  std::function<void()> closed);
  ~ProxyConnection();
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  // Once, after it is made. It may be over when this returns.
  void Start();

 private:
  // One end. What it is told of is only noted here; Drive() does the work.
  class Side final : public http::EventLoop::Handler {
   public:
    explicit Side(ProxyConnection& connection) : connection_(connection) {}
    void OnReady(std::uint32_t events) override;
    void OnWake() override { connection_.Drive(); }

    http::EventLoop::Id id = 0;  // another one for each descriptor
    Fd fd;
    bool readable = false;
    bool writable = false;
    bool ended = false;  // it has sent its end
    bool shut = false;   // it has been sent the other's
    std::string unsent;  // bytes for it that did not fit

   private:
    ProxyConnection& connection_;
  };
  enum class Result { kIdle, kMore, kBroken };

  // Moves what can be moved. The connection may be gone when it returns.
  void Drive();
  bool Watch(Side& side);
  void Unwatch(Side& side);
  // False: no backend is left.
  bool ConnectNext();
  // Whether the backend has answered; tries the next one if it refused.
  Result FinishConnect();
  static Result Move(Side& from, Side& to);
  // Sends the bytes, or keeps what does not fit; false if the other end is gone.
  static bool Send(Side& side, const char* bytes, std::size_t count);
  static bool Flush(Side& side);
  void Close(bool reset);

  http::EventLoop& loop_;
  Side client_;
  Side backend_;
  std::vector<Backend> backends_;
  std::size_t next_ = 0;
  bool connecting_ = true;
  std::function<void()> closed_;
};

}  // namespace trainyard::controllers
