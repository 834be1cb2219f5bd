#include "apiserver/backend_proxy.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "apiserver/backend_exchange.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "http/event_loop.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

class LoopProxy final : public BackendProxy, private http::EventLoop::Handler {
 public:
  explicit LoopProxy(std::unique_ptr<http::EventLoop> loop)
      : loop_(std::move(loop)), mail_id_(loop_->NewId()) {
    loop_->AddWoken(mail_id_, *this);
    loop_->SetTick([this](SteadyTime now) { return Tick(now); });
    thread_ = std::thread([this] { loop_->Run(); });
  }

  ~LoopProxy() override {
    loop_->Stop();
    thread_.join();
    TakeMail();
    exchanges_.clear();
  }

  void Carry(ProxyRequest request, std::shared_ptr<http::RequestBody> body,
             std::unique_ptr<http::Responder> responder) override {
    {
      MutexLock lock(mu_);
      mail_.push_back({std::move(request), std::move(body), std::move(responder)});
    }
    loop_->waker()->Wake(mail_id_);
  }

 private:
  struct Order {
    ProxyRequest request;
    std::shared_ptr<http::RequestBody> body;
    std::unique_ptr<http::Responder> responder;
  };

  void OnReady(std::uint32_t /*events*/) override {}
  void OnWake() override { TakeMail(); }

  void TakeMail() {
    std::vector<Order> mail;
    {
      MutexLock lock(mu_);
      mail.swap(mail_);
    }
    for (Order& order : mail) {
      const std::uint64_t id = ++last_id_;
      auto exchange = std::make_unique<BackendExchange>(*loop_, std::move(order.request),
                                                        std::move(order.body), std::move(order.responder));
      BackendExchange& begun = *exchange;
      exchanges_.emplace(id, std::move(exchange));
      begun.Start([this, id] { exchanges_.erase(id); });
    }
  }

  SteadyTime Tick(SteadyTime now) {
    std::vector<BackendExchange*> late;
    SteadyTime next = SteadyTime::Never();
    for (const auto& [id, exchange] : exchanges_) {
      if (exchange->deadline() <= now) {
        late.push_back(exchange.get());
      } else {
        next = std::min(next, exchange->deadline());
      }
    }
    for (BackendExchange* exchange : late) exchange->OnTime();
    return next;
  }

  const std::unique_ptr<http::EventLoop> loop_;
  const http::EventLoop::Id mail_id_;

  Mutex mu_;
  std::vector<Order> mail_ TY_GUARDED_BY(mu_);

  // Below: the loop's thread alone.
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<BackendExchange>> exchanges_;
  std::uint64_t last_id_ = 0;

  std::thread thread_;
};

}  // namespace

kube::Response UnreachableResponse(std::string_view why) {
  return kube::ToResponse({.code = 503,
                           .reason = "ServiceUnavailable",
                           .message = StrCat("error trying to reach service: ", why)});
}

absl::StatusOr<std::unique_ptr<BackendProxy>> BackendProxy::Start() {
  TY_ASSIGN_OR_RETURN(std::unique_ptr<http::EventLoop> loop, http::EventLoop::Make());
  return std::make_unique<LoopProxy>(std::move(loop));
}

}  // namespace trainyard::apiserver
