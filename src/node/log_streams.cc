#include "node/log_streams.h"

#include <sys/epoll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "apiserver/errors.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "node/log_reader.h"
#include "node/loop.h"
#include "node/pod_folder.h"

namespace trainyard::node {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::size_t kMostBacklog = std::size_t{1} << 20;
constexpr absl::Duration kSlowReader = absl::Milliseconds(20);
// What no notice was had of: where inotify is not to be had, or its queue was full.
constexpr absl::Duration kLookAgain = absl::Seconds(1);
constexpr std::uint32_t kChanges = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF;

// The newest run of the container that has a log; the folder has one file "N.log" for each.
std::optional<int> NewestRun(const std::string& log_folder) {
  std::optional<int> newest;
  std::error_code code;
  for (const auto& file : std::filesystem::directory_iterator(log_folder, code)) {
    std::string name = file.path().filename().string();
    if (!name.ends_with(".log")) continue;
    const auto number = ParseNumber<int>(std::string_view(name).substr(0, name.size() - 4));
    if (number && (!newest || *number > *newest)) newest = number;
  }
  return newest;
}

bool RunIsOver(const PodFolder& folder, const std::string& run) {
  const std::vector<StateEvent> events = ReadState(folder);
  return std::ranges::any_of(events, [&run](const StateEvent& event) {
    return event.id == run &&
           (event.kind == StateEvent::Kind::kExited || event.kind == StateEvent::Kind::kFailed);
  });
}

// One client's view of one log.
struct Stream {
  std::uint64_t id = 0;
  PodFolder folder;
  std::string run;
  bool follow = false;
  LogReader reader;
  std::shared_ptr<http::BodyWriter> body;
  std::vector<int> watches;
  std::optional<Loop::TimerId> timer;
};

class Streams final : public LogStreams {
 public:
  Streams(std::string home, std::unique_ptr<Loop> loop) : home_(std::move(home)), loop_(std::move(loop)) {
    inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (inotify_.valid()) {
      loop_->Watch(inotify_.get(), EPOLLIN, [this](std::uint32_t) { TakeNotices(); });
    }
    thread_ = std::thread([this] { loop_->Run(); });
  }

  ~Streams() override {
    loop_->Stop();
    thread_.join();
    streams_.clear();
  }

  void Read(const apiserver::PodLogRequest& request, std::unique_ptr<http::Responder> responder) override {
    // A function that is kept must be copyable.
    auto shared = std::make_shared<std::unique_ptr<http::Responder>>(std::move(responder));
    loop_->Post([this, request, shared] { Begin(request, std::move(*shared)); });
  }

 private:
  void Begin(const apiserver::PodLogRequest& request, std::unique_ptr<http::Responder> responder) {
    const PodFolder folder(home_, request.uid);
    const auto newest = NewestRun(folder.LogFolder(request.container));
    const int attempt = newest.value_or(0) - (request.previous ? 1 : 0);
    LogReader reader(folder.Log(request.container, attempt), {.timestamps = request.timestamps,
                                                              .tail_lines = request.tail_lines,
                                                              .since = request.since,
                                                              .limit_bytes = request.limit_bytes});
    if (!newest || attempt < 0 || !reader.Open().ok()) {
      const std::string whose = StrCat("container \"", request.container, "\" in pod \"", request.pod, "\"");
      return responder->Send(kube::ToResponse(apiserver::BadRequest(
          request.previous ? StrCat("previous terminated ", whose, " not found")
                           : StrCat(whose, " is waiting to start: ",
                                    request.waiting.empty() ? "ContainerCreating" : request.waiting))));
    }
    const std::uint64_t id = ++last_id_;
    auto body = responder->Stream({.code = 200, .content_type = "text/plain"});
    body->OnGone([this, id] { loop_->Post([this, id] { End(id); }); });
    Stream stream{.id = id,
                  .folder = folder,
                  .run = RunId(request.container, attempt),
                  .follow = request.follow,
                  .reader = std::move(reader),
                  .body = std::move(body)};
    if (request.follow) {
      Watch(stream, folder.LogFolder(request.container));
      Watch(stream, folder.path());
    }
    const auto [place, added] = streams_.emplace(id, std::move(stream));
    GoOn(place->second);
  }

  // Sends what there is; the stream may be gone afterwards.
  void GoOn(Stream& stream) {
    if (stream.timer) loop_->Cancel(*std::exchange(stream.timer, std::nullopt));
    while (true) {
      if (stream.body->Backlog() > kMostBacklog) return LookAgain(stream, kSlowReader);
      // Asked before the log is read: whatever a run printed is there before it is over.
      const bool over = !stream.follow || RunIsOver(stream.folder, stream.run);
      std::string piece;
      const LogReader::Progress progress = stream.reader.Read(kPieceBytes, piece);
      if (!piece.empty() && !stream.body->Write(std::make_shared<const std::string>(std::move(piece)))) {
        return End(stream.id);
      }
      if (progress == LogReader::Progress::kMore) continue;
      if (over || progress == LogReader::Progress::kFull) {
        stream.body->Close();
        return End(stream.id);
      }
      return LookAgain(stream, kLookAgain);
    }
  }

  void LookAgain(Stream& stream, absl::Duration later) {
    stream.timer = loop_->At(loop_->clock().Steady() + later, [this, id = stream.id] {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return;
      found->second.timer.reset();
      GoOn(found->second);
    });
  }

  void End(std::uint64_t id) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    if (found->second.timer) loop_->Cancel(*found->second.timer);
    for (const int watch : found->second.watches) {
      std::vector<std::uint64_t>& readers = readers_[watch];
      std::erase(readers, id);
      if (!readers.empty()) continue;
      readers_.erase(watch);
      ::inotify_rm_watch(inotify_.get(), watch);
    }
    streams_.erase(found);
  }

  void Watch(Stream& stream, const std::string& path) {
    const int watch = inotify_.valid() ? ::inotify_add_watch(inotify_.get(), path.c_str(), kChanges) : -1;
    if (watch < 0) return;  // then it is looked at now and then
    readers_[watch].push_back(stream.id);
    stream.watches.push_back(watch);
  }

  void TakeNotices() {
    alignas(inotify_event) char buffer[16 << 10];
    std::vector<std::uint64_t> concerned;
    while (true) {
      const ssize_t size = ::read(inotify_.get(), buffer, sizeof buffer);
      if (size <= 0) break;
      for (const char* at = buffer; at < buffer + size;) {
        const auto* notice = reinterpret_cast<const inotify_event*>(at);
        at += sizeof(inotify_event) + notice->len;
        const auto readers = readers_.find(notice->wd);
        if (readers == readers_.end()) continue;
        concerned.insert(concerned.end(), readers->second.begin(), readers->second.end());
      }
    }
    std::ranges::sort(concerned);
    concerned.erase(std::ranges::unique(concerned).begin(), concerned.end());
    for (const std::uint64_t id : concerned) {
      if (const auto found = streams_.find(id); found != streams_.end()) GoOn(found->second);
    }
  }

  const std::string home_;
  const std::unique_ptr<Loop> loop_;
  Fd inotify_;
  // Of the loop's thread.
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Stream> streams_;
  std::map<int, std::vector<std::uint64_t>> readers_;  // by inotify watch
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LogStreams>> LogStreams::Start(std::string home) {
  TY_ASSIGN_OR_RETURN(std::unique_ptr<Loop> loop, Loop::Make(Clock::System()));
  return std::make_unique<Streams>(std::move(home), std::move(loop));
}

}  // namespace trainyard::node
