// One stream of the gateway's: a watch, or keepalives, from its request to the last line of its answer.
// Workers fill it as its client takes it; the server's thread never waits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "http/responder.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_workers.h"
#include "kv/gateway/gateway_routes.h"

namespace trainyard::kv {

// The gateway's answer as the server sends it.
http::Response ToHttpResponse(GatewayAnswer answer);
absl::Status ServerStopped();

// Owned by the gateway until it has ended, and by workers that have something to do for it. All calls from
// any thread.
class GatewayStream final : public std::enable_shared_from_this<GatewayStream> {
 public:
  struct Host {
    EtcdCalls& calls;
    Workers& workers;
  };
  // `ended` is called, once or more often, when it has said all or its client has gone.
  GatewayStream(Host host, const GatewayRoute& route, std::string body,
                std::unique_ptr<http::Responder> responder, std::function<void(GatewayStream*)> ended)
      : host_(host),
        route_(route),
        body_(std::move(body)),
        ended_call_(std::move(ended)),
        responder_(std::move(responder)) {}

  void Start() { Wake(); }
  // Time has passed: nothing is held for a client that takes nothing.
  void Tick();
  // Ends it, for the gateway ends.
  void Stop();
  // Its lines are being sent.
  bool IsOpen();
  // Lines wait for its client.
  bool HasBacklog();

 private:
  // Of the worker that runs it, one at a time.
  void Wake();
  void Run();
  void Open();
  void Fill();
  std::shared_ptr<http::BodyWriter> writer();

  const Host host_;
  const GatewayRoute& route_;
  const std::string body_;
  const std::function<void(GatewayStream*)> ended_call_;
  std::unique_ptr<http::Responder> responder_;  // of the worker that runs it
  std::unique_ptr<LineStream> stream_;          // likewise

  Mutex mu_;
  std::shared_ptr<http::BodyWriter> writer_ TY_GUARDED_BY(mu_);
  bool stopped_ TY_GUARDED_BY(mu_) = false;
  bool ended_ TY_GUARDED_BY(mu_) = false;       // nothing follows, or nobody is there to send it to
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;  // at the last tick
  bool park_ TY_GUARDED_BY(mu_) = false;
  bool woken_ TY_GUARDED_BY(mu_) = false;
  bool scheduled_ TY_GUARDED_BY(mu_) = false;  // a worker has it, or will
};

}  // namespace trainyard::kv
