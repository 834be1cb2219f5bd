#include "kv/gateway/gateway_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/access.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/etcd/etcd_server_codec.h"
#include "kv/gateway/gateway_json.h"

namespace trainyard::kv {
namespace {

// The largest request in base64, and room for what is around it.
constexpr std::size_t kMaxBody = 2 * kMaxRequestBytes + (std::size_t{1} << 20);
// Who is refused may still be sending; so much of it is read and dropped, so that the answer is seen.
constexpr std::size_t kMaxSwallowed = std::size_t{64} << 20;
constexpr std::size_t kEnoughLines = std::size_t{64} << 10;
constexpr std::size_t kBlock = std::size_t{16} << 10;

absl::Status TooManyRequests() { return absl::ResourceExhaustedError("etcdserver: too many requests"); }
absl::Status Stopped() { return absl::UnavailableError("etcdserver: server stopped"); }

void FreeText(void* text) { delete static_cast<std::string*>(text); }

}  // namespace

// ---- on MHD's thread

std::string_view Exchange::Header(const char* name) const {
  const char* const value = MHD_lookup_connection_value(connection_, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool Exchange::HasToken() const {
  const bool own = IsToken(Header("token"), host_.token);
  return IsToken(Header(MHD_HTTP_HEADER_AUTHORIZATION), host_.token) || own;
}

std::optional<GatewayAnswer> Exchange::Refusal(std::string_view path, std::string_view method,
                                               bool stopping) const {
  if (stopping) return GatewayAnswer::Error(Stopped());
  if (!admitted_) return GatewayAnswer::Error(TooManyRequests());
  if (route_ == nullptr) {
    return GatewayAnswer::Text(404, path.starts_with("/v3/") ? "Not Found\n" : "404 page not found\n");
  }
  const bool head = method == "HEAD" && route_->method == "GET";
  if (method != route_->method && !head) return GatewayAnswer::Text(405, "Method Not Allowed\n");
  if (route_->needs_token && !host_.token.empty() && !HasToken()) {
    host_.wrong_tokens.Note(StrCat(Header("token"), Header(MHD_HTTP_HEADER_AUTHORIZATION)));
    return GatewayAnswer::Error(absl::UnauthenticatedError("etcdserver: invalid auth token"));
  }
  if (host_.token.empty() && !Header(MHD_HTTP_HEADER_ORIGIN).empty()) {
    return GatewayAnswer::Error(
        absl::PermissionDeniedError("web pages may not use a store that is served without a token"));
  }
  const auto length = ParseNumber<std::uint64_t>(Header(MHD_HTTP_HEADER_CONTENT_LENGTH));
  if (length && *length > kMaxBody) return GatewayAnswer::Error(TooLargeWireError());
  return std::nullopt;
}

void Exchange::Begin(std::string_view path, std::string_view method, bool stopping) {
  route_ = FindRoute(path);
  admitted_ = host_.budget.Enter(0);
  std::optional<GatewayAnswer> refusal = Refusal(path, method, stopping);
  MutexLock lock(mu_);
  answer_ = std::move(refusal);
}

void Exchange::Receive(std::string_view data) {
  MutexLock lock(mu_);
  if (!answer_ && body_.size() + data.size() > kMaxBody) answer_ = GatewayAnswer::Error(TooLargeWireError());
  if (!answer_ && !host_.budget.Grow(data.size())) answer_ = GatewayAnswer::Error(TooManyRequests());
  if (answer_) {
    swallowed_ += data.size();
    return;
  }
  held_ += data.size();
  body_ += data;
}

MHD_Result Exchange::Take(const char* data, std::size_t* size) {
  if (*size > 0) {
    Receive({data, *size});
    *size = 0;
    return swallowed_ > kMaxSwallowed ? MHD_NO : MHD_YES;
  }
  {
    MutexLock lock(mu_);
    if (!answer_ && !streaming_) {
      if (std::exchange(dispatched_, true)) return MHD_YES;  // called once more than it had to be
      Suspend();                                             // first: the worker may be quick
    } else if (answer_) {
      return SendAnswer();
    } else {
      return SendStream();
    }
  }
  Dispatch();
  return MHD_YES;
}

void Exchange::Dispatch() {
  if (route_->needs_token) host_.loop.Serve(connection_);
  if (route_->stream) return Wake();
  host_.workers.Post([self = shared_from_this()] {
    self->route_->answer(self->host_.calls, self->body_,
                         [self](GatewayAnswer answer) { self->Answer(std::move(answer)); });
  });
}

MHD_Result Exchange::SendAnswer() {
  auto* const text = new std::string(std::move(answer_->body));  // FreeText() deletes it
  MHD_Response* const response =
      MHD_create_response_from_buffer_with_free_callback_cls(text->size(), text->data(), &FreeText, text);
  if (response == nullptr) {
    FreeText(text);
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer_->content_type.c_str());
  const MHD_Result result = MHD_queue_response(connection_, static_cast<unsigned>(answer_->code), response);
  MHD_destroy_response(response);
  return result;
}

MHD_Result Exchange::SendStream() {
  MHD_Response* const response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &ReadLines, this, nullptr);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info != nullptr) stream_socket_ = info->connect_fd;
  const MHD_Result result = MHD_queue_response(connection_, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return result;
}

ssize_t Exchange::ReadLines(void* self, std::uint64_t /*position*/, char* buffer, std::size_t most) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  std::size_t taken = 0;
  {
    MutexLock lock(exchange.mu_);
    if (exchange.gone_) return MHD_CONTENT_READER_END_WITH_ERROR;
    taken = std::min(most, exchange.lines_.size() - exchange.sent_);
    if (taken == 0) {
      if (exchange.ended_) return MHD_CONTENT_READER_END_OF_STREAM;
      exchange.Suspend();
      return 0;
    }
    std::memcpy(buffer, exchange.lines_.data() + exchange.sent_, taken);
    exchange.sent_ += taken;
    exchange.untaken_ = false;
    if (exchange.sent_ < exchange.lines_.size()) return static_cast<ssize_t>(taken);
    exchange.lines_.clear();
    exchange.sent_ = 0;
  }
  exchange.Wake();
  return static_cast<ssize_t>(taken);
}

void Exchange::Close() {
  std::size_t held = 0;
  {
    MutexLock lock(mu_);
    closed_ = true;
    stream_socket_ = -1;
    held = held_;
  }
  if (admitted_) host_.budget.Leave(held);
  if (route_ != nullptr && route_->stream) Wake();  // the watches go, on a worker
}

// ---- from any thread

void Exchange::Suspend() {
  suspended_ = true;
  MHD_suspend_connection(connection_);
}

void Exchange::Resume() {
  if (std::exchange(suspended_, false)) host_.loop.Resume(connection_);
}

void Exchange::Answer(GatewayAnswer answer) {
  host_.budget.Hold(answer.body.size());
  MutexLock lock(mu_);
  held_ += answer.body.size();
  answer_ = std::move(answer);
  Resume();
}

int Exchange::StreamSocket() const {
  MutexLock lock(mu_);
  return stream_socket_;
}

bool Exchange::IsSuspended() const {
  MutexLock lock(mu_);
  return suspended_;
}

void Exchange::Tick(bool gone) {
  {
    MutexLock lock(mu_);
    if (gone) {
      gone_ = ended_ = true;
      Resume();
      return;
    }
    if (lines_.empty() || !std::exchange(untaken_, true)) return;
    park_ = true;
  }
  Wake();
}

void Exchange::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  if (!streaming_ || ended_) return;
  lines_ += PrintStreamError(Stopped());
  ended_ = true;
  Resume();
}

// ---- on a worker

void Exchange::Wake() {
  const auto self = weak_from_this().lock();
  if (self == nullptr) return;  // on its way out
  {
    MutexLock lock(mu_);
    woken_ = true;
    if (std::exchange(scheduled_, true)) return;
  }
  host_.workers.Post([self] { self->Run(); });
}

void Exchange::Run() {
  while (true) {
    bool closed = false;
    bool park = false;
    bool failed = false;
    {
      MutexLock lock(mu_);
      if (!std::exchange(woken_, false)) {
        scheduled_ = false;
        return;
      }
      closed = closed_;
      park = std::exchange(park_, false);
      failed = answer_.has_value();
    }
    if (closed || failed) {
      stream_ = nullptr;
      continue;
    }
    if (stream_ == nullptr) OpenStream();
    if (stream_ != nullptr && park) stream_->Park();
    if (stream_ != nullptr) Fill();
  }
}

void Exchange::OpenStream() {
  absl::StatusOr<std::unique_ptr<LineStream>> stream = route_->stream(host_.calls, body_, [this] { Wake(); });
  if (!stream.ok()) return Answer(GatewayAnswer::Error(stream.status()));
  {
    MutexLock lock(mu_);
    if (!stopped_) {
      stream_ = *std::move(stream);
      streaming_ = true;
      Resume();
      return;
    }
  }
  Answer(GatewayAnswer::Error(Stopped()));
}

void Exchange::Fill() {
  {
    MutexLock lock(mu_);
    if (!lines_.empty() || ended_) return;
  }
  std::string lines;
  while (lines.size() < kEnoughLines && !stream_->Ended()) {
    std::optional<std::string> line = stream_->Next();
    if (!line) break;
    lines += *line;
  }
  MutexLock lock(mu_);
  if (ended_) return;
  lines_ = std::move(lines);
  ended_ = stream_->Ended();
  if (!lines_.empty() || ended_) Resume();
}

}  // namespace trainyard::kv
