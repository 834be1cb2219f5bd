// One client: its requests in order, each answered before the next is looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/attempt_log.h"
#include "agent/http_answer.h"
#include "agent/http_request.h"
#include "agent/sys.h"

namespace trainyard::agent {

// An answer that is to come. Asked on every turn of the loop; when it is late, it must answer.
struct Pending {
  std::function<std::optional<Answer>(bool late)> ready;
  std::uint64_t until = kNever;
};

// Bytes of a log: to where it ends now or, followed, to where it will.
struct LogStream {
  std::shared_ptr<const AttemptLog> log;
  std::uint64_t from = 0;
  bool follow = false;
};

using Reply = std::variant<Answer, Pending, LogStream>;

// Who answers.
class Calls {
 public:
  virtual ~Calls() = default;
  // Its client has the token.
  virtual bool Trusts(const Request& head) const = 0;
  // Of a head, before its body is read: what keeps it from being handled.
  virtual std::optional<Answer> Refuse(const Request& head) = 0;
  virtual Reply Handle(const Request& request) = 0;
};

struct Timeouts {
  std::uint64_t idle_millis = 30'000;
  std::uint64_t request_millis = 10'000;
};

//   kReading ──▶ kPending ──▶ kReading          kLingering: the last answer is sent, and the client's bytes
//       │  └───▶ kStreaming ─────▲              are thrown away until it closes, or it would lose the answer
//       └──▶ kLingering ──▶ (over)
class Connection {
 public:
  Connection(OwnedFd socket, Calls& calls, const Timeouts& timeouts, std::uint64_t now);

  // What the poller has seen. Takes in a bounded amount.
  void OnEvents(std::uint32_t events, std::uint64_t now);
  // Goes on as far as it can without waiting. To be called on every turn.
  void Advance(std::uint64_t now);

  int fd() const { return socket_.get(); }
  bool over() const { return !socket_.valid(); }
  // It may be closed for another one: nothing of a request has come, or only some from a stranger.
  bool yields() const;
  // An answer is under way.
  bool busy() const;
  // Its last answer is on the way, or sent.
  bool leaving() const { return stage_ == Stage::kLingering; }
  std::uint64_t silent_since() const { return progress_; }
  std::uint32_t wanted() const;  // EPOLLIN and so on
  std::uint64_t deadline() const;

  // Refuses the client that is one too many.
  void TurnAway();

 private:
  enum class Stage : std::uint8_t { kReading, kPending, kStreaming, kLingering };

  void Read(std::uint64_t now);
  void Proceed(std::uint64_t now);
  bool Flush(std::uint64_t now);
  bool Step(std::uint64_t now);
  bool StepReading(std::uint64_t now);
  bool StepStreaming();
  void OnHead();
  void OnRequest(const Request& request);
  void BeginStream(const Request& request, LogStream stream);
  void Send(const Answer& answer);
  void SendLast(const Answer& answer);
  void GiveUp(std::uint64_t now);
  void Close() { socket_.Reset(); }

  OwnedFd socket_;
  Calls& calls_;
  const Timeouts& timeouts_;
  Stage stage_ = Stage::kReading;
  RequestParser parser_;
  bool head_seen_ = false;  // of the request that is being read
  bool keep_alive_ = true;  // after the present answer
  bool input_ended_ = false;
  bool trusted_ = false;  // a request of it had the token
  std::string in_;        // what came before it could be looked at
  std::string out_;       // what could not be sent yet
  Pending pending_;
  LogStream stream_;
  bool chunks_ = true;
  std::uint64_t stream_end_ = 0;  // of one that is not followed
  std::uint64_t request_began_ = 0;
  std::uint64_t progress_ = 0;  // when something last went over the wire
  std::uint64_t linger_until_ = kNever;
};

}  // namespace trainyard::agent
