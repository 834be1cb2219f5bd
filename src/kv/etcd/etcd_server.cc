#include "kv/etcd/etcd_server.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include "base/access.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd.grpc.pb.h"
#include "kv/etcd/etcd_client.h"
#include "kv/etcd/etcd_server_bidi.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_streams.h"
#include "kv/etcd/etcd_server_watch.h"
#include "kv/etcd/etcd_server_workers.h"

namespace trainyard::kv {

namespace {

// Beside the request itself, what gRPC may read for it; as etcd has it.
constexpr std::size_t kOverheadBytes = std::size_t{512} * 1024;
constexpr std::size_t kMaxCalls = 20'000;
constexpr std::size_t kMaxServerBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxBufferBytes = std::size_t{512} << 20;  // what gRPC holds of requests that come in
constexpr int kMaxStreamsOfAConnection = 4096;
constexpr std::chrono::milliseconds kShutdownGrace(200);

const grpc::Status& TooMany() {
  static const grpc::Status status(grpc::StatusCode::RESOURCE_EXHAUSTED, "etcdserver: too many requests");
  return status;
}

// Holds its part of the budget from its request until its answer is gone.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(Budget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
  void Answer(const grpc::Status& status, std::size_t bytes) {
    bytes_ += bytes;
    budget_.Hold(bytes);
    Finish(status);
  }
  void OnDone() override {
    budget_.Leave(bytes_);
    delete this;
  }

 private:
  Budget& budget_;
  std::size_t bytes_;
};

// What all services share.
class Serving {
 public:
  Serving(Store& store, const EtcdServerOptions& options)
      : token_(options.token),
        budget_(kMaxCalls, kMaxServerBytes),
        workers_(options.threads),
        calls_(store, workers_),
        ticker_(std::in_place, options.patience, [this] { streams_.Tick(); }) {}

  void SetClientUrl(std::string url) { calls_.SetClientUrl(std::move(url)); }
  // Ends the streams, and each that comes from now on.
  void StopStreams() {
    ticker_.reset();
    streams_.Stop();
  }
  // When no call is under way any more.
  void StopWorkers() { workers_.Stop(); }

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request* request,
                                   Response* response) {
    const std::size_t bytes = request->ByteSizeLong();
    if (const grpc::Status status = Admit(*context, bytes); !status.ok()) {
      grpc::ServerUnaryReactor* const refused = context->DefaultReactor();
      refused->Finish(status);
      return refused;
    }
    auto* const call = new UnaryCall(budget_, bytes);  // OnDone() deletes it
    workers_.Post([this, call, request, response] {
      calls_.Do(*request, [call, response](absl::StatusOr<Response> answer) {
        const grpc::Status status = ToGrpc(answer.status());
        if (answer.ok()) *response = *std::move(answer);
        call->Answer(status, response->ByteSizeLong());
      });
    });
    return call;
  }

  template <typename Request, typename Response>
  using NewSession = std::function<std::unique_ptr<ServedSession<Request, Response>>(
      EtcdCalls&, std::function<void()> wake)>;

  template <typename Request, typename Response>
  grpc::ServerBidiReactor<Request, Response>* Stream(grpc::CallbackServerContext* context,
                                                     const NewSession<Request, Response>& new_session) {
    using Stream = ServedStream<Request, Response>;
    if (const grpc::Status status = Admit(*context, 0); !status.ok()) {
      return new RefusedStream<Request, Response>(status);  // deletes itself
    }
    const typename Stream::Host host{workers_, streams_, budget_};
    const auto stream = std::make_shared<Stream>(host, context);  // streams_ and gRPC use it
    stream->Begin(new_session(calls_, [raw = stream.get()] { raw->Wake(); }));
    return stream.get();
  }

 private:
  grpc::Status Admit(const grpc::CallbackServerContext& context, std::size_t bytes) {
    if (!token_.empty() && !HasToken(context.client_metadata())) {
      const auto& metadata = context.client_metadata();
      wrong_tokens_.Note(metadata.contains("token") || metadata.contains("authorization") ? "wrong" : "");
      return {grpc::StatusCode::UNAUTHENTICATED, "etcdserver: invalid auth token"};
    }
    return budget_.Enter(bytes) ? grpc::Status::OK : TooMany();
  }

  bool HasToken(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) const {
    bool has = false;
    for (const char* name : {"token", "authorization"}) {
      const auto [first, last] = metadata.equal_range(name);
      for (auto it = first; it != last; ++it) {
        has = IsToken({it->second.data(), it->second.size()}, token_) || has;
      }
    }
    return has;
  }

  const std::string token_;
  WrongTokens wrong_tokens_{"the store"};
  Budget budget_;
  OpenStreams streams_;
  Workers workers_;
  EtcdCalls calls_;
  std::optional<Ticker> ticker_;  // last: it ends first
};

#define TY_UNARY(Method, Request, Response)                                                                \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context,                                   \
                                   const etcdserverpb::Request* request, etcdserverpb::Response* response) \
      override {                                                                                           \
    return serving_.Answer(context, request, response);                                                    \
  }

class KvService final : public etcdserverpb::KV::CallbackService {
 public:
  explicit KvService(Serving& serving) : serving_(serving) {}
  TY_UNARY(Range, RangeRequest, RangeResponse)
  TY_UNARY(Put, PutRequest, PutResponse)
  TY_UNARY(DeleteRange, DeleteRangeRequest, DeleteRangeResponse)
  TY_UNARY(Txn, TxnRequest, TxnResponse)
  TY_UNARY(Compact, CompactionRequest, CompactionResponse)

 private:
  Serving& serving_;
};

class LeaseService final : public etcdserverpb::Lease::CallbackService {
 public:
  explicit LeaseService(Serving& serving) : serving_(serving) {}
  TY_UNARY(LeaseGrant, LeaseGrantRequest, LeaseGrantResponse)
  TY_UNARY(LeaseRevoke, LeaseRevokeRequest, LeaseRevokeResponse)
  grpc::ServerBidiReactor<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>*
  LeaseKeepAlive(grpc::CallbackServerContext* context) override {
    return serving_.Stream<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>(
        context, [](EtcdCalls& calls, const std::function<void()>& /*wake*/) {
          return std::make_unique<KeepAliveSession>(calls);
        });
  }

 private:
  Serving& serving_;
};

class MaintenanceService final : public etcdserverpb::Maintenance::CallbackService {
 public:
  explicit MaintenanceService(Serving& serving) : serving_(serving) {}
  TY_UNARY(Alarm, AlarmRequest, AlarmResponse)
  TY_UNARY(Status, StatusRequest, StatusResponse)

 private:
  Serving& serving_;
};

class ClusterService final : public etcdserverpb::Cluster::CallbackService {
 public:
  explicit ClusterService(Serving& serving) : serving_(serving) {}
  TY_UNARY(MemberList, MemberListRequest, MemberListResponse)

 private:
  Serving& serving_;
};
#undef TY_UNARY

class WatchService final : public etcdserverpb::Watch::CallbackService {
 public:
  explicit WatchService(Serving& serving) : serving_(serving) {}
  grpc::ServerBidiReactor<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>* Watch(
      grpc::CallbackServerContext* context) override {
    return serving_.Stream<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>(
        context, [](EtcdCalls& calls, std::function<void()> wake) {
          return std::make_unique<WatchSession>(calls, WatchSession::Progress::kAsAsked, std::move(wake));
        });
  }

 private:
  Serving& serving_;
};

class GrpcServer final : public EtcdServer {
 public:
  GrpcServer(Store& store, const EtcdServerOptions& options, ListenAddress address)
      : address_(std::move(address)), serving_(store, options) {}
  ~GrpcServer() override {
    if (server_ == nullptr) return;
    serving_.StopStreams();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
    serving_.StopWorkers();
  }

  absl::Status Open() {
    RouteGrpcLog();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address_.Text(), grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxRequestBytes + kOverheadBytes));
    builder.SetMaxSendMessageSize(-1);
    builder.SetResourceQuota(grpc::ResourceQuota("trainyard-store").Resize(kMaxBufferBytes));
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // or two processes could have one port
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfAConnection);
    // A client whose machine is gone answers nothing and closes nothing. Clients may ask as often as etcd
    // lets them: every five seconds.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    for (grpc::Service* service :
         {static_cast<grpc::Service*>(&kv_), static_cast<grpc::Service*>(&watch_),
          static_cast<grpc::Service*>(&lease_), static_cast<grpc::Service*>(&maintenance_),
          static_cast<grpc::Service*>(&cluster_)}) {
      builder.RegisterService(service);
    }
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(StrCat("cannot listen at ", address_.Text(),
                                           ": the port is taken, or the address is not this machine's"));
    }
    address_.port = static_cast<std::uint16_t>(port);
    serving_.SetClientUrl(StrCat("http://", address_.Text()));
    return absl::OkStatus();
  }
  std::string address() const override { return address_.Text(); }

 private:
  ListenAddress address_;
  Serving serving_;
  KvService kv_{serving_};
  WatchService watch_{serving_};
  LeaseService lease_{serving_};
  MaintenanceService maintenance_{serving_};
  ClusterService cluster_{serving_};
  std::unique_ptr<grpc::Server> server_;  // last: it ends first
};

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdServer>> EtcdServer::Start(Store& store,
                                                              const EtcdServerOptions& options) {
  TY_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(options.address));
  if (!options.token.empty()) TY_RETURN_IF_ERROR(CheckToken(options.token));
  auto server = std::make_unique<GrpcServer>(store, options, std::move(address));
  TY_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace trainyard::kv
