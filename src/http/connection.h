// One client's connection: requests in, answers out, in order, and everything that a client may do wrong.
// Knows neither sockets nor TLS nor threads, so that tests and the fuzzer can be the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http/byte_stream.h"
#include "http/connection_table.h"
#include "http/exchange.h"
#include "http/outbox.h"
#include "http/request_parser.h"
#include "http/server.h"

namespace trainyard::http {

// What the connections of one server share. One thread uses it, and all of them.
struct ConnectionHost {
  ServerOptions options;
  Judge judge;
  RequestHandler handler;
  std::size_t body_bytes = 0;  // of all requests that are still arriving
  // The time of this turn; whoever calls a connection keeps them.
  SteadyTime now;
  std::string date;
  // Lent to whoever reads or writes, so that a connection that waits holds no buffers.
  std::vector<char> in = std::vector<char>(std::size_t{64} * 1024);
  std::vector<char> out = std::vector<char>(std::size_t{16} * 1024);  // the most that a TLS record holds
};

//            a byte            the head is good         whole                answer sent
//   kIdle ----------> kHead ------------------> kBody --------> kAnswering ------------> kIdle
//                      | |  is to be relayed             whole   ^ |
//                      | '--------------------> kRelaying -------' |  "Connection: close", or the answer
//                      |   wrong, or too slow      |               |  came before all of the body
//                      '--------------> kEnding <--'---------------'
//                    (sends what is left to send, then reads without
//                    looking until the peer has closed its side too)
//
// In kRelaying whoever handles the request has it already: its body is handed on as it comes, and no faster
// than it is taken, and the answer may be on its way.
class Connection {
 public:
  // `wake` makes the owner call Advance() soon; it is called from any thread.
  Connection(ConnectionHost& host, std::unique_ptr<ByteStream> stream, std::function<void()> wake);
  // Whoever makes the answer is told that nobody waits for it.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Goes as far as it can: collects the answer, writes, reads, handles. `readable`: there may be new bytes to
  // read; `hangup`: the peer has closed its side, behind what is still to be read. False: it is over.
  bool Advance(bool readable, bool hangup);
  // After the deadline has passed. False: it is over.
  bool OnTime();

  SteadyTime deadline() const { return deadline_; }
  // Between two requests, or before the first.
  bool idle() const { return state_ == State::kIdle; }
  // A client is a stranger until a request with an identity is handled.
  Standing standing() const {
    if (exchange_ == nullptr) return admitted_ ? Standing::kIdle : Standing::kStranger;
    return admitted_ ? Standing::kServed : Standing::kStranger;
  }
  // When it was accepted, or had the last answer.
  SteadyTime idle_since() const { return idle_since_; }

 private:
  enum class State : std::uint8_t { kIdle, kHead, kBody, kRelaying, kAnswering, kEnding, kOver };

  bool WantsToRead() const;
  void Read();
  void Take(std::string_view bytes);
  std::string_view Parse(std::string_view bytes);
  void OnHead();
  void JudgeHead();
  void OnWhole();
  void HandBodyOn();
  void OnEnd();
  // Whoever closes its side has gone, and does not just say that it has asked all that it wanted to.
  bool EndMeansGone() const { return streaming_ || body_ != nullptr; }

  void Handle();
  void CollectAnswer();
  void BeginAnswer(const Response& head);
  void AnswerWhole(Response response);
  void Refuse(int code, std::string_view message);
  void Refuse(Response refusal);
  void CountBody(std::size_t bytes);
  void FinishAnswer();
  void EndWriting();

  void Flush();
  void SetDeadline(absl::Duration timeout) { deadline_ = host_.now + timeout; }

  ConnectionHost& host_;
  const std::unique_ptr<ByteStream> stream_;
  const std::function<void()> wake_;
  State state_ = State::kIdle;
  SteadyTime deadline_;
  SteadyTime idle_since_;

  // Input.
  bool may_read_ = true;
  bool hangup_ = false;
  bool ended_ = false;  // the peer will send no more
  std::string in_;      // read, but not parsed yet
  std::optional<RequestParser> parser_;

  // The request that is being answered, and its answer.
  Verdict verdict_;
  bool admitted_ = false;       // a request of it was
  std::size_t body_bytes_ = 0;  // what it has in the host's count
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<RequestBody> body_;  // of one that is relayed
  bool keep_alive_ = true;
  bool http11_ = true;
  bool head_only_ = false;  // HEAD
  bool streaming_ = false;
  bool chunked_ = false;
  bool complete_ = false;  // all of the answer is in out_, or sent

  Outbox out_;
};

}  // namespace trainyard::http
