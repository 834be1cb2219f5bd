#include "ps/rpc/channel.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/text.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::ps {
namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  Tune(arguments);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// A call under way, and what gRPC needs for it. Its address is its tag.
struct CallState {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  Channel::Done done;
  std::shared_ptr<void> line;
  // From whoever calls to AnswerThread. gRPC orders the two as well, out of sight of a sanitizer.
  std::atomic<bool> given = false;
};

// Answers of all calls of this process come in on one thread: gRPC's own hand each event to one another,
// which costs more than a small call does. It has no end, as a call may be under way whenever the process
// ends.
class AnswerThread {
 public:
  static grpc::CompletionQueue& Queue() {
    static AnswerThread& the = *new AnswerThread();
    return the.queue_;
  }

 private:
  AnswerThread() {
    std::thread([this] { Run(); }).detach();
  }
  void Run();

  grpc::CompletionQueue queue_;
};

void AnswerThread::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::unique_ptr<CallState> call(static_cast<CallState*>(tag));
    TY_CHECK(call->given.load(std::memory_order_acquire), "gRPC answers calls that were made");
    if (!call->status.ok()) {
      call->done(FromGrpc(call->status));
      continue;
    }
    Unpacked reply;
    if (absl::Status parsed = Unpacked::Parse(call->reply, reply); !parsed.ok()) {
      call->done(parsed);
    } else {
      call->done(std::move(reply));
    }
  }
}

}  // namespace

struct Channel::Line {
  Line(const std::string& address, std::string the_token)
      : stub(Connect(address)), token(std::move(the_token)) {}
  grpc::GenericStub stub;
  const std::string token;
};

Channel::Channel(const std::string& address, std::string token)
    : line_(std::make_shared<Line>(address, std::move(token))) {}
Channel::~Channel() = default;

void Channel::Start(std::string_view method, const google::protobuf::MessageLite& head,
                    std::vector<Payload> payloads, absl::Duration timeout, Done done) {
  auto call = std::make_unique<CallState>();
  call->context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  if (!line_->token.empty()) call->context.AddMetadata("token", line_->token);
  call->done = std::move(done);
  call->line = line_;
  call->reader = line_->stub.PrepareUnaryCall(&call->context, StrCat("/trainyard.ps/", method),
                                              Pack(head, std::move(payloads)), &AnswerThread::Queue());
  call->reader->StartCall();
  grpc::GenericClientAsyncResponseReader& reader = *call->reader;
  CallState* const tag = call.release();  // AnswerThread's from now on
  tag->given.store(true, std::memory_order_release);
  reader.Finish(&tag->reply, &tag->status, tag);
}

absl::Status Channel::Call(std::string_view method, const google::protobuf::MessageLite& head,
                           absl::Duration timeout, google::protobuf::MessageLite& reply) {
  Mutex mu;
  CondVar changed;
  bool answered = false;
  absl::Status status;
  Start(method, head, {}, timeout, [&](absl::StatusOr<Unpacked> answer) {
    const MutexLock lock(mu);
    status = answer.status();
    if (answer.ok() && !answer->Head(reply))
      status = absl::InternalError(StrCat("the answer to ", method, " cannot be read"));
    answered = true;
    changed.Signal();
  });
  const MutexLock lock(mu);
  while (!answered) changed.Wait(mu);
  return status;
}

}  // namespace trainyard::ps
