// A load on an HTTPS server: many connections in one thread, HTTP/1.1 with keep-alive straight over OpenSSL
// and epoll. Lean on purpose: it shares the machine with what it measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/ssl.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/fd.h"

namespace trainyard::bench {

// Where an API server listens on loopback, and what gets a client in.
struct HttpsTarget {
  std::uint16_t port = 0;
  std::string ca_pem;  // empty: whoever answers is believed
  std::string token;
};

struct HttpsAnswer {
  int code = 0;
  std::string body;
};

// Used by one thread. A connection that breaks, or an answer that cannot be read, ends the load: see
// status().
class HttpsLoad {
 public:
  // Connects `count` times, and returns when every handshake is done.
  static absl::StatusOr<std::unique_ptr<HttpsLoad>> Connect(HttpsTarget target, int count);
  ~HttpsLoad();
  HttpsLoad(const HttpsLoad&) = delete;
  HttpsLoad& operator=(const HttpsLoad&) = delete;

  // Called for a whole answer; may send the next request.
  std::function<void(int connection, const HttpsAnswer& answer)> on_answer;
  // Called for each line of a stream's body, without its end.
  std::function<void(int connection, std::string_view line)> on_line;

  // One request; the connection must have answered the last one.
  void Send(int connection, std::string_view method, std::string_view path, std::string_view body = "");
  // A request whose answer never ends: its lines are told as they come.
  void Stream(int connection, std::string_view path);
  // One request and its answer.
  absl::StatusOr<HttpsAnswer> Ask(int connection, std::string_view method, std::string_view path,
                                  std::string_view body = "");

  // Handles what has come, or waits for it at most so long.
  void Turn(absl::Duration most);
  // Turns until the condition holds. DeadlineExceeded: it did not; else why the load has ended.
  absl::Status TurnUntil(const std::function<bool()>& condition, absl::Duration most);

  const absl::Status& status() const { return status_; }
  int streams() const { return streams_; }  // how many have begun
  int size() const { return static_cast<int>(connections_.size()); }
  // When the present turn began to handle what had come.
  SteadyTime now() const { return now_; }

 private:
  struct Connection;
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  explicit HttpsLoad(HttpsTarget target);
  absl::Status Open(int count);
  absl::Status OpenOne(int index);
  void Handshake(Connection& connection);
  void Write(Connection& connection);
  void Read(Connection& connection);
  void Parse(Connection& connection);
  bool ParseHead(Connection& connection);
  bool ParseChunk(Connection& connection);
  void Take(Connection& connection, std::string_view piece);
  void Finish(Connection& connection);
  void Fail(std::string_view what);

  const HttpsTarget target_;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  Fd epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  int ready_ = 0;  // handshakes done
  int streams_ = 0;
  SteadyTime now_;
  absl::Status status_;
};

}  // namespace trainyard::bench
