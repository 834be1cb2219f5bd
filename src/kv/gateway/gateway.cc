#include "kv/gateway/gateway.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "base/access.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "http/server.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_codec.h"
#include "kv/etcd/etcd_server_workers.h"
#include "kv/gateway/gateway_exchange.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kMaxConnections = 1000;
constexpr std::size_t kMaxStrangers = 256;
constexpr std::size_t kMaxGatewayBytes = std::size_t{256} << 20;
// The largest request in base64, and room for what is around it.
constexpr std::size_t kMaxBody = 2 * kMaxRequestBytes + (std::size_t{1} << 20);
constexpr absl::Duration kEndGrace = absl::Milliseconds(200);  // for the last lines of watches

absl::Status TooManyRequests() { return absl::ResourceExhaustedError("etcdserver: too many requests"); }

// What the HTTP server refuses by itself, in etcd's words.
http::Response PrintGatewayRefusal(int code, std::string_view message) {
  const absl::Status status = code == 413   ? TooLargeWireError()
                              : code == 429 ? TooManyRequests()
                              : code >= 500 ? absl::InternalError(std::string(message))
                                            : absl::InvalidArgumentError(std::string(message));
  http::Response response = ToHttpResponse(GatewayAnswer::Error(status));
  if (code != 413) response.code = code;
  return response;
}

std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

class ServedGateway final : public Gateway {
 public:
  ServedGateway(Store& store, GatewayOptions options)
      : options_(std::move(options)),
        budget_(std::make_shared<Budget>(kMaxConnections, kMaxGatewayBytes)),
        workers_(options_.threads),
        calls_(store, workers_) {}
  ~ServedGateway() override;

  absl::Status Open(ListenAddress address);
  std::string address() const override { return server_->address(); }
  std::size_t streams() const override;

 private:
  http::Verdict JudgeHead(const http::RequestHead& head);
  std::optional<GatewayAnswer> Refusal(const http::RequestHead& head, const GatewayRoute* route);
  bool HasToken(const http::RequestHead& head) const;
  void Handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder);
  void Send(GatewayAnswer answer, std::size_t held, http::Responder& responder);
  void Forget(GatewayStream* ended, std::size_t held);
  bool IsAnswering() const;
  std::vector<std::shared_ptr<GatewayStream>> All() const;

  const GatewayOptions options_;
  WrongTokens wrong_tokens_{"the store's gateway"};
  const std::shared_ptr<Budget> budget_;  // answers that are being sent share it
  Workers workers_;
  EtcdCalls calls_;
  mutable Mutex mu_;
  absl::flat_hash_map<GatewayStream*, std::shared_ptr<GatewayStream>> streams_ TY_GUARDED_BY(mu_);
  int answering_ TY_GUARDED_BY(mu_) = 0;  // requests that a worker has
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<Ticker> ticker_;
};

absl::Status ServedGateway::Open(ListenAddress address) {
  TY_ASSIGN_OR_RETURN(server_,
                      http::Server::Start(
                          {.listen = std::move(address),
                           .max_body_bytes = kMaxBody,
                           .max_bodies_bytes = kMaxGatewayBytes,
                           .max_stream_backlog_bytes = SIZE_MAX,  // the budget bounds it
                           .max_connections = kMaxConnections,
                           .max_strangers = kMaxStrangers,
                           .head_timeout = options_.timeout,
                           .body_timeout = options_.timeout,
                           .idle_timeout = options_.timeout,
                           .write_timeout = options_.timeout,
                           .all_headers = true,
                           .print_error = PrintGatewayRefusal},
                          [this](const http::RequestHead& head, const std::optional<http::Identity>&) {
                            return JudgeHead(head);
                          },
                          [this](http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
                            Handle(std::move(request), std::move(responder));
                          }));
  ticker_ = std::make_unique<Ticker>(options_.patience, [this] {
    for (const auto& stream : All()) stream->Tick();
  });
  return absl::OkStatus();
}

ServedGateway::~ServedGateway() {
  ticker_ = nullptr;
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  const std::vector<std::shared_ptr<GatewayStream>> streams = All();
  for (const auto& stream : streams) stream->Stop();
  // An answer is waited for as long as the store takes, and the last line of a watch is worth a moment.
  const SteadyTime deadline = Clock::System().Steady() + kEndGrace;
  while (IsAnswering() ||
         (std::ranges::any_of(streams, &GatewayStream::HasBacklog) && Clock::System().Steady() < deadline)) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  server_.reset();  // streams hear of it
  workers_.Stop();  // while there is all that they use
}

std::vector<std::shared_ptr<GatewayStream>> ServedGateway::All() const {
  const MutexLock lock(mu_);
  std::vector<std::shared_ptr<GatewayStream>> all;
  all.reserve(streams_.size());
  for (const auto& [key, stream] : streams_) all.push_back(stream);
  return all;
}

std::size_t ServedGateway::streams() const {
  return static_cast<std::size_t>(std::ranges::count_if(All(), &GatewayStream::IsOpen));
}

bool ServedGateway::IsAnswering() const {
  const MutexLock lock(mu_);
  return answering_ > 0;
}

// ---- of the server's thread

bool ServedGateway::HasToken(const http::RequestHead& head) const {
  const bool own = IsToken(head.Header("token"), options_.token);
  return IsToken(head.authorization, options_.token) || own;
}

std::optional<GatewayAnswer> ServedGateway::Refusal(const http::RequestHead& head,
                                                    const GatewayRoute* route) {
  if (route == nullptr) {
    return GatewayAnswer::Text(404, head.target.starts_with("/v3/") ? "Not Found\n" : "404 page not found\n");
  }
  const bool is_head = head.method == "HEAD" && route->method == "GET";
  if (head.method != route->method && !is_head) return GatewayAnswer::Text(405, "Method Not Allowed\n");
  if (route->needs_token && !options_.token.empty() && !HasToken(head)) {
    wrong_tokens_.Note(StrCat(head.Header("token"), head.authorization));
    return GatewayAnswer::Error(absl::UnauthenticatedError("etcdserver: invalid auth token"));
  }
  if (options_.token.empty() && !head.Header("Origin").empty()) {
    return GatewayAnswer::Error(
        absl::PermissionDeniedError("web pages may not use a store that is served without a token"));
  }
  return std::nullopt;
}

http::Verdict ServedGateway::JudgeHead(const http::RequestHead& head) {
  const GatewayRoute* const route = FindRoute(PathOf(head.target));
  http::Verdict verdict;
  if (auto refusal = Refusal(head, route)) {
    verdict.refusal = ToHttpResponse(*std::move(refusal));
  } else {
    verdict.admitted = route->needs_token;
  }
  return verdict;
}

void ServedGateway::Handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
  const GatewayRoute& route = *FindRoute(PathOf(request.request.target));
  const std::size_t held = request.request.body.size();
  const MutexLock lock(mu_);
  if (stopping_) return responder->Send(ToHttpResponse(GatewayAnswer::Error(ServerStopped())));
  if (!budget_->Enter(held)) return responder->Send(ToHttpResponse(GatewayAnswer::Error(TooManyRequests())));
  if (route.stream) {
    const auto stream = std::make_shared<GatewayStream>(
        GatewayStream::Host{calls_, workers_}, route, std::move(request.request.body), std::move(responder),
        [this, held](GatewayStream* ended) { Forget(ended, held); });
    streams_.emplace(stream.get(), stream);
    return stream->Start();
  }
  ++answering_;
  workers_.Post([this, &route, held, body = std::move(request.request.body),
                 answered = std::shared_ptr<http::Responder>(std::move(responder))] {
    route.answer(calls_, body, [this, held, answered](GatewayAnswer answer) {
      Send(std::move(answer), held, *answered);
      const MutexLock done(mu_);
      --answering_;
    });
  });
}

// ---- of a worker

// What it holds counts until it has been sent.
void ServedGateway::Send(GatewayAnswer answer, std::size_t held, http::Responder& responder) {
  budget_->Hold(answer.body.size());
  held += answer.body.size();
  http::Response head{.code = answer.code,
                      .content_type = std::move(answer.content_type),
                      .headers = {{"Content-Length", std::to_string(answer.body.size())}}};
  std::shared_ptr<const std::string> body(new std::string(std::move(answer.body)),
                                          [budget = budget_, held](const std::string* sent) {
                                            delete sent;
                                            budget->Leave(held);
                                          });
  const std::shared_ptr<http::BodyWriter> writer = responder.Stream(std::move(head));
  writer->Write(std::move(body));
  writer->Close();
}

void ServedGateway::Forget(GatewayStream* ended, std::size_t held) {
  std::shared_ptr<GatewayStream> dropped;  // goes after the lock
  const MutexLock lock(mu_);
  const auto found = streams_.find(ended);
  if (found == streams_.end()) return;
  dropped = std::move(found->second);
  streams_.erase(found);
  budget_->Leave(held);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(Store& store, GatewayOptions options) {
  TY_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(options.address));
  if (!options.token.empty()) TY_RETURN_IF_ERROR(CheckToken(options.token));
  auto gateway = std::make_unique<ServedGateway>(store, std::move(options));
  TY_RETURN_IF_ERROR(gateway->Open(std::move(address)));
  return gateway;
}

}  // namespace trainyard::kv
