#include "master/rpc/link.h"

#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::master {
namespace {

constexpr std::chrono::milliseconds kReconnectPause(20);
constexpr std::chrono::milliseconds kBetweenLooks(200);
constexpr int kConnectMs = 2000;
constexpr const char* kMethod = "/trainyard.master/Session";
constexpr std::uint64_t kHello = 0;  // the number of what a stream begins with

// What no other attempt would change.
bool IsFinal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status) || absl::IsOutOfRange(status);
}

class GrpcLink final : public Link {
 public:
  explicit GrpcLink(LinkOptions options) : options_(std::move(options)) {}

  ~GrpcLink() override {
    Stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Begin() {
    away_since_ = Clock::System().Steady();
    thread_ = std::thread([this] { Run(); });
    const MutexLock lock(mu_);
    while (!greeted_ && outcome_.ok()) changed_.Wait(mu_);
    return greeted_ ? absl::OkStatus() : outcome_;
  }

  wire::Welcome welcome() const override {
    const MutexLock lock(mu_);
    return welcome_;
  }

  absl::StatusOr<Reply> Ask(wire::Request request, std::vector<ps::Payload> payloads) override {
    Mutex mu;
    CondVar changed;
    std::optional<absl::StatusOr<Reply>> answer;
    Start(std::move(request), std::move(payloads), [&](absl::StatusOr<Reply> reply) {
      const MutexLock lock(mu);
      answer.emplace(std::move(reply));
      changed.Signal();
    });
    const MutexLock lock(mu);
    while (!answer) changed.Wait(mu);
    return *std::move(answer);
  }

  void Start(wire::Request request, std::vector<ps::Payload> payloads, Done done) override {
    const absl::Status ended = Put(std::move(request), std::move(payloads), done);
    if (!ended.ok()) done(ended);
  }

  void Stop() override { End(absl::CancelledError("the worker is stopping")); }

 private:
  struct Pending {
    wire::Request request;
    std::vector<ps::Payload> payloads;
    Done done;
  };
  // One attempt; what gRPC needs for it.
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> calls;
    grpc::ByteBuffer read;
    grpc::Status status;
  };
  enum Event : std::intptr_t { kStarted = 1, kRead, kWritten, kFinished };
  static void* TagOf(Event event) { return reinterpret_cast<void*>(event); }

  // Not OK: nothing is asked any more.
  absl::Status Put(wire::Request request, std::vector<ps::Payload> payloads, const Done& done) {
    const MutexLock lock(mu_);
    if (!outcome_.ok()) return outcome_;
    const std::uint64_t number = ++last_number_;
    request.set_number(number);
    pending_.emplace(number, Pending{std::move(request), std::move(payloads), done});
    if (connected_) {
      outbox_.push_back(number);
      WriteNext();
    }
    return absl::OkStatus();
  }

  // All that waits ends with this, and all that comes.
  void End(const absl::Status& why) {
    std::map<std::uint64_t, Pending> dropped;
    {
      const MutexLock lock(mu_);
      if (outcome_.ok()) outcome_ = why;
      dropped.swap(pending_);
      outbox_.clear();
      if (stream_ != nullptr) stream_->context.TryCancel();
      changed_.SignalAll();
    }
    for (auto& [number, pending] : dropped) pending.done(why);
  }

  bool Ended() const {
    const MutexLock lock(mu_);
    return !outcome_.ok();
  }

  void Run() {
    grpc::ChannelArguments arguments;
    ps::Tune(arguments);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                     kConnectMs);  // which is how long one attempt may take
    grpc::GenericStub stub(
        grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(), arguments));
    while (!Ended()) {
      const absl::Status broke = RunStream(stub);
      if (Ended()) break;
      if (IsFinal(broke)) {
        End(broke);
        break;
      }
      if (Away() > options_.patience) {
        End(absl::UnavailableError(StrCat("the master at ", options_.address, " cannot be reached since ",
                                          absl::FormatDuration(absl::Trunc(Away(), absl::Milliseconds(1))))));
        break;
      }
      log::Debug("the master is away", {{"address", options_.address}, {"because", broke}});
      std::this_thread::sleep_for(kReconnectPause);
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::Duration Away() const { return Clock::System().Steady() - away_since_; }
  bool Connected() const {
    const MutexLock lock(mu_);
    return connected_;
  }

  // From the greeting to the end of one stream; why it ended.
  absl::Status RunStream(grpc::GenericStub& stub) {
    Stream stream;
    if (!options_.token.empty()) stream.context.AddMetadata("token", options_.token);
    stream.context.set_wait_for_ready(true);  // gRPC connects while somebody waits, and only then
    stream.calls = stub.PrepareCall(&stream.context, kMethod, &queue_);
    {
      const MutexLock lock(mu_);
      stream_ = &stream;
      if (!outcome_.ok()) stream.context.TryCancel();
    }
    stream.calls->StartCall(TagOf(kStarted));
    int under_way = 1;
    bool finishing = false;
    absl::Status refused;
    void* tag = nullptr;
    bool ok = false;
    // Writes are begun by whoever asks, so that not all that is under way is counted here.
    while (under_way > 0 || Writing()) {
      const auto got = queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kBetweenLooks);
      if (got == grpc::CompletionQueue::TIMEOUT) {
        if (!Connected() && Away() > options_.patience) stream.context.TryCancel();
        continue;
      }
      switch (static_cast<Event>(reinterpret_cast<std::intptr_t>(tag))) {
        case kStarted:
          --under_way;
          if (!ok) break;
          Greet(stream);
          stream.calls->Read(&stream.read, TagOf(kRead));
          ++under_way;
          break;
        case kRead:
          --under_way;
          if (!ok) break;
          if (refused = Take(stream.read); !refused.ok()) {
            stream.context.TryCancel();
            break;
          }
          stream.calls->Read(&stream.read, TagOf(kRead));
          ++under_way;
          break;
        case kWritten:
          OnWritten(ok);
          break;
        case kFinished:
          --under_way;
          break;
      }
      if (under_way == 0 && !finishing) {
        finishing = true;
        Disconnect();
        stream.calls->Finish(&stream.status, TagOf(kFinished));
        ++under_way;
      }
    }
    {
      const MutexLock lock(mu_);
      stream_ = nullptr;
    }
    if (!refused.ok()) return refused;
    return stream.status.ok() ? absl::UnavailableError("the master has closed the stream")
                              : ps::FromGrpc(stream.status);
  }

  void Greet(Stream& stream) {
    wire::Request request;
    request.set_number(kHello);
    wire::Hello& hello = *request.mutable_hello();
    hello.set_worker(options_.worker);
    hello.set_incarnation(options_.incarnation);
    hello.set_pod(options_.pod);
    hello.set_pserver(!options_.pserver_address.empty());
    hello.set_address(options_.pserver_address);
    if (options_.holding) {
      for (const std::int64_t task : options_.holding()) hello.add_holding(task);
    }
    const MutexLock lock(mu_);
    writing_ = true;
    stream.calls->Write(ps::Pack(request), TagOf(kWritten));
  }

  // An answer has come. Not OK: the stream is of no use.
  absl::Status Take(const grpc::ByteBuffer& bytes) {
    Reply reply;
    TY_RETURN_IF_ERROR(ps::Unpacked::Parse(bytes, reply.message));
    if (!reply.message.Head(reply.head)) return absl::InternalError("the master's answer cannot be read");
    const absl::Status refused =
        reply.head.code() == 0
            ? absl::OkStatus()
            : absl::Status(static_cast<absl::StatusCode>(reply.head.code()), reply.head.message());
    if (reply.head.number() == kHello) {
      TY_RETURN_IF_ERROR(refused);
      if (TakeWelcome(reply.head.welcome()) && options_.on_welcome) options_.on_welcome(reply.head.welcome());
      return absl::OkStatus();
    }
    Done done;
    {
      const MutexLock lock(mu_);
      const auto found = pending_.find(reply.head.number());
      if (found == pending_.end()) return absl::OkStatus();
      done = std::move(found->second.done);
      pending_.erase(found);
    }
    if (refused.ok()) {
      done(std::move(reply));
    } else {
      done(refused);
    }
    return absl::OkStatus();
  }

  // True: not for the first time.
  bool TakeWelcome(const wire::Welcome& welcome) {
    const MutexLock lock(mu_);
    const bool again = greeted_;
    welcome_ = welcome;
    options_.worker = welcome.worker();
    connected_ = true;
    greeted_ = true;
    changed_.SignalAll();
    outbox_.clear();
    for (const auto& [number, pending] : pending_) outbox_.push_back(number);
    WriteNext();
    return again;
  }

  void Disconnect() {
    const MutexLock lock(mu_);
    if (connected_) away_since_ = Clock::System().Steady();
    connected_ = false;
    outbox_.clear();
  }

  bool Writing() const {
    const MutexLock lock(mu_);
    return writing_;
  }

  void OnWritten(bool ok) {
    const MutexLock lock(mu_);
    writing_ = false;
    if (ok) WriteNext();
  }

  void WriteNext() TY_REQUIRES(mu_) {
    while (connected_ && !writing_ && !outbox_.empty()) {
      const auto found = pending_.find(outbox_.front());
      outbox_.pop_front();
      if (found == pending_.end()) continue;
      writing_ = true;
      stream_->calls->Write(ps::Pack(found->second.request, found->second.payloads), TagOf(kWritten));
    }
  }

  LinkOptions options_;
  grpc::CompletionQueue queue_;
  std::thread thread_;
  SteadyTime away_since_;  // of the thread; before it runs, of Begin()

  mutable Mutex mu_;
  CondVar changed_;
  absl::Status outcome_ TY_GUARDED_BY(mu_);
  bool greeted_ TY_GUARDED_BY(mu_) = false;  // at least once
  bool connected_ TY_GUARDED_BY(mu_) = false;
  bool writing_ TY_GUARDED_BY(mu_) = false;
  wire::Welcome welcome_ TY_GUARDED_BY(mu_);
  std::uint64_t last_number_ TY_GUARDED_BY(mu_) = kHello;
  std::map<std::uint64_t, Pending> pending_ TY_GUARDED_BY(mu_);  // not answered yet
  std::deque<std::uint64_t> outbox_ TY_GUARDED_BY(mu_);          // of those, not written yet to this stream
  Stream* stream_ TY_GUARDED_BY(mu_) = nullptr;
};

}  // namespace

std::int64_t NewIncarnation() { return static_cast<std::int64_t>(IdSource::Random().Next() >> 1U) | 1; }

absl::StatusOr<std::unique_ptr<Link>> Link::Connect(LinkOptions options) {
  const auto on_running = options.on_running;
  auto link = std::make_unique<GrpcLink>(std::move(options));
  on_running([connecting = link.get()] { connecting->Stop(); });
  const absl::Status begun = link->Begin();
  on_running([] {});  // before it may be gone
  if (!begun.ok()) return begun;
  return link;
}

}  // namespace trainyard::master
