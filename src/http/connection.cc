#include "http/connection.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "http/response_head.h"

namespace trainyard::http {
namespace {

// What a client may send ahead while an earlier request of its is being answered.
constexpr std::size_t kMaxAhead = std::size_t{64} * 1024;
// How long a client that was refused may still take to hear of it.
constexpr absl::Duration kLinger = absl::Seconds(2);
// Steps before other connections have their turn.
constexpr int kMaxSteps = 16;
constexpr int kMaxWrites = 64;

}  // namespace

Connection::Connection(ConnectionHost& host, std::unique_ptr<ByteStream> stream, std::function<void()> wake)
    : host_(host), stream_(std::move(stream)), wake_(std::move(wake)), idle_since_(host.now) {
  SetDeadline(host_.options.head_timeout);
}

Connection::~Connection() {
  CountBody(0);
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
    const bool may_finish = state_ == State::kAnswering || state_ == State::kRelaying;
    if (may_finish && complete_ && out_.empty()) FinishAnswer();
    if (state_ == State::kIdle && !in_.empty()) {
      Take({});
    } else if (may_read_ && WantsToRead()) {
      Read();
    } else {
      // Behind what it sends ahead the reader has gone.
      if (hangup_ && EndMeansGone()) state_ = State::kOver;
      break;
    }
  }
  return state_ != State::kOver;
}

bool Connection::OnTime() {
  switch (state_) {
    case State::kHead:
    case State::kBody:
      Refuse(408, "the request took too long to arrive");
      return Advance(false, false);
    case State::kIdle:
      stream_->EndWriting();
      return false;
    case State::kRelaying:
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
    case State::kRelaying:
      return body_->HasRoom();
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
  if (state_ == State::kAnswering && !EndMeansGone()) return;
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
  while (state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody ||
         state_ == State::kRelaying) {
    if (state_ == State::kIdle) {
      // Empty lines between requests mean nothing.
      while (bytes.starts_with('\r') || bytes.starts_with('\n')) bytes.remove_prefix(1);
      if (bytes.empty()) return bytes;
      parser_.emplace(RequestLimits{.head_bytes = host_.options.max_header_bytes,
                                    .body_bytes = host_.options.max_body_bytes,
                                    .relayed = host_.options.relayed,
                                    .all_headers = host_.options.all_headers});
      state_ = State::kHead;
      SetDeadline(host_.options.head_timeout);
    }
    const bool head_was_there = parser_->state() != RequestParser::State::kHead;
    bytes.remove_prefix(parser_->Feed(bytes));
    switch (parser_->state()) {
      case RequestParser::State::kHead:
        return bytes;
      case RequestParser::State::kBody:
        if (state_ == State::kRelaying) HandBodyOn();
        if (!head_was_there) {
          OnHead();
          break;
        }
        if (state_ != State::kBody) return bytes;
        CountBody(parser_->body().size());
        if (host_.body_bytes <= host_.options.max_bodies_bytes) return bytes;
        Refuse(429, "too many requests are arriving");
        break;
      case RequestParser::State::kWhole:
        if (!head_was_there) OnHead();
        if (state_ == State::kBody || state_ == State::kRelaying) OnWhole();
        break;
      case RequestParser::State::kFailed:
        if (state_ == State::kRelaying) {
          state_ = State::kOver;  // an answer may be under way: it has no place for this
          break;
        }
        // Who may not ask is not told how long a body may be.
        if (!head_was_there && parser_->error().code == 413) {
          JudgeHead();
          if (verdict_.refusal) {
            Refuse(*std::exchange(verdict_.refusal, std::nullopt));
            break;
          }
        }
        Refuse(parser_->error().code, parser_->error().message);
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
  JudgeHead();
  admitted_ = admitted_ || verdict_.admitted;
  const bool refused = verdict_.refusal.has_value();
  if (refused) parser_->DropBody();
  const bool whole = parser_->state() == RequestParser::State::kWhole;
  const bool waits = head.expects_continue && head.http11 && !whole;
  // Nor is a body without a bound waited for, to say no behind it.
  if (refused && (waits || (head.relayed && !whole))) return Refuse(*std::move(verdict_.refusal));
  if (waits) out_.Add("HTTP/1.1 100 Continue\r\n\r\n");
  if (refused || !head.relayed) return;
  body_ = std::make_shared<RequestBody>(wake_);
  state_ = State::kRelaying;
  Handle();
}

void Connection::JudgeHead() {
  verdict_ =
      host_.judge == nullptr ? Verdict{.admitted = true} : host_.judge(parser_->head(), stream_->identity());
}

void Connection::OnWhole() {
  const bool handled = state_ == State::kRelaying;
  state_ = State::kAnswering;
  CountBody(0);
  if (handled) {
    HandBodyOn();
    body_->End();
  } else if (!verdict_.refusal) {
    Handle();
  } else {
    complete_ = false;
    streaming_ = false;
    AnswerWhole(*std::exchange(verdict_.refusal, std::nullopt));
  }
  parser_.reset();
}

void Connection::CountBody(std::size_t bytes) {
  host_.body_bytes += bytes - body_bytes_;
  body_bytes_ = bytes;
}

void Connection::HandBodyOn() { body_->Add(std::exchange(parser_->body(), {})); }

// ---- answering

void Connection::Handle() {
  deadline_ = SteadyTime::Never();
  complete_ = false;
  streaming_ = false;
  RequestHead& head = parser_->head();
  ServerRequest request{.request = {.method = std::move(head.method),
                                    .target = std::move(head.target),
                                    .content_type = std::move(head.content_type),
                                    .accept = std::move(head.accept)},
                        .identity = std::move(verdict_.identity),
                        .user_agent = std::move(head.user_agent),
                        .headers = std::move(head.headers),
                        .body = body_,
                        .body_length = head.body_length};
  if (body_ == nullptr) request.request.body = std::move(parser_->body());
  exchange_ = std::make_shared<Exchange>(wake_, host_.options.max_stream_backlog_bytes);
  host_.handler(std::move(request), NewResponder(exchange_, host_.options.print_error));
}

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
    if (chunked_) {
      out_.AddChunk(std::move(piece));
    } else {
      out_.Add("", std::move(piece));
    }
  }
  if (!collected.closed) return;
  if (chunked_) out_.Add("0\r\n\r\n");
  complete_ = true;
}

void Connection::BeginAnswer(const Response& head) {
  streaming_ = true;
  const bool has_body = MayHaveBody(head.code);
  const bool sized = ParseNumber<std::uint64_t>(head.Header("Content-Length")).has_value();
  chunked_ = has_body && !sized && http11_;
  // Without a length or chunks only the end of the connection can tell the end of the body.
  if (has_body && !sized && !http11_) keep_alive_ = false;
  out_.Add(PrintResponseHead(head, {.chunked = chunked_, .keep_alive = keep_alive_, .http11 = http11_},
                             host_.date));
  complete_ = head_only_ || !has_body;
  SetDeadline(host_.options.write_timeout);
}

void Connection::AnswerWhole(Response response) {
  if ((ended_ && in_.empty()) || state_ == State::kRelaying) keep_alive_ = false;
  std::string head = PrintResponseHead(
      response, {.length = response.body.size(), .keep_alive = keep_alive_, .http11 = http11_}, host_.date);
  std::shared_ptr<const std::string> body;
  if (!head_only_ && MayHaveBody(response.code) && !response.body.empty()) {
    body = std::make_shared<const std::string>(std::move(response.body));
  }
  out_.Add(std::move(head), std::move(body));
  complete_ = true;
  SetDeadline(host_.options.write_timeout);
}

// What else the client has sent, or will, is not looked at: after an error nobody knows where the next
// request begins.
void Connection::Refuse(int code, std::string_view message) {
  Refuse(host_.options.print_error(code, message));
}

void Connection::Refuse(Response refusal) {
  CountBody(0);
  keep_alive_ = false;
  head_only_ = false;
  AnswerWhole(std::move(refusal));
  parser_.reset();
  state_ = State::kEnding;
}

void Connection::FinishAnswer() {
  if (exchange_ != nullptr) exchange_->Abandon();
  exchange_.reset();
  body_.reset();
  streaming_ = false;
  // Where the next request begins is only known behind this one's body.
  if (!keep_alive_ || (ended_ && in_.empty()) || state_ == State::kRelaying) {
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

void Connection::Flush() {
  bool wrote = false;
  for (int writes = 0; state_ != State::kOver && !out_.empty(); ++writes) {
    if (writes == kMaxWrites) return wake_();
    const ByteStream::Result put = stream_->Write(out_.Gather(host_.out));
    if (put.io == ByteStream::Io::kWait) return;
    if (put.io != ByteStream::Io::kDone) {
      state_ = State::kOver;
      return;
    }
    wrote = true;
    const std::size_t done = out_.Consume(put.bytes);
    if (streaming_ && done > 0) exchange_->Sent(done);
    SetDeadline(host_.options.write_timeout);
  }
  if (!wrote || state_ == State::kOver) return;
  if (state_ == State::kAnswering || state_ == State::kRelaying) deadline_ = SteadyTime::Never();
  if (state_ == State::kBody) SetDeadline(host_.options.body_timeout);
  if (state_ == State::kEnding) EndWriting();
}

}  // namespace trainyard::http
