#include "ps/rpc/server.h"

#include <atomic>
#include <thread>
#include <utility>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/text.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::ps {
namespace {

// Takes the same time whatever the difference is.
bool SameToken(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// gRPC's side of one call: read one message, hand it over, write one answer. Deletes itself when gRPC is done
// with it.
class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  using Ready = std::function<void(Reactor*)>;
  Reactor(std::string method, Ready ready) : method_(std::move(method)), ready_(std::move(ready)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "a call without a message"));
    ready_(this);
  }
  void OnDone() override { delete this; }

  const std::string& method() const { return method_; }
  const grpc::ByteBuffer& request() const { return request_; }
  void Answer(const grpc::ByteBuffer& reply) {
    reply_ = reply;
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void Refuse(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  const std::string method_;
  const Ready ready_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
};

// A call that is refused before anything is read.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class GrpcExchange final : public Exchange {
 public:
  GrpcExchange(Reactor* reactor, Unpacked message)
      : reactor_(reactor), method_(reactor->method()), message_(std::move(message)) {}
  ~GrpcExchange() override { Fail(absl::UnavailableError("the graph is stopping")); }

  std::string_view method() const override { return method_; }
  const Unpacked& message() const override { return message_; }
  void Reply(const google::protobuf::MessageLite& head, std::vector<Payload> payloads) override {
    if (Reactor* reactor = std::exchange(reactor_, nullptr)) reactor->Answer(Pack(head, std::move(payloads)));
  }
  void Fail(const absl::Status& status) override {
    if (Reactor* reactor = std::exchange(reactor_, nullptr)) reactor->Refuse(status);
  }

 private:
  Reactor* reactor_;
  const std::string method_;
  const Unpacked message_;
};

class GrpcServer final : public RpcServer, public grpc::CallbackGenericService {
 public:
  GrpcServer(const RpcServerOptions& options, RpcServer::Handler handler)
      : token_(options.token), handler_(std::move(handler)) {
    for (int i = 0; i < options.threads; ++i) threads_.push_back(std::make_unique<Executor>());
  }

  ~GrpcServer() override {
    // Calls that wait for something are dropped by their holder; gRPC cancels what is left after the
    // deadline.
    if (server_ != nullptr)
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    threads_.clear();
  }

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    Tune(builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return absl::UnavailableError(StrCat("cannot listen on ", address, ": is the port taken?"));
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (!token_.empty()) {
      const auto found = context->client_metadata().find("token");
      if (found == context->client_metadata().end() ||
          !SameToken({found->second.data(), found->second.size()}, token_)) {
        return new Refusal(
            grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the job's token is missing or wrong"));
      }
    }
    const std::string& path = context->method();
    const std::size_t slash = path.rfind('/');
    return new Reactor(slash == std::string::npos ? path : path.substr(slash + 1),
                       [this](Reactor* reactor) { HandOver(reactor); });
  }

 private:
  void HandOver(Reactor* reactor) {
    const std::size_t turn = next_++ % threads_.size();
    threads_[turn]->Post([this, reactor] {
      Unpacked message;
      if (absl::Status parsed = Unpacked::Parse(reactor->request(), message); !parsed.ok())
        return reactor->Refuse(parsed);
      handler_(std::make_unique<GrpcExchange>(reactor, std::move(message)));
    });
  }

  const std::string token_;
  const RpcServer::Handler handler_;
  int port_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::unique_ptr<Executor>> threads_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            Handler handler) {
  auto server = std::make_unique<GrpcServer>(options, std::move(handler));
  if (absl::Status listening = server->Listen(options.address); !listening.ok()) return listening;
  return server;
}

}  // namespace trainyard::ps
