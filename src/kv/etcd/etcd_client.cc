#include "kv/etcd/etcd_client.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr std::chrono::milliseconds kPause(50);

bool Contains(const grpc::Status& status, std::string_view text) {
  return status.error_message().find(text) != std::string::npos;
}

// What gRPC has to say is for who debugs it; what a user needs to know is in our errors.
void LogGrpc(gpr_log_func_args* line) {
  log::Debug("grpc", {{"file", line->file}, {"line", line->line}, {"message", line->message}});
}

absl::StatusOr<std::string> ReadPem(const std::string& path, std::string_view what) {
  if (path.empty()) return std::string();
  TY_ASSIGN_OR_RETURN(std::string text, ReadFile(path, std::size_t{16} << 20));
  if (text.find("-----BEGIN ") == std::string::npos) {
    return absl::InvalidArgumentError(StrCat("the ", what, " ", path, " is not in PEM format"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const EtcdOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  TY_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(options.ca_file, "certificate authority"));
  TY_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadPem(options.cert_file, "client certificate"));
  TY_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(options.key_file, "client key"));
  return grpc::SslCredentials(ssl);
}

grpc::ChannelArguments Arguments(const EtcdOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // How long one attempt to connect may take. With other members to turn to, short enough to leave time for
  // them.
  const auto members = static_cast<std::int64_t>(options.endpoints.size());
  const absl::Duration patience = members == 1 ? options.timeout : options.timeout / (members + 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(patience)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // A member whose machine is gone answers nothing and closes nothing; etcd allows a ping every five seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  return arguments;
}

void SetDeadline(grpc::ClientContext& context, absl::Duration from_now) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(from_now));
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(LogGrpc); }

EtcdOutcome Classify(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      // The call never left: no connection could be made, or the member knows of no leader to pass it to.
      if (Contains(status, "failed to connect") || Contains(status, "onnection refused") ||
          Contains(status, "etcdserver: no leader") || Contains(status, "DNS resolution failed")) {
        return EtcdOutcome::kNotMade;
      }
      return EtcdOutcome::kUnknown;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::ABORTED:
      return EtcdOutcome::kUnknown;
    case grpc::StatusCode::UNAUTHENTICATED:
      return EtcdOutcome::kNewToken;
    default:
      return Contains(status, "revision of auth store is old") ? EtcdOutcome::kNewToken
                                                               : EtcdOutcome::kRefused;
  }
}

absl::Status ToStatus(const grpc::Status& status, EtcdOutcome outcome, std::string_view where,
                      Revision asked) {
  const std::string& message = status.error_message();
  switch (outcome) {
    case EtcdOutcome::kNotMade:
      return absl::UnavailableError(StrCat(where, " cannot be reached (", message,
                                           "): check that it runs and that the address is right"));
    case EtcdOutcome::kUnknown:
      return absl::UnknownError(
          StrCat(where, " did not answer (", message, "): the request may or may not have been carried out"));
    case EtcdOutcome::kNewToken:
    case EtcdOutcome::kRefused:
      break;
  }
  if (Contains(status, "revision has been compacted")) return CompactedError(asked, 0);
  if (Contains(status, "is a future revision")) return FutureRevisionError(asked, 0);
  if (Contains(status, "requested lease not found")) {
    return absl::NotFoundError("the lease does not exist: it was revoked or its time ran out");
  }
  if (Contains(status, "invalid auth token")) {
    return absl::PermissionDeniedError(
        StrCat(where,
               " wants a token, and this is not it: check ?token-file=FILE in the store's URL, or "
               "TRAINYARD_ETCD_TOKEN"));
  }
  if (Contains(status, "authentication failed")) {
    return absl::PermissionDeniedError(StrCat(where, " refused the user or the password: check both"));
  }
  if (Contains(status, "user name is empty") || Contains(status, "user name not found")) {
    return absl::PermissionDeniedError(StrCat(where, " wants a user: add ?user=NAME to the store's URL"));
  }
  if (Contains(status, "permission denied")) {
    return absl::PermissionDeniedError(
        StrCat(where, " does not let this user do that: grant it a role that may"));
  }
  if (Contains(status, "authentication is not enabled")) {
    return absl::FailedPreconditionError(StrCat(where, " has no users: take ?user= out of the store's URL"));
  }
  if (Contains(status, "database space exceeded")) {
    return absl::ResourceExhaustedError(
        StrCat(where, " is full: compact and defragment it, or raise its quota"));
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        StrCat(where, " is no etcd 3.4 or later (", message, "): check the address"));
  }
  return {static_cast<absl::StatusCode>(status.error_code()), StrCat(where, ": ", message)};
}

void PauseBefore(EtcdMember& member) {
  if (member.channel->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) {
    std::this_thread::sleep_for(kPause);
  } else {
    member.channel->WaitForConnected(std::chrono::system_clock::now() + 4 * kPause);
  }
}

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(EtcdOptions options) {
  RouteGrpcLog();
  TY_ASSIGN_OR_RETURN(const auto credentials, Credentials(options));
  std::unique_ptr<EtcdClient> client(new EtcdClient(std::move(options)));
  for (const std::string& address : client->options_.endpoints) {
    const auto channel =
        grpc::CreateCustomChannel(StrCat("dns:///", address), credentials, Arguments(client->options_));
    auto member = std::make_unique<EtcdMember>();
    member->address = address;
    member->channel = channel;
    member->kv = etcdserverpb::KV::NewStub(channel);
    member->watch = etcdserverpb::Watch::NewStub(channel);
    member->lease = etcdserverpb::Lease::NewStub(channel);
    member->auth = etcdserverpb::Auth::NewStub(channel);
    client->members_.push_back(std::move(member));
  }
  return client;
}

std::string EtcdClient::where() const {
  std::string text = "etcd at ";
  for (const std::string& address : options_.endpoints)
    StrAppend(text, text.ends_with(' ') ? "" : ",", address);
  return text;
}

EtcdMember& EtcdClient::member() {
  MutexLock lock(mu_);
  return *members_[current_];
}

void EtcdClient::Leave(const EtcdMember& member) {
  MutexLock lock(mu_);
  // Of many calls that failed on the same member only the first moves on.
  if (members_[current_].get() == &member) current_ = (current_ + 1) % members_.size();
}

void EtcdClient::ForgetToken(const std::string& token) {
  MutexLock lock(mu_);
  if (token_ == token) token_.clear();  // else another thread has got a new one already
}

absl::StatusOr<std::string> EtcdClient::Token() {
  {
    MutexLock lock(mu_);
    if (!token_.empty()) return token_;
  }
  etcdserverpb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  etcdserverpb::AuthenticateResponse response;
  grpc::Status status;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    EtcdMember& asked = member();
    grpc::ClientContext context;
    SetDeadline(context, options_.timeout);
    status = asked.auth->Authenticate(&context, request, &response);
    if (status.ok()) {
      MutexLock lock(mu_);
      token_ = response.token();
      return token_;
    }
    if (Classify(status) == EtcdOutcome::kRefused) break;
    Leave(asked);
  }
  // Nothing is changed by asking for a token, so its outcome is never in doubt.
  const EtcdOutcome outcome = Classify(status);
  return ToStatus(status, outcome == EtcdOutcome::kUnknown ? EtcdOutcome::kNotMade : outcome, where());
}

absl::StatusOr<std::string> EtcdClient::Prepare(grpc::ClientContext& context) {
  if (!options_.token.empty()) {
    context.AddMetadata("token", options_.token);
    return options_.token;
  }
  if (options_.user.empty()) return std::string();
  TY_ASSIGN_OR_RETURN(std::string token, Token());
  context.AddMetadata("token", token);
  return token;
}

absl::Status EtcdClient::Call(Kind kind, Revision asked, const Attempt& attempt) {
  const SteadyTime deadline = Clock::System().Steady() + options_.timeout;
  bool had_new_token = false;
  for (std::size_t tried = 1;; ++tried) {
    EtcdMember& current = member();
    grpc::ClientContext context;
    const absl::StatusOr<std::string> token = Prepare(context);
    EtcdOutcome outcome = EtcdOutcome::kNotMade;
    absl::Status failure = token.status();
    if (token.ok()) {
      // A read may leave time to ask another member.
      const absl::Duration left = deadline - Clock::System().Steady();
      SetDeadline(context,
                  kind == Kind::kRead && members_.size() > 1 ? std::min(left, options_.timeout / 2) : left);
      const grpc::Status status = attempt(current, context);
      if (status.ok()) {
        MutexLock lock(mu_);
        answered_ = true;
        return absl::OkStatus();
      }
      outcome = Classify(status);
      if (outcome == EtcdOutcome::kNewToken && !options_.user.empty() && !had_new_token) {
        had_new_token = true;
        ForgetToken(*token);
        continue;
      }
      if (outcome == EtcdOutcome::kNewToken) outcome = EtcdOutcome::kRefused;
      if (outcome == EtcdOutcome::kUnknown && kind == Kind::kRead) outcome = EtcdOutcome::kNotMade;
      failure = ToStatus(status, outcome, where(), asked);
    } else if (!absl::IsUnavailable(failure)) {
      return failure;
    }
    if (outcome == EtcdOutcome::kRefused) return failure;
    Leave(current);
    if (outcome == EtcdOutcome::kUnknown || GiveUp(tried)) return failure;
    if (tried % members_.size() == 0) PauseBefore(member());
    // Nothing is begun that has no time left: how a write ended that was never sent must not be in doubt.
    if (Clock::System().Steady() >= deadline) return failure;
  }
}

// A cluster that has never answered is more likely misspelt than restarting: each member is asked once.
bool EtcdClient::GiveUp(std::size_t tried) {
  MutexLock lock(mu_);
  return !answered_ && tried >= members_.size();
}

}  // namespace trainyard::kv
