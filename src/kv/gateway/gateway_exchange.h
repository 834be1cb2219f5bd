// One HTTP request of the gateway's, from its head to the last byte of its answer.
//
// MHD's thread must never wait. While a worker asks the store, and while a watch has nothing to say, the
// connection is suspended: MHD looks at it again when it is resumed.
//
//   [receiving] ── all of the body ──▶ [working: suspended] ──▶ [answered]
//                                          └──▶ [streaming] ◀── lines ── worker
//                                                  └── no line: suspended ──┘
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/access.h"
#include "base/http_loop.h"
#include "base/mutex.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_workers.h"
#include "kv/gateway/gateway_routes.h"

namespace trainyard::kv {

// Owned by the gateway until MHD has done with the request, and by workers that have something to do for it.
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  struct Host {
    EtcdCalls& calls;
    Workers& workers;
    Budget& budget;
    HttpLoop& loop;
    const std::string& token;
    WrongTokens& wrong_tokens;
  };
  Exchange(Host host, MHD_Connection* connection) : host_(host), connection_(connection) {}

  // ---- On MHD's thread.

  // The head is there. `stopping`: it is too late for it.
  void Begin(std::string_view path, std::string_view method, bool stopping);
  // A part of the body; or with no bytes its end, and again whenever the connection was resumed.
  MHD_Result Take(const char* data, std::size_t* size);
  // MHD has done with it. The connection is not touched any more.
  void Close();

  // ---- From any thread.

  // The connection's socket while a stream is sent; -1: none is.
  int StreamSocket() const;
  // Whether it waits for a worker, or for a line.
  bool IsSuspended() const;
  // Time has passed. `gone`: its client has closed the connection.
  void Tick(bool gone);
  // Ends a stream, for the gateway ends.
  void Stop();

 private:
  std::optional<GatewayAnswer> Refusal(std::string_view path, std::string_view method, bool stopping) const;
  bool HasToken() const;
  std::string_view Header(const char* name) const;
  void Receive(std::string_view data);
  void Dispatch();
  MHD_Result SendAnswer() TY_REQUIRES(mu_);
  MHD_Result SendStream() TY_REQUIRES(mu_);
  static ssize_t ReadLines(void* self, std::uint64_t position, char* buffer, std::size_t most);

  // Of the worker that runs the stream, one at a time.
  void Wake();
  void Run();
  void OpenStream();
  void Fill();

  void Answer(GatewayAnswer answer) TY_EXCLUDES(mu_);
  void Suspend() TY_REQUIRES(mu_);
  void Resume() TY_REQUIRES(mu_);

  const Host host_;
  MHD_Connection* const connection_;

  // Of MHD's thread.
  const GatewayRoute* route_ = nullptr;
  std::string body_;  // of the workers, once it is whole
  std::size_t swallowed_ = 0;
  bool admitted_ = false;
  bool dispatched_ = false;

  std::unique_ptr<LineStream> stream_;  // of the worker that runs it

  mutable Mutex mu_;
  std::size_t held_ TY_GUARDED_BY(mu_) = 0;  // of the budget
  bool suspended_ TY_GUARDED_BY(mu_) = false;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool stopped_ TY_GUARDED_BY(mu_) = false;
  std::optional<GatewayAnswer> answer_ TY_GUARDED_BY(mu_);
  int stream_socket_ TY_GUARDED_BY(mu_) = -1;
  bool streaming_ TY_GUARDED_BY(mu_) = false;
  std::string lines_ TY_GUARDED_BY(mu_);     // to be sent
  std::size_t sent_ TY_GUARDED_BY(mu_) = 0;  // of them
  bool ended_ TY_GUARDED_BY(mu_) = false;    // nothing comes behind them
  bool gone_ TY_GUARDED_BY(mu_) = false;     // nobody is there to send them to
  bool untaken_ TY_GUARDED_BY(mu_) = false;  // at the last tick there were lines, and none was taken since
  bool park_ TY_GUARDED_BY(mu_) = false;
  bool woken_ TY_GUARDED_BY(mu_) = false;
  bool scheduled_ TY_GUARDED_BY(mu_) = false;  // a worker has it, or will
};

}  // namespace trainyard::kv
