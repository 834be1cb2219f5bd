#include "agent/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

namespace trainyard::agent {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kStreamBytes = std::size_t{16} << 10;
constexpr std::uint64_t kLingerMillis = 2'000;

}  // namespace

Connection::Connection(OwnedFd socket, Calls& calls, const Timeouts& timeouts, std::uint64_t now)
    : socket_(std::move(socket)), calls_(calls), timeouts_(timeouts), request_began_(now), progress_(now) {}

bool Connection::yields() const {
  return stage_ == Stage::kReading && out_.empty() && in_.empty() && !(trusted_ && parser_.begun());
}

bool Connection::busy() const {
  return !out_.empty() || stage_ == Stage::kPending || stage_ == Stage::kStreaming;
}

std::uint32_t Connection::wanted() const {
  std::uint32_t events = 0;
  // What cannot be looked at yet is not read either.
  if (in_.empty() && !input_ended_) events |= EPOLLIN;
  if (stage_ == Stage::kPending || stage_ == Stage::kStreaming) events |= EPOLLRDHUP;
  const bool blocked = !out_.empty() || (stage_ == Stage::kStreaming && stream_.from < stream_.log->end());
  return blocked ? events | EPOLLOUT : events;
}

std::uint64_t Connection::deadline() const {
  if (stage_ == Stage::kLingering && out_.empty()) return linger_until_;
  if (stage_ == Stage::kStreaming) {
    return wanted() & EPOLLOUT ? progress_ + timeouts_.idle_millis : kNever;
  }
  if (!out_.empty()) return progress_ + timeouts_.request_millis;
  if (stage_ == Stage::kPending) return pending_.until;
  if (parser_.begun()) return request_began_ + timeouts_.request_millis;
  return progress_ + timeouts_.idle_millis;
}

void Connection::OnEvents(std::uint32_t events, std::uint64_t now) {
  // A client that hangs up while it waits for an answer will not read it.
  const bool waits = stage_ == Stage::kPending || stage_ == Stage::kStreaming;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 || (waits && (events & EPOLLRDHUP) != 0)) return Close();
  if ((events & EPOLLIN) != 0) Read(now);
}

void Connection::Read(std::uint64_t now) {
  static char room[kReadBytes];
  if (!in_.empty() || input_ended_) return;
  const ssize_t got = ::recv(socket_.get(), room, sizeof room, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Close();
  if (got == 0) {
    input_ended_ = true;
    if (stage_ == Stage::kLingering && out_.empty()) Close();
    return;
  }
  if (stage_ == Stage::kLingering) return;
  if (!parser_.begun()) request_began_ = now;
  progress_ = now;
  in_.assign(room, static_cast<std::size_t>(got));
}

void Connection::Advance(std::uint64_t now) {
  Proceed(now);
  if (over() || now < deadline()) return;
  GiveUp(now);
  Proceed(now);
}

void Connection::Proceed(std::uint64_t now) {
  // A reader that is as fast as a disk shall not keep the loop from the others.
  constexpr int kStepsAtOnce = 64;
  for (int steps = 0; !over() && Flush(now) && Step(now); ++steps) {
    if (stage_ == Stage::kStreaming && steps >= kStepsAtOnce) return;
  }
}

void Connection::GiveUp(std::uint64_t now) {
  const bool waits_for_request = stage_ == Stage::kReading && out_.empty() && parser_.begun();
  if (waits_for_request) {
    return SendLast(ErrorAnswer(408, "the request did not come to its end in time: send it again, faster"));
  }
  if (stage_ != Stage::kPending || !out_.empty()) return Close();
  pending_.until = now;
}

// True: all is sent.
bool Connection::Flush(std::uint64_t now) {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t got = ::send(socket_.get(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      Close();
      return false;
    }
    sent += static_cast<std::size_t>(got);
    progress_ = now;
  }
  out_.erase(0, sent);
  return out_.empty();
}

// True: there is more to do.
bool Connection::Step(std::uint64_t now) {
  switch (stage_) {
    case Stage::kReading:
      return StepReading(now);
    case Stage::kPending: {
      const std::optional<Answer> answer = pending_.ready(now >= pending_.until);
      if (!answer) return false;
      pending_ = {};
      Send(*answer);
      return true;
    }
    case Stage::kStreaming:
      return StepStreaming();
    case Stage::kLingering:
      if (linger_until_ != kNever) return false;
      linger_until_ = now + kLingerMillis;
      in_.clear();
      ::shutdown(socket_.get(), SHUT_WR);
      if (input_ended_) Close();
      return false;
  }
  return false;
}

bool Connection::StepReading(std::uint64_t now) {
  if (in_.empty()) {
    if (input_ended_) Close();
    return false;
  }
  if (!parser_.begun()) request_began_ = now;
  in_.erase(0, parser_.Feed(in_));
  switch (parser_.stage()) {
    case RequestParser::Stage::kHead:
      break;
    case RequestParser::Stage::kBad:
      SendLast(ErrorAnswer(parser_.bad().code, parser_.bad().what));
      break;
    case RequestParser::Stage::kBody:
      OnHead();
      break;
    case RequestParser::Stage::kDone:
      OnRequest(parser_.Take());
      break;
  }
  return true;
}

void Connection::OnHead() {
  if (head_seen_) return;
  head_seen_ = true;
  if (const auto refusal = calls_.Refuse(parser_.request())) return SendLast(*refusal);
  if (parser_.awaits_continue() && in_.empty()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void Connection::OnRequest(const Request& request) {
  const bool head_seen = std::exchange(head_seen_, false);
  keep_alive_ = request.keep_alive;
  if (!head_seen) {
    if (const auto refusal = calls_.Refuse(request)) return Send(*refusal);
  }
  trusted_ = trusted_ || calls_.Trusts(request);
  Reply reply = calls_.Handle(request);
  if (const Answer* answer = std::get_if<Answer>(&reply)) return Send(*answer);
  if (LogStream* stream = std::get_if<LogStream>(&reply)) return BeginStream(request, std::move(*stream));
  pending_ = std::get<Pending>(std::move(reply));
  stage_ = Stage::kPending;
}

void Connection::Send(const Answer& answer) {
  out_ += PrintAnswer(answer, keep_alive_);
  stage_ = keep_alive_ ? Stage::kReading : Stage::kLingering;
}

void Connection::SendLast(const Answer& answer) {
  keep_alive_ = false;
  Send(answer);
}

void Connection::BeginStream(const Request& request, LogStream stream) {
  stream_ = std::move(stream);
  stream_end_ = stream_.log->end();
  chunks_ = request.chunks && stream_.follow;
  keep_alive_ = request.keep_alive && (chunks_ || !stream_.follow);
  LogHead head{.from = stream_.from, .chunks = chunks_, .keep_alive = keep_alive_};
  if (!stream_.follow) head.size = stream_end_ - stream_.from;
  out_ += PrintLogHead(head);
  stage_ = Stage::kStreaming;
}

bool Connection::StepStreaming() {
  const std::uint64_t end = stream_.follow ? stream_.log->end() : stream_end_;
  if (stream_.from < end) {
    // What the client is too slow for was dropped. It sees that this answer has no end, and asks again.
    std::string bytes;
    if (stream_.from >= stream_.log->begin()) {
      bytes = stream_.log->Read(
          stream_.from, static_cast<std::size_t>(std::min<std::uint64_t>(end - stream_.from, kStreamBytes)));
    }
    if (bytes.empty()) {
      Close();
      return false;
    }
    stream_.from += bytes.size();
    out_ = chunks_ ? PrintChunk(bytes) : std::move(bytes);
    return true;
  }
  if (stream_.follow && !stream_.log->closed()) return false;
  stream_ = {};
  if (chunks_) out_ += kLastChunk;
  stage_ = keep_alive_ ? Stage::kReading : Stage::kLingering;
  return true;
}

void Connection::TurnAway() {
  SendLast(ErrorAnswer(503, "there are too many connections: close some, or come back later"));
}

}  // namespace trainyard::agent
