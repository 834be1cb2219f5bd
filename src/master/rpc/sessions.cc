#include "master/rpc/sessions.h"

#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/text.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/rpc/spare_memory.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/token.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::master {
namespace {

// Answers that wait to be written: a peer that asks and does not read is not read from any further.
constexpr std::size_t kMostWaiting = 64;
constexpr int kMostWithoutPause = 64;
constexpr int kPingEveryMs = 2000;
constexpr int kPingTimeoutMs = 3000;

// gRPC's side of one stream. What is under way has a tag; the stream is gone when nothing is.
class Line final : public Session, public std::enable_shared_from_this<Line> {
 public:
  struct Tag {
    void (Line::*proceed)(bool ok);
    std::shared_ptr<Line> line;  // set while it is under way
    // From whoever began it to the poller. gRPC orders the two as well, out of sight of a sanitizer.
    std::atomic<bool> begun = false;
  };

  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Accept() = 0;
    virtual absl::Status Admit(const grpc::ServerContext& context) const = 0;
    virtual SessionHandler& handler() = 0;
    // Counts what is under way.
    virtual void Began() = 0;
    virtual void Ended() = 0;
  };

  explicit Line(Owner& owner) : owner_(owner), stream_(&context_) {}

  void Await(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue) {
    service.RequestCall(&context_, &stream_, &queue, &queue, Begin(accepting_));
  }

  static void Proceed(void* tag, bool ok) {
    Tag& under_way = *static_cast<Tag*>(tag);
    TY_CHECK(under_way.begun.exchange(false, std::memory_order_acquire), "gRPC ends what was begun");
    const std::shared_ptr<Line> line = std::move(under_way.line);
    (line.get()->*under_way.proceed)(ok);
    line->owner_.Ended();
  }

  void Send(const google::protobuf::MessageLite& head, std::vector<ps::Payload> payloads) override {
    grpc::ByteBuffer message = ps::Pack(head, std::move(payloads));
    const MutexLock lock(mu_);
    if (closing_ || broken_) return;
    outbox_.push_back(std::move(message));
    WriteNext();
  }

  void Close(const absl::Status& why) override {
    const MutexLock lock(mu_);
    if (closing_) return;
    closing_ = true;
    why_ = why;
    WriteNext();
  }

 private:
  void* Begin(Tag& tag) {
    owner_.Began();
    tag.line = shared_from_this();
    tag.begun.store(true, std::memory_order_release);
    return &tag;
  }

  void OnAccepted(bool ok) {
    if (!ok) return;  // the server ends
    owner_.Accept();
    if (absl::Status stranger = owner_.Admit(context_); !stranger.ok()) Close(stranger);
    stream_.Read(&message_, Begin(reading_));
  }

  void OnRead(bool ok) {
    if (!ok) {
      if (heard_) owner_.handler().OnEnd(shared_from_this());
      {
        const MutexLock lock(mu_);
        outbox_.clear();
      }
      return Close(absl::OkStatus());
    }
    if (Ending()) return ReadNext();
    ps::Unpacked message;
    if (absl::Status parsed = ps::Unpacked::Parse(message_, message); !parsed.ok()) {
      Close(parsed);
    } else {
      heard_ = true;
      owner_.handler().OnMessage(shared_from_this(), std::move(message));
    }
    ReadNext();
  }

  void ReadNext() {
    {
      const MutexLock lock(mu_);
      paused_ = outbox_.size() > kMostWaiting && !closing_;
      if (paused_) return;
    }
    message_.Clear();
    stream_.Read(&message_, Begin(reading_));
  }

  bool Ending() {
    const MutexLock lock(mu_);
    return closing_;
  }

  void OnWritten(bool ok) {
    bool resume = false;
    {
      const MutexLock lock(mu_);
      writing_ = false;
      if (!ok) {
        broken_ = true;
        outbox_.clear();
      }
      WriteNext();
      resume = paused_ && outbox_.size() <= kMostWaiting / 2;
      if (resume) paused_ = false;
    }
    if (resume) ReadNext();
  }

  void OnFinished(bool) {}

  // One at a time; the end comes behind them.
  void WriteNext() TY_REQUIRES(mu_) {
    if (writing_ || finished_) return;
    if (!outbox_.empty()) {
      writing_ = true;
      const grpc::ByteBuffer message = outbox_.front();  // which shares its bytes
      outbox_.pop_front();
      stream_.Write(message, Begin(sending_));
    } else if (closing_) {
      finished_ = true;
      stream_.Finish(ps::ToGrpc(why_), Begin(finishing_));
    }
  }

  Owner& owner_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer message_;
  bool heard_ = false;
  Tag accepting_{&Line::OnAccepted, nullptr};
  Tag reading_{&Line::OnRead, nullptr};
  Tag sending_{&Line::OnWritten, nullptr};
  Tag finishing_{&Line::OnFinished, nullptr};

  Mutex mu_;
  std::deque<grpc::ByteBuffer> outbox_ TY_GUARDED_BY(mu_);
  bool writing_ TY_GUARDED_BY(mu_) = false;
  bool broken_ TY_GUARDED_BY(mu_) = false;
  bool paused_ TY_GUARDED_BY(mu_) = false;  // nothing is read until some of the outbox is gone
  bool closing_ TY_GUARDED_BY(mu_) = false;
  bool finished_ TY_GUARDED_BY(mu_) = false;
  absl::Status why_ TY_GUARDED_BY(mu_);
};

class GrpcSessionServer final : public SessionServer, public Line::Owner {
 public:
  GrpcSessionServer(std::string token, SessionHandler& handler)
      : token_(std::move(token)), handler_(handler) {}

  ~GrpcSessionServer() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    {
      // Streams that end here still finish, and nothing may begin on a queue that is shut down.
      const MutexLock lock(mu_);
      while (under_way_ > 0) changed_.Wait(mu_);
    }
    queue_->Shutdown();
    poller_.join();
  }

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    ps::Tune(builder);
    // A machine that is gone sends nothing, not even an end.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
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
  void Accept() override { std::make_shared<Line>(*this)->Await(service_, *queue_); }
  absl::Status Admit(const grpc::ServerContext& context) const override {
    return ps::CheckCaller(context, token_);
  }
  SessionHandler& handler() override { return handler_; }
  void Began() override {
    const MutexLock lock(mu_);
    ++under_way_;
  }
  void Ended() override {
    const MutexLock lock(mu_);
    if (--under_way_ == 0) changed_.Signal();
  }

 private:
  void Poll() {
    void* tag = nullptr;
    bool ok = false;
    const gpr_timespec without_waiting = gpr_inf_past(GPR_CLOCK_REALTIME);
    while (queue_->Next(&tag, &ok)) {
      Line::Proceed(tag, ok);
      for (int i = 1; i < kMostWithoutPause; ++i) {
        if (queue_->AsyncNext(&tag, &ok, without_waiting) != grpc::CompletionQueue::GOT_EVENT) break;
        Line::Proceed(tag, ok);
      }
      handler_.OnPause();
    }
  }

  const std::string token_;
  SessionHandler& handler_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread poller_;
  Mutex mu_;
  CondVar changed_;
  int under_way_ TY_GUARDED_BY(mu_) = 0;
  ps::SpareMemory spare_memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SessionServer>> SessionServer::Start(const SessionServerOptions& options,
                                                                    SessionHandler& handler) {
  auto server = std::make_unique<GrpcSessionServer>(options.token, handler);
  if (absl::Status listening = server->Listen(options.address); !listening.ok()) return listening;
  return server;
}

}  // namespace trainyard::master
