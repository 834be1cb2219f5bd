#include "launch/task_logs.h"

#include <list>
#include <set>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/text.h"
#include "kube/http.h"

namespace trainyard::launch {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(500);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);
constexpr std::size_t kLongestLine = std::size_t{64} << 10;
constexpr std::size_t kMostReaders = 500;  // each is a thread

class Merger {
 public:
  Merger(Controller& controller, const LogQuery& query, http::ServiceStream& stream)
      : controller_(controller), query_(query), stream_(stream) {}

  void Run() {
    std::uint64_t seen = 0;
    while (!stream_.closed()) {
      const std::shared_ptr<const StoredTask> task = controller_.Find(query_.task);
      const bool last = !query_.follow || task == nullptr || IsOver(task->status.phase);
      BeginNew();
      if (last) break;
      seen = controller_.AwaitChange(seen, kLookEvery);
    }
    for (std::thread& reader : readers_) reader.join();
  }

 private:
  // A reader for each pod that has something to tell and has none yet.
  void BeginNew() {
    for (const auto& pod : controller_.PodsOf(query_.task)) {
      const auto member = MemberOf(*pod);
      if (!member || (query_.member && *member != *query_.member)) continue;
      if (pod->phase == kube::PodPhase::kPending || begun_.size() >= kMostReaders ||
          !begun_.insert(pod->meta.uid).second)
        continue;
      readers_.emplace_back([this, uid = pod->meta.uid, member = *member] { Read(uid, member); });
    }
  }

  // To the end of the pod's log; what breaks is begun again behind what was told already.
  void Read(const std::string& uid, const MemberId& member) {
    std::size_t told = 0;
    while (!ReadOnce(member, told) && query_.follow && !stream_.closed() && Lives(uid))
      absl::SleepFor(kBetweenTries);
  }

  bool Lives(const std::string& uid) const {
    for (const auto& pod : controller_.PodsOf(query_.task)) {
      if (pod->meta.uid == uid) return true;
    }
    return false;
  }

  // True: it came to its end.
  bool ReadOnce(const MemberId& member, std::size_t& told) {
    std::string target = StrCat(
        kube::ResourcePath(kube::Resource::Pods(), controller_.ns(), PodName(query_.task, member), "log"),
        "?container=", ContainerName(member.role));
    if (query_.follow) target += "&follow=true";
    if (query_.tail && told == 0) StrAppend(target, "&tailLines=", *query_.tail);
    absl::StatusOr<kube::OpenedResponse> opened =
        controller_.api().transport().Open({.target = target, .accept = "*/*"});
    if (!opened.ok() || opened->body == nullptr) return false;
    std::size_t skip = told;
    std::string line;
    while (!stream_.closed()) {
      const absl::StatusOr<std::string> bytes = opened->body->Read(kLookEvery);
      if (absl::IsDeadlineExceeded(bytes.status())) continue;
      if (!bytes.ok()) return false;
      if (bytes->empty()) break;
      for (const char c : *bytes) {
        if (skip > 0) {
          --skip;
          continue;
        }
        line += c;
        if (c != '\n' && line.size() < kLongestLine) continue;
        told += line.size();
        Tell(member, std::exchange(line, {}));
      }
    }
    if (!line.empty()) Tell(member, std::move(line));
    return true;
  }

  void Tell(const MemberId& member, std::string line) {
    if (!line.ends_with('\n')) line += '\n';
    if (!query_.member) line = StrCat("[", Print(member), "] ", line);
    const MutexLock lock(mu_);  // lines stay whole
    stream_.Write(line);
  }

  Controller& controller_;
  const LogQuery& query_;
  http::ServiceStream& stream_;
  std::set<std::string> begun_;
  std::list<std::thread> readers_;
  Mutex mu_;
};

}  // namespace

void WriteLogs(Controller& controller, const LogQuery& query, http::ServiceStream& stream) {
  Merger(controller, query, stream).Run();
}

}  // namespace trainyard::launch
