// Calls to agents and launchers: plain HTTP, many at once, one thread that drives all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::launch {

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::string token;                           // as Authorization: Bearer; "": none
  std::string body;                            // JSON
  absl::Duration timeout = absl::Seconds(10);  // of the whole; a stream has none
  absl::Duration delay;                        // before it is begun
};

struct HttpAnswer {
  int code = 0;
  std::string body;
};

// All from any thread.
class HttpCalls {
 public:
  static absl::StatusOr<std::unique_ptr<HttpCalls>> Start();
  // Ends everything under way with Cancelled.
  virtual ~HttpCalls() = default;

  // `done` comes once, on the thread that drives them, and must not block. Unavailable: there was no answer.
  using Done = std::function<void(absl::StatusOr<HttpAnswer>)>;
  using Id = std::uint64_t;
  virtual Id Begin(HttpCall call, Done done) = 0;
  // The same with the body as it comes: `some` is told each piece, and ends it by returning false. The
  // answer's body is empty unless its code is not 2xx. It also ends when the other machine has gone.
  using Some = std::function<bool(std::string_view piece)>;
  virtual Id Follow(HttpCall call, Some some, Done done) = 0;
  // It ends with Cancelled, if it has not ended.
  virtual void Cancel(Id id) = 0;

  // All at once; the answers in the order of the calls.
  std::vector<absl::StatusOr<HttpAnswer>> DoAll(std::vector<HttpCall> calls);
};

// What a JSON answer that is an error says: its "error", or the code.
std::string ErrorOf(const HttpAnswer& answer);

}  // namespace trainyard::launch
