#include "ps/rpc/channel.h"

#include <chrono>
#include <utility>

#include "base/mutex.h"
#include "base/text.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "ps/rpc/status_code.h"
#include "ps/rpc/wire_options.h"

namespace trainyard::ps {
namespace {

// What gRPC needs as long as a call is under way.
struct CallState {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer reply;
};

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  Tune(arguments);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
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
  auto state = std::make_shared<CallState>();
  state->request = Pack(head, std::move(payloads));
  state->context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  if (!line_->token.empty()) state->context.AddMetadata("token", line_->token);
  line_->stub.UnaryCall(&state->context, StrCat("/trainyard.ps/", method), grpc::StubOptions(),
                        &state->request, &state->reply,
                        [state, line = line_, done = std::move(done)](const grpc::Status& status) {
                          if (!status.ok()) return done(FromGrpc(status));
                          Unpacked reply;
                          if (absl::Status parsed = Unpacked::Parse(state->reply, reply); !parsed.ok())
                            return done(parsed);
                          done(std::move(reply));
                        });
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
