// One proxied request: a connection to a backend, and bytes both ways between it and the client.
//
//   [connecting] ── a backend answers ──▶ [asking] ── the answer's head ──▶ [answering] ── its end ──▶ over
//        │                                   │                                  │
//        └── none does ──▶ 503               └── it breaks ──▶ 503              └── it breaks ──▶ cut off
//
// The request's body may go on while the answer comes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "apiserver/proxy_headers.h"
#include "base/fd.h"
#include "http/event_loop.h"
#include "http/request_body.h"
#include "http/responder.h"
#include "http/response_parser.h"

namespace trainyard::apiserver {

// Used by the loop's thread.
class BackendExchange final : private http::EventLoop::Handler {
 public:
  BackendExchange(http::EventLoop& loop, ProxyRequest request, std::shared_ptr<http::RequestBody> body,
                  std::unique_ptr<http::Responder> responder);
  ~BackendExchange() override;  // whoever still waits for an answer gets 503
  BackendExchange(const BackendExchange&) = delete;
  BackendExchange& operator=(const BackendExchange&) = delete;

  // Once, after it is made. `over` is called last, perhaps before this returns, and destroys it.
  void Start(std::function<void()> over);
  // Until when a backend may take to let us in; Never() once it has.
  SteadyTime deadline() const { return deadline_; }
  void OnTime();

 private:
  void OnReady(std::uint32_t events) override;
  void OnWake() override { Drive(); }

  absl::Status Connect();
  // Whether the backend has let us in.
  bool FinishConnect();
  // Moves what can be moved. The exchange may be gone when it returns.
  void Drive();
  // Each returns whether there may be more to do at once.
  bool Send();
  bool Receive();
  void FillOut();
  void Parse(std::string_view bytes);
  void PassOn();
  void BeginAnswer();
  // The end of it, without an answer or in the middle of one.
  void Break(std::string_view why);
  void Settle();
  std::function<void()> Wake() const;

  http::EventLoop& loop_;
  const http::EventLoop::Id id_;
  const ProxyRequest request_;
  const std::shared_ptr<http::RequestBody> body_;
  std::unique_ptr<http::Responder> responder_;  // null once there is an answer
  std::shared_ptr<http::BodyWriter> answer_;    // null until then
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  std::function<void()> over_;

  Fd fd_;
  SteadyTime deadline_ = SteadyTime::Never();
  bool connected_ = false;
  bool readable_ = false;
  bool writable_ = false;
  bool ended_ = false;  // the exchange

  std::string out_;  // to the backend, and how much of it is written
  std::size_t written_ = 0;
  bool body_done_ = false;  // all of it is in out_, or nobody takes the rest

  http::ResponseParser parser_;
  std::string in_;  // from the backend, and not parsed yet
};

}  // namespace trainyard::apiserver
