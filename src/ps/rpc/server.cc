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
#include "ps/rpc/spare_memory.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/token.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::ps {
namespace {

// gRPC's side of one call: it comes, one message is read and handed over, one answer is written. Deletes
// itself when gRPC is done with it.
class Call {
 public:
  // What becomes of calls.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Waits for the next call.
    virtual void Accept() = 0;
    virtual absl::Status Admit(const grpc::ServerContext& context) const = 0;
    virtual void HandOver(Call* call) = 0;
  };

  Call(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue, Owner& owner)
      : owner_(owner), stream_(&context_) {
    stage_.store(Stage::kWaiting, std::memory_order_release);
    service.RequestCall(&context_, &stream_, &queue, &queue, this);
  }

  // What it waited for has come; not `ok`: and never will.
  void Proceed(bool ok) {
    switch (stage_.load(std::memory_order_acquire)) {
      case Stage::kWaiting:
        if (!ok) break;  // the server ends
        owner_.Accept();
        if (absl::Status stranger = owner_.Admit(context_); !stranger.ok()) return Refuse(stranger);
        stage_.store(Stage::kReading, std::memory_order_release);
        return stream_.Read(&request_, this);
      case Stage::kReading:
        if (!ok) return Refuse(absl::InvalidArgumentError("a call without a message"));
        return owner_.HandOver(this);
      case Stage::kAnswered:
        break;
    }
    delete this;
  }

  // Its last part: "Push".
  std::string method() const {
    const std::string& path = context_.method();
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
  }
  const grpc::ByteBuffer& request() const { return request_; }

  // One of these, once, from any thread; the call may be gone when they return.
  void Answer(const grpc::ByteBuffer& reply) {
    stage_.store(Stage::kAnswered, std::memory_order_release);
    stream_.WriteAndFinish(reply, grpc::WriteOptions(), grpc::Status::OK, this);
  }
  void Refuse(const absl::Status& status) {
    stage_.store(Stage::kAnswered, std::memory_order_release);
    stream_.Finish(ToGrpc(status), this);
  }

 private:
  enum class Stage { kWaiting, kReading, kAnswered };

  Owner& owner_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer request_;
  // Of whoever acts next: the poller or the one who answers. gRPC orders the two as well, out of sight of a
  // sanitizer.
  std::atomic<Stage> stage_;
};

class GrpcExchange final : public Exchange {
 public:
  GrpcExchange(Call* call, Unpacked message)
      : call_(call), method_(call->method()), message_(std::move(message)) {}
  ~GrpcExchange() override { Fail(absl::UnavailableError("the graph is stopping")); }

  std::string_view method() const override { return method_; }
  const Unpacked& message() const override { return message_; }
  void Reply(const google::protobuf::MessageLite& head, std::vector<Payload> payloads) override {
    if (Call* call = std::exchange(call_, nullptr)) call->Answer(Pack(head, std::move(payloads)));
  }
  void Fail(const absl::Status& status) override {
    if (Call* call = std::exchange(call_, nullptr)) call->Refuse(status);
  }

 private:
  Call* call_;
  const std::string method_;
  const Unpacked message_;
};

// One thread takes what gRPC has to tell: gRPC's own hand each event to one another, which costs more than a
// small call does.
class GrpcServer final : public RpcServer, public Call::Owner {
 public:
  GrpcServer(const RpcServerOptions& options, RpcServer::Handler handler)
      : token_(options.token), handler_(std::move(handler)) {
    for (int i = 0; i < options.threads; ++i) threads_.push_back(std::make_unique<Executor>());
  }

  ~GrpcServer() override {
    if (server_ == nullptr) return;
    // Calls that wait for something are dropped by their holder; gRPC cancels what is left after the
    // deadline.
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    threads_.clear();
    queue_->Shutdown();
    poller_.join();
  }

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    Tune(builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      server_ = nullptr;
      queue_->Shutdown();
      return absl::UnavailableError(StrCat("cannot listen on ", address, ": is the port taken?"));
    }
    Accept();
    poller_ = std::thread([this] { Poll(); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Accept() override { new Call(service_, *queue_, *this); }

  absl::Status Admit(const grpc::ServerContext& context) const override {
    return CheckCaller(context, token_);
  }

  void HandOver(Call* call) override {
    const std::size_t turn = next_++ % threads_.size();
    threads_[turn]->Post([this, call] {
      Unpacked message;
      if (absl::Status parsed = Unpacked::Parse(call->request(), message); !parsed.ok())
        return call->Refuse(parsed);
      handler_(std::make_unique<GrpcExchange>(call, std::move(message)));
    });
  }

 private:
  void Poll() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) static_cast<Call*>(tag)->Proceed(ok);
  }

  const std::string token_;
  const RpcServer::Handler handler_;
  int port_ = 0;
  std::size_t next_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::unique_ptr<Executor>> threads_;
  std::unique_ptr<grpc::Server> server_;
  std::thread poller_;
  SpareMemory spare_memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            Handler handler) {
  auto server = std::make_unique<GrpcServer>(options, std::move(handler));
  if (absl::Status listening = server->Listen(options.address); !listening.ok()) return listening;
  return server;
}

}  // namespace trainyard::ps
