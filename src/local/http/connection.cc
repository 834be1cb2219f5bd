#include "local/http/connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "kube/error.h"
#include "local/http/response_head.h"

namespace trainyard::local {
namespace {

// What a client may send ahead while an earlier request of its is being answered.
constexpr std::size_t kMaxAhead = std::size_t{64} * 1024;
// How long a client that was refused may still take to hear of it.
constexpr absl::Duration kLinger = absl::Seconds(2);
// Steps before other connections have their turn.
constexpr int kMaxSteps = 16;
constexpr int kMaxWrites = 64;

bool IsProbe(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"/healthz", "/livez", "/readyz"}, [&](std::string_view probe) {
        return path.starts_with(probe) && (path.size() == probe.size() || path[probe.size()] == '/');
      });
}

// The token of "Bearer xyz"; empty if it is another scheme.
std::string_view BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return "";
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c) != kScheme[i]) return "";
  }
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

std::string ChunkHead(std::size_t size) {
  std::array<char, 18> text;
  char* end = std::to_chars(text.data(), text.data() + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {text.data(), end};
}

kube::Response ErrorResponse(int code, std::string_view reason, std::string_view message) {
  return kube::ToResponse({.code = code, .reason = std::string(reason), .message = std::string(message)});
}

std::string_view ReasonOf(int code) {
  switch (code) {
    case 408:
      return "Timeout";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    default:
      return "BadRequest";
  }
}

}  // namespace

Connection::Connection(ConnectionHost& host, std::unique_ptr<ByteStream> stream, std::function<void()> wake)
    : host_(host), stream_(std::move(stream)), wake_(std::move(wake)), idle_since_(host.now) {
  SetDeadline(host_.options.head_timeout);
}

Connection::~Connection() {
  if (exchange_ != nullptr) exchange_->Abandon();
}

bool Connection::Advance(bool readable, bool hangup) {
  may_read_ = may_read_ || readable;
  hangup_ = hangup_ || hangup;
  for (int step = 0; state_ != State::kOver; ++step) {
    if (step == kMaxSteps) {
      wake_();
      return true;
    }
    if (exchange_ != nullptr) CollectAnswer();
    Flush();
    if (state_ == State::kAnswering && complete_ && out_.empty()) FinishAnswer();
    if (state_ == State::kIdle && !in_.empty()) {
      Take({});
    } else if (may_read_ && WantsToRead()) {
      Read();
    } else {
      // Behind what it sends ahead the reader has gone.
      if (hangup_ && streaming_) state_ = State::kOver;
      break;
    }
  }
  return state_ != State::kOver;
}

bool Connection::OnTime() {
  switch (state_) {
    case State::kHead:
    case State::kBody:
      Refuse(408, "Timeout", "the request took too long to arrive");
      return Advance(false, false);
    case State::kIdle:
      stream_->EndWriting();
      return false;
    case State::kAnswering:
    case State::kEnding:
    case State::kOver:
      return false;
  }
  return false;
}

// ---- reading

bool Connection::WantsToRead() const {
  switch (state_) {
    case State::kIdle:
    case State::kHead:
    case State::kBody:
    case State::kEnding:
      return true;
    case State::kAnswering:
      return !ended_ && in_.size() < kMaxAhead;
    case State::kOver:
      return false;
  }
  return false;
}

void Connection::Read() {
  if (ended_) return OnEnd();
  const ByteStream::Result got = stream_->Read(host_.in.data(), host_.in.size());
  switch (got.io) {
    case ByteStream::Io::kDone:
      may_read_ = hangup_ || stream_->MayHaveMore();
      return Take({host_.in.data(), got.bytes});
    case ByteStream::Io::kWait:
      may_read_ = false;
      return;
    case ByteStream::Io::kEnd:
      ended_ = true;
      return OnEnd();
    case ByteStream::Io::kBroken:
      state_ = State::kOver;
      return;
  }
}

// A client that closes its side after a request may wait for the answer, but nobody watches that way.
void Connection::OnEnd() {
  if (state_ == State::kAnswering && !streaming_) return;
  if (state_ == State::kEnding && !out_.empty()) {
    may_read_ = false;
    return;
  }
  state_ = State::kOver;
}

void Connection::Take(std::string_view bytes) {
  if (state_ == State::kEnding) return;
  if (state_ == State::kAnswering) {
    in_ += bytes;
    return;
  }
  if (in_.empty()) {
    in_ = std::string(Parse(bytes));
  } else {
    in_ += bytes;
    const std::size_t left = Parse(in_).size();
    in_.erase(0, in_.size() - left);
  }
  // Its memory is kept for a request under way, not for a connection that waits.
  if (state_ == State::kEnding || (in_.empty() && in_.capacity() > 64)) in_ = std::string();
}

// Returns what is left of the bytes.
std::string_view Connection::Parse(std::string_view bytes) {
  while (state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody) {
    if (state_ == State::kIdle) {
      // Empty lines between requests mean nothing.
      while (bytes.starts_with('\r') || bytes.starts_with('\n')) bytes.remove_prefix(1);
      if (bytes.empty()) return bytes;
      parser_.emplace(RequestLimits{.head_bytes = host_.options.max_header_bytes,
                                    .body_bytes = host_.options.max_body_bytes});
      state_ = State::kHead;
      SetDeadline(host_.options.head_timeout);
    }
    const bool head_was_there = parser_->state() != RequestParser::State::kHead;
    bytes.remove_prefix(parser_->Feed(bytes));
    switch (parser_->state()) {
      case RequestParser::State::kHead:
        return bytes;
      case RequestParser::State::kBody:
        if (head_was_there) return bytes;
        OnHead();
        break;
      case RequestParser::State::kWhole:
        if (!head_was_there) OnHead();
        if (state_ == State::kBody) OnWhole();
        break;
      case RequestParser::State::kFailed:
        Refuse(parser_->error().code, ReasonOf(parser_->error().code), parser_->error().message);
        break;
    }
  }
  return bytes;
}

void Connection::OnHead() {
  const RequestHead& head = parser_->head();
  state_ = State::kBody;
  SetDeadline(host_.options.body_timeout);
  keep_alive_ = head.keep_alive;
  http11_ = head.http11;
  head_only_ = head.method == "HEAD";
  identity_ = stream_->identity();
  const std::string_view token = BearerToken(head.authorization);
  if (!identity_ && !token.empty()) identity_ = host_.tokens(token);
  if (!identity_ && IsProbe(head.target)) {
    identity_ = Identity{.user = "system:anonymous", .groups = {"system:unauthenticated"}};
  }
  if (!identity_) parser_->DropBody();
  if (!head.expects_continue || !head.http11 || parser_->state() == RequestParser::State::kWhole) return;
  if (identity_) {
    out_.push_back({.text = "HTTP/1.1 100 Continue\r\n\r\n"});
  } else {
    Refuse(401, "Unauthorized", "Unauthorized");
  }
}

void Connection::OnWhole() {
  state_ = State::kAnswering;
  deadline_ = SteadyTime::Never();
  complete_ = false;
  streaming_ = false;
  if (!identity_) {
    AnswerWhole(ErrorResponse(401, "Unauthorized", "Unauthorized"));
    parser_.reset();
    return;
  }
  RequestHead& head = parser_->head();
  ApiRequest request{.request = {.method = std::move(head.method),
                                 .target = std::move(head.target),
                                 .body = std::move(parser_->body()),
                                 .content_type = std::move(head.content_type),
                                 .accept = std::move(head.accept)},
                     .identity = *std::move(identity_),
                     .user_agent = std::move(head.user_agent)};
  parser_.reset();
  identity_.reset();
  exchange_ = std::make_shared<Exchange>(wake_, host_.options.max_stream_backlog_bytes);
  host_.handler(std::move(request), NewResponder(exchange_));
}

// ---- answering

void Connection::CollectAnswer() {
  Exchange::Collected collected = exchange_->Collect();
  if (collected.head) BeginAnswer(*collected.head);
  if (collected.whole) AnswerWhole(*std::move(collected.whole));
  if (collected.cut || (streaming_ && ended_)) {
    state_ = State::kOver;
    return;
  }
  if (out_.empty() && (!collected.pieces.empty() || collected.closed)) {
    SetDeadline(host_.options.write_timeout);
  }
  if (complete_) return;
  for (std::shared_ptr<const std::string>& piece : collected.pieces) {
    std::string text = http11_ ? ChunkHead(piece->size()) : std::string();
    out_.push_back({.text = std::move(text), .piece = std::move(piece), .chunk = http11_});
  }
  if (!collected.closed) return;
  if (http11_) out_.push_back({.text = "0\r\n\r\n"});
  complete_ = true;
}

void Connection::BeginAnswer(const kube::Response& head) {
  streaming_ = true;
  // Without chunks only the end of the connection can tell the end of the body.
  if (!http11_) keep_alive_ = false;
  out_.push_back({.text = PrintResponseHead(
                      head, {.chunked = http11_, .keep_alive = keep_alive_, .http11 = http11_}, host_.date)});
  complete_ = head_only_;
  SetDeadline(host_.options.write_timeout);
}

void Connection::AnswerWhole(kube::Response response) {
  if (ended_ && in_.empty()) keep_alive_ = false;
  Out out{.text = PrintResponseHead(
              response, {.length = response.body.size(), .keep_alive = keep_alive_, .http11 = http11_},
              host_.date)};
  if (!head_only_ && MayHaveBody(response.code) && !response.body.empty()) {
    out.piece = std::make_shared<const std::string>(std::move(response.body));
  }
  out_.push_back(std::move(out));
  complete_ = true;
  SetDeadline(host_.options.write_timeout);
}

// What else the client has sent, or will, is not looked at: after an error nobody knows where the next
// request begins.
void Connection::Refuse(int code, std::string_view reason, std::string_view message) {
  keep_alive_ = false;
  head_only_ = false;
  AnswerWhole(ErrorResponse(code, reason, message));
  parser_.reset();
  state_ = State::kEnding;
}

void Connection::FinishAnswer() {
  if (exchange_ != nullptr) exchange_->Abandon();
  exchange_.reset();
  streaming_ = false;
  if (!keep_alive_ || (ended_ && in_.empty())) {
    state_ = State::kEnding;
    EndWriting();
  } else {
    state_ = State::kIdle;
    idle_since_ = host_.now;
    SetDeadline(host_.options.idle_timeout);
  }
}

void Connection::EndWriting() {
  stream_->EndWriting();
  if (ended_) {
    state_ = State::kOver;
    return;
  }
  may_read_ = true;
  SetDeadline(kLinger);
}

// ---- writing

// The next bytes to write: at least as many, and the same, as when they were asked for last.
std::string_view Connection::Gather() {
  const Out& first = out_[out_first_];
  if (first.piece != nullptr && out_offset_ >= first.text.size()) {
    const std::string_view rest =
        std::string_view(*first.piece).substr(std::min(out_offset_ - first.text.size(), first.piece->size()));
    if (rest.size() >= host_.out.size()) return rest.substr(0, host_.out.size());
  }
  std::size_t filled = 0;
  std::size_t skip = out_offset_;
  const auto add = [&](std::string_view part) {
    const std::size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    part.remove_prefix(skipped);
    part = part.substr(0, host_.out.size() - filled);
    std::memcpy(host_.out.data() + filled, part.data(), part.size());
    filled += part.size();
  };
  for (std::size_t i = out_first_; i < out_.size() && filled < host_.out.size(); ++i) {
    add(out_[i].text);
    if (out_[i].piece != nullptr) add(*out_[i].piece);
    if (out_[i].chunk) add("\r\n");
  }
  return {host_.out.data(), filled};
}

void Connection::Consume(std::size_t bytes) {
  std::size_t sent = 0;  // of a stream's pieces
  out_offset_ += bytes;
  while (out_first_ < out_.size() && out_offset_ >= out_[out_first_].size()) {
    Out& done = out_[out_first_++];
    out_offset_ -= done.size();
    if (streaming_ && done.piece != nullptr) sent += done.piece->size();
    done = {};
  }
  if (out_first_ == out_.size()) {
    out_first_ = 0;
    out_.clear();
    if (out_.capacity() > 4) out_ = {};
  }
  if (sent > 0) exchange_->Sent(sent);
}

void Connection::Flush() {
  bool wrote = false;
  for (int writes = 0; state_ != State::kOver && !out_.empty(); ++writes) {
    if (writes == kMaxWrites) return wake_();
    const ByteStream::Result put = stream_->Write(Gather());
    if (put.io == ByteStream::Io::kWait) return;
    if (put.io != ByteStream::Io::kDone) {
      state_ = State::kOver;
      return;
    }
    wrote = true;
    Consume(put.bytes);
    SetDeadline(host_.options.write_timeout);
  }
  if (!wrote || state_ == State::kOver) return;
  if (state_ == State::kAnswering) deadline_ = SteadyTime::Never();
  if (state_ == State::kBody) SetDeadline(host_.options.body_timeout);
  if (state_ == State::kEnding) EndWriting();
}

}  // namespace trainyard::local
