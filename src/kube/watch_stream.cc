#include "kube/watch_stream.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "kube/json_slice.h"

namespace trainyard::kube {
namespace {

// Beyond this much that has been given out, the rest is moved to the front.
constexpr std::size_t kSlack = std::size_t{64} * 1024;

std::optional<WatchEventType> ParseType(std::string_view text) {
  if (text == "ADDED") return WatchEventType::kAdded;
  if (text == "MODIFIED") return WatchEventType::kModified;
  if (text == "DELETED") return WatchEventType::kDeleted;
  if (text == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

class HttpWatchStream final : public WatchStream {
 public:
  HttpWatchStream(std::unique_ptr<BodyReader> body, Clock& clock, std::string what)
      : body_(std::move(body)), clock_(clock), what_(std::move(what)) {}

  absl::StatusOr<WatchEvent> Next(absl::Duration timeout) override {
    absl::StatusOr<WatchEvent> event = Advance(timeout);
    if (!event.ok() && !absl::IsDeadlineExceeded(event.status())) ended_ = event.status();
    return event;
  }

  void Cancel() override { body_->Cancel(); }

 private:
  absl::StatusOr<WatchEvent> Advance(absl::Duration timeout) {
    const SteadyTime deadline = clock_.Steady() + timeout;
    while (ended_.ok()) {
      TY_ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines_.Next());
      if (line) return Annotated(ParseWatchEvent(*line));
      const absl::Duration left = deadline == SteadyTime::Never()
                                      ? absl::InfiniteDuration()
                                      : std::max(deadline - clock_.Steady(), absl::ZeroDuration());
      TY_ASSIGN_OR_RETURN(const std::string bytes, body_->Read(left));
      if (bytes.empty()) return absl::UnavailableError(StrCat("the watch of ", what_, " ended; resume it"));
      lines_.Feed(bytes);
    }
    return ended_;
  }

  absl::StatusOr<WatchEvent> Annotated(absl::StatusOr<WatchEvent> event) const {
    if (event.ok()) return event;
    return Annotate(event.status(), StrCat("the watch of ", what_));
  }

  std::unique_ptr<BodyReader> body_;
  Clock& clock_;
  std::string what_;
  LineCutter lines_{kMaxWatchLine};
  absl::Status ended_;
};

}  // namespace

void LineCutter::Feed(std::string_view bytes) {
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = scanned_ = 0;
  } else if (start_ > kSlack && start_ > buffer_.size() / 2) {
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
  }
  buffer_.append(bytes);
}

absl::StatusOr<std::optional<std::string_view>> LineCutter::Next() {
  while (true) {
    const std::size_t end = buffer_.find('\n', scanned_);
    scanned_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (scanned_ - start_ > longest_) {
      return absl::ResourceExhaustedError(
          StrCat("a line of a watch has more than ", FormatBytes(longest_), "; no object is that large"));
    }
    if (end == std::string::npos) return std::nullopt;
    const std::string_view line = std::string_view(buffer_).substr(start_, end - start_);
    start_ = scanned_;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) return line;
  }
}

absl::StatusOr<WatchEvent> ParseWatchEvent(std::string_view line) {
  TY_ASSIGN_OR_RETURN(EventSlice slice, SliceEvent(line));
  if (slice.type == "ERROR") return ToStatus(Response{.code = 500, .body = std::move(slice.object)});
  const std::optional<WatchEventType> type = ParseType(slice.type);
  if (!type || slice.object.empty()) {
    return absl::InternalError(StrCat("the server sent what is no watch event: its type is \"",
                                      Escaped(slice.type), "\"",
                                      slice.object.empty() ? ", without object" : ""));
  }
  return WatchEvent{.type = *type, .object = std::move(slice.object)};
}

std::string_view PrintWatchEventType(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded:
      return "ADDED";
    case WatchEventType::kModified:
      return "MODIFIED";
    case WatchEventType::kDeleted:
      return "DELETED";
    case WatchEventType::kBookmark:
      return "BOOKMARK";
  }
  return "";
}

std::unique_ptr<WatchStream> NewWatchStream(std::unique_ptr<BodyReader> body, Clock& clock,
                                            std::string what) {
  return std::make_unique<HttpWatchStream>(std::move(body), clock, std::move(what));
}

}  // namespace trainyard::kube
