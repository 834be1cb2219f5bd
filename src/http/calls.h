// Calls to any server: plain HTTP, many at once, each to a whole URL. Transports to one server are in
// http/client.h; both run on the same engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::http {

struct Call {
  std::string method = "GET";
  std::string url;
  std::string token;                           // as Authorization: Bearer; "": none
  std::string body;                            // JSON
  absl::Duration timeout = absl::Seconds(10);  // of the whole; of a stream, until its head is there
  absl::Duration delay;                        // before it is begun
};

struct Answer {
  int code = 0;
  std::string body;
};

// All from any thread.
class Calls {
 public:
  static absl::StatusOr<std::unique_ptr<Calls>> Start();
  // Ends everything under way with Cancelled.
  virtual ~Calls() = default;

  // `done` comes once, on the thread that drives them, and must not block. Unavailable: there was no answer.
  using Done = std::function<void(absl::StatusOr<Answer>)>;
  using Id = std::uint64_t;
  virtual Id Begin(Call call, Done done) = 0;
  // The same with the body as it comes, piece by piece. The answer's body is empty unless its code is not
  // 2xx. It also ends when the other machine has gone.
  using Some = std::function<void(std::string_view piece)>;
  virtual Id Follow(Call call, Some some, Done done) = 0;
  // It ends with Cancelled, if it has not ended.
  virtual void Cancel(Id id) = 0;

  // All at once; the answers in the order of the calls.
  std::vector<absl::StatusOr<Answer>> DoAll(std::vector<Call> calls);
};

// What a JSON answer that is an error says: its "error", or the code.
std::string ErrorOf(const Answer& answer);

}  // namespace trainyard::http
