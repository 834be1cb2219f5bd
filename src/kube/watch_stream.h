// Watch events out of the bytes of an answer's body: one JSON document a line.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/api.h"

namespace trainyard::kube {

// An object has 1.5 MiB at most in etcd; as JSON, with its managed fields, some multiple of that.
inline constexpr std::size_t kMaxWatchLine = std::size_t{64} * 1024 * 1024;

// Cuts a stream of bytes into lines, wherever its chunks begin and end. White space between lines is passed
// over.
class LineCutter {
 public:
  explicit LineCutter(std::size_t longest) : longest_(longest) {}
  void Feed(std::string_view bytes);
  // The next whole line, valid until the next call of either; nothing until more is fed. ResourceExhausted: a
  // line longer than the bound.
  absl::StatusOr<std::optional<std::string_view>> Next();

 private:
  std::size_t longest_;
  std::string buffer_;
  std::size_t start_ = 0;    // of what has not been given out
  std::size_t scanned_ = 0;  // no line ends before here
};

// What one line of a watch says. An ERROR event is the status that it carries: OutOfRange (IsGone) if the
// version asked for is too old. Internal: the line is no watch event.
absl::StatusOr<WatchEvent> ParseWatchEvent(std::string_view line);

// Reads the events of a watch that is open. `what` names it in messages. The clock must outlive the stream.
std::unique_ptr<WatchStream> NewWatchStream(std::unique_ptr<BodyReader> body, Clock& clock, std::string what);

}  // namespace trainyard::kube
