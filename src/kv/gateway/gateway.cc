#include "kv/gateway/gateway.h"

#include <poll.h>

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/access.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/http_loop.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_workers.h"
#include "kv/gateway/gateway_exchange.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kMaxConnections = 1000;
constexpr std::size_t kMaxStrangers = 256;
constexpr std::size_t kMaxGatewayBytes = std::size_t{256} << 20;
constexpr absl::Duration kEndGrace = absl::Milliseconds(200);  // for the last lines of watches

class MicroGateway final : public Gateway {
 public:
  MicroGateway(Store& store, GatewayOptions options)
      : options_(std::move(options)),
        budget_(kMaxConnections, kMaxGatewayBytes),
        workers_(options_.threads),
        calls_(store, workers_) {}
  ~MicroGateway() override;

  absl::Status Open(ListenAddress address);
  std::string address() const override { return address_.Text(); }
  std::size_t streams() const override;

 private:
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* path, const char* method,
                              const char* version, const char* body, size_t* body_size, void** state);
  static void OnCompleted(void* self, MHD_Connection* connection, void** state,
                          MHD_RequestTerminationCode code);
  void Begin(MHD_Connection* connection, const char* path, const char* method, void** state);
  void Tick();
  std::vector<std::shared_ptr<Exchange>> All() const;
  void AwaitExchanges();

  const GatewayOptions options_;
  ListenAddress address_;
  WrongTokens wrong_tokens_{"the store's gateway"};
  Budget budget_;
  Workers workers_;
  EtcdCalls calls_;
  mutable Mutex mu_;
  CondVar completed_;
  absl::flat_hash_map<Exchange*, std::shared_ptr<Exchange>> exchanges_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  HttpLoop loop_;
  std::unique_ptr<Ticker> ticker_;
};

absl::Status MicroGateway::Open(ListenAddress address) {
  address_ = std::move(address);
  TY_ASSIGN_OR_RETURN(Fd socket, Listen(address_));
  TY_ASSIGN_OR_RETURN(address_.port, PortOf(socket));
  TY_RETURN_IF_ERROR(
      loop_.Start(std::move(socket), {.limits = {.most = kMaxConnections, .most_strangers = kMaxStrangers},
                                      .request_timeout = options_.timeout,
                                      .write_timeout = options_.timeout,
                                      .on_request = &OnRequest,
                                      .on_completed = &OnCompleted,
                                      .self = this}));
  ticker_ = std::make_unique<Ticker>(options_.patience, [this] { Tick(); });
  return absl::OkStatus();
}

MicroGateway::~MicroGateway() {
  ticker_ = nullptr;
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  for (const auto& exchange : All()) exchange->Stop();
  AwaitExchanges();
  loop_.Stop();
  workers_.Stop();  // while there is all that they use
}

// MHD must not be stopped while a connection is suspended; and the last line of a watch is worth a moment.
void MicroGateway::AwaitExchanges() {
  const SteadyTime deadline = Clock::System().Steady() + kEndGrace;
  while (true) {
    bool suspended = false;
    for (const auto& exchange : All()) suspended = suspended || exchange->IsSuspended();
    MutexLock lock(mu_);
    const SteadyTime now = Clock::System().Steady();
    if (exchanges_.empty() || (!suspended && now >= deadline)) return;
    completed_.WaitUntil(mu_, now + absl::Milliseconds(5));
  }
}

std::vector<std::shared_ptr<Exchange>> MicroGateway::All() const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<Exchange>> all;
  all.reserve(exchanges_.size());
  for (const auto& [key, exchange] : exchanges_) all.push_back(exchange);
  return all;
}

std::size_t MicroGateway::streams() const {
  std::size_t count = 0;
  for (const auto& exchange : All()) count += exchange->StreamSocket() >= 0 ? 1 : 0;
  return count;
}

void MicroGateway::Begin(MHD_Connection* connection, const char* path, const char* method, void** state) {
  auto exchange = std::make_shared<Exchange>(
      Exchange::Host{calls_, workers_, budget_, loop_, options_.token, wrong_tokens_}, connection);
  *state = exchange.get();
  bool stopping = false;
  {
    MutexLock lock(mu_);
    exchanges_.emplace(exchange.get(), exchange);
    stopping = stopping_;
  }
  exchange->Begin(path, method, stopping);
}

MHD_Result MicroGateway::OnRequest(void* self, MHD_Connection* connection, const char* path,
                                   const char* method, const char* /*version*/, const char* body,
                                   size_t* body_size, void** state) {
  if (*state != nullptr) return static_cast<Exchange*>(*state)->Take(body, body_size);
  static_cast<MicroGateway*>(self)->Begin(connection, path, method, state);
  return MHD_YES;
}

void MicroGateway::OnCompleted(void* self, MHD_Connection* /*connection*/, void** state,
                               MHD_RequestTerminationCode /*code*/) {
  if (*state == nullptr) return;
  auto* const exchange = static_cast<Exchange*>(*state);
  *state = nullptr;
  exchange->Close();
  auto& gateway = *static_cast<MicroGateway*>(self);
  std::shared_ptr<Exchange> removed;  // goes after the lock
  MutexLock lock(gateway.mu_);
  const auto it = gateway.exchanges_.find(exchange);
  removed = std::move(it->second);
  gateway.exchanges_.erase(it);
  gateway.completed_.SignalAll();
}

// MHD does not look at a connection that is suspended, as one of a silent watch is: so we do.
void MicroGateway::Tick() {
  std::vector<std::pair<std::shared_ptr<Exchange>, bool>> streams;
  {
    MutexLock lock(mu_);  // a socket is closed only after its exchange has gone from here
    std::vector<pollfd> sockets;
    for (const auto& [key, exchange] : exchanges_) {
      const int socket = exchange->StreamSocket();
      if (socket < 0) continue;
      sockets.push_back({.fd = socket, .events = POLLRDHUP, .revents = 0});
      streams.emplace_back(exchange, false);
    }
    if (::poll(sockets.data(), sockets.size(), 0) > 0) {
      for (std::size_t i = 0; i < sockets.size(); ++i) streams[i].second = sockets[i].revents != 0;
    }
  }
  for (const auto& [exchange, gone] : streams) exchange->Tick(gone);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(Store& store, GatewayOptions options) {
  TY_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(options.address));
  if (!options.token.empty()) TY_RETURN_IF_ERROR(CheckToken(options.token));
  auto gateway = std::make_unique<MicroGateway>(store, std::move(options));
  TY_RETURN_IF_ERROR(gateway->Open(std::move(address)));
  return gateway;
}

}  // namespace trainyard::kv
