// trainyard logs
#include <algorithm>
#include <cmath>
#include <iostream>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/jobs_common.h"
#include "kube/error.h"
#include "kube/http.h"
#include "view/diagnosis.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kJobLogsPollInterval = absl::Milliseconds(300);
constexpr absl::Duration kJobLogsRetryInterval = absl::Milliseconds(200);
constexpr absl::Duration kReadSlice = absl::Milliseconds(200);
constexpr std::size_t kMostFollowed = 500;

struct LogChoice {
  std::string member;  // "": all
  std::optional<absl::Duration> since;
  std::optional<std::int64_t> tail;
  bool previous = false;
  bool timestamps = false;
};

// "2024-05-01T10:00:00.123456789Z text" in two.
std::pair<std::string_view, std::string_view> SplitTime(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {line, ""};
  return {line.substr(0, space), line.substr(space + 1)};
}

std::string LogTarget(const view::Job& job, const view::Member& member, const LogChoice& choice, bool follow,
                      bool previous, std::string_view since_time = "") {
  std::string target =
      StrCat(kube::ResourcePath(kube::Resource::Pods(), job.ns, member.pod, "log"), "?timestamps=true");
  if (!member.container.empty()) StrAppend(target, "&container=", kube::PercentEncoded(member.container));
  if (follow) target += "&follow=true";
  if (previous) target += "&previous=true";
  if (!since_time.empty()) {
    StrAppend(target, "&sinceTime=", kube::PercentEncoded(since_time));
  } else if (choice.since) {
    const auto seconds = static_cast<std::int64_t>(std::ceil(absl::ToDoubleSeconds(*choice.since)));
    StrAppend(target, "&sinceSeconds=", std::max<std::int64_t>(seconds, 1));
  }
  if (choice.tail && since_time.empty()) StrAppend(target, "&tailLines=", *choice.tail);
  return target;
}

// The log of one pod while it is written, on a thread of its own. A stream that breaks is opened again where
// it broke, and one whose container is started again goes on with the next.
class PodFollower {
 public:
  PodFollower(kube::Api& api, view::Job job, view::Member member, LogChoice choice, LinePrinter& printer)
      : api_(api),
        job_(std::move(job)),
        member_(std::move(member)),
        choice_(std::move(choice)),
        printer_(printer),
        thread_([this] { Run(); }) {}
  ~PodFollower() {
    Stop();
    thread_.join();
  }
  PodFollower(const PodFollower&) = delete;
  PodFollower& operator=(const PodFollower&) = delete;

  const std::string& uid() const { return member_.uid; }
  void Stop() {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  // Nothing more will be written: what is there is read once more, and that is all.
  void Finish() {
    const MutexLock lock(mu_);
    last_round_ = true;
  }
  bool ended() const {
    const MutexLock lock(mu_);
    return ended_;
  }
  // Once it has ended: whether it has read any line.
  bool has_read() const { return !last_time_.empty(); }

 private:
  enum class Outcome : std::uint8_t { kWhole, kBroke, kGone };

  bool stopping() const {
    const MutexLock lock(mu_);
    return stopping_;
  }
  bool last_round() const {
    const MutexLock lock(mu_);
    return last_round_;
  }

  void Run() {
    while (!stopping()) {
      const bool last = last_round();
      const Outcome outcome = ReadOnce();
      if (outcome == Outcome::kGone || last) break;
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(kJobLogsRetryInterval));
    }
    const MutexLock lock(mu_);
    ended_ = true;
  }

  Outcome ReadOnce() {
    auto opened = api_.transport().Open(
        {.target = LogTarget(job_, member_, choice_, true, false, last_time_), .accept = "*/*"});
    if (!opened.ok()) return Outcome::kBroke;
    if (opened->body == nullptr) {
      const int code = opened->head.code;
      if (code == 401 || code == 403) {
        std::cerr << "the log of " << member_.name << " may not be read (" << code << ")" << std::endl;
        return Outcome::kGone;
      }
      return code == 404 ? Outcome::kGone : Outcome::kBroke;  // else it has not started yet
    }
    // Logs are had by a pod's name, which another may have by now: its lines are its own follower's.
    const auto pod =
        api_.Do(kube::ForMetadata(kube::GetOperation(kube::Resource::Pods(), {job_.ns, member_.pod})));
    if (!pod.ok() && !kube::IsNotFound(pod.status())) return Outcome::kBroke;
    if (pod.ok()) {
      const auto known = ParseJson(*pod);
      if (!known.ok() || StringAt(*known, {"metadata", "uid"}) != member_.uid) return Outcome::kGone;
    }
    // Lines of the time at which it broke come again: so many of them are known.
    skip_ = last_time_.empty() ? 0 : shown_at_last_time_;
    LineSplitter lines;
    while (!stopping()) {
      const auto piece = opened->body->Read(kReadSlice);
      if (absl::IsDeadlineExceeded(piece.status())) continue;
      if (!piece.ok()) return Outcome::kBroke;  // half a line comes again whole
      if (piece->empty()) {
        if (!lines.rest().empty()) Take(lines.rest());
        return Outcome::kWhole;
      }
      lines.Add(*piece, [this](std::string_view line) { Take(line); });
    }
    return Outcome::kGone;
  }

  void Take(std::string_view line) {
    const auto [time, text] = SplitTime(line);
    if (skip_ > 0 && time <= last_time_) {
      --skip_;
      return;
    }
    skip_ = 0;
    if (time != last_time_) {
      last_time_ = std::string(time);
      shown_at_last_time_ = 0;
    }
    ++shown_at_last_time_;
    if (!printer_.Print(member_.name, choice_.timestamps ? line : text)) Stop();
  }

  kube::Api& api_;
  const view::Job job_;
  const view::Member member_;
  const LogChoice choice_;
  LinePrinter& printer_;
  // Of the thread: when the last line was written, how many of that time were shown, and how many come again.
  std::string last_time_;
  int shown_at_last_time_ = 0;
  int skip_ = 0;
  mutable Mutex mu_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  bool last_round_ TY_GUARDED_BY(mu_) = false;
  bool ended_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class JobLogs final : public Command {
 public:
  std::string name() const override { return "logs"; }
  std::string summary() const override { return "Show what a job's members write, also those that are gone"; }
  std::string details() const override {
    return "Each line has its member before it. Of pods that are gone the last lines are kept as long as the "
           "job is.\n\n"
           "Examples:\n"
           "  trainyard logs mnist -f\n"
           "  trainyard logs tfjob/dist-mnist --member worker-1 --since 5m\n"
           "  trainyard logs mnist --previous";
  }
  void Declare(Flags& flags) override {
    flags.Argument("JOB", "NAME or KIND/NAME", job_);
    flags.Switch({.name = "-f,--follow", .help = "Go on until the job is over"}, follow_);
    flags.Text({.name = "--member", .value = "NAME", .help = "Only this one: worker-1"}, choice_.member);
    flags.Switch({.name = "-p,--previous", .help = "Only of pods and containers that are gone"},
                 choice_.previous);
    flags.Duration({.name = "--since", .value = "TIME", .help = "Only lines that are not older: 5m"},
                   choice_.since);
    flags.Number({.name = "--tail", .value = "N", .help = "Of each pod that runs only the last lines"},
                 choice_.tail);
    flags.Switch({.name = "--timestamps", .help = "With the time of each line, where it is known"},
                 choice_.timestamps);
    jobs_.Declare(flags);
  }

  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    if (follow_ && choice_.previous)
      return UsageError("what is gone cannot be followed: --follow or --previous");
    if (choice_.tail.value_or(0) < 0) return UsageError("--tail must not be below 0");
    if (choice_.since && *choice_.since <= absl::ZeroDuration()) return UsageError("--since must be above 0");
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    TY_ASSIGN_OR_RETURN(view::Job job, FindNamed(*client, job_));
    TY_ASSIGN_OR_RETURN(view::JobPage page, view::ReadMembers(client->api(), std::move(job)));
    TY_RETURN_IF_ERROR(CheckMember(page));
    ShowGone(page);
    return follow_ ? Follow(*client, std::move(page), signals) : ShowLogs(*client, page, choice_.previous);
  }

 private:
  bool IsChosen(std::string_view member) const { return choice_.member.empty() || choice_.member == member; }

  absl::Status CheckMember(const view::JobPage& page) const {
    std::set<std::string> names;
    for (const view::Member& member : page.members) names.insert(member.name);
    for (const kube::GonePod& gone : page.history) names.insert(gone.member);
    if (choice_.member.empty() || names.contains(choice_.member)) return absl::OkStatus();
    std::string list;
    for (const std::string& one : names) StrAppend(list, list.empty() ? "" : ", ", one);
    return absl::NotFoundError(StrCat(page.job.Id(), " has no member '", Escaped(choice_.member), "': there ",
                                      names.empty() ? "are none yet" : StrCat("are ", list)));
  }

  // What is kept, of those that were not shown yet.
  void ShowGone(const view::JobPage& page) {
    const absl::Time now = absl::Now();
    for (const kube::GonePod& gone : page.history) {
      if (!IsChosen(gone.member) || followed_.contains(gone.uid) || !shown_.insert(gone.uid).second) continue;
      if (choice_.since && gone.ended < now - *choice_.since) continue;
      if (gone.cut) printer_.Print(gone.member, "... (only the end is kept)");
      LineSplitter lines;
      std::string text = gone.log;
      if (!text.empty() && !text.ends_with('\n')) text += '\n';
      lines.Add(text, [&](std::string_view line) { printer_.Print(gone.member, line); });
      printer_.Print(gone.member,
                     StrCat("--- pod ", gone.pod, " is gone", gone.cause.empty() ? "" : ": ", gone.cause));
    }
  }

  // All that is there, by time.
  absl::Status ShowLogs(JobsClient& client, const view::JobPage& page, bool previous) {
    std::vector<const view::Member*> members;
    std::vector<kube::Operation> reads;
    for (const view::Member& member : page.members) {
      if (!IsChosen(member.name) || (previous && !member.has_previous)) continue;
      members.push_back(&member);
      reads.push_back(
          {.request = {.target = LogTarget(page.job, member, choice_, false, previous), .accept = "*/*"}});
    }
    struct Line {
      std::string_view time;
      std::string_view text;
      const view::Member* member;
    };
    const auto answers = client.api().Do(std::move(reads));
    std::vector<Line> lines;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].ok()) {
        if (members[i]->runs || members[i]->state == "Completed" || members[i]->state == "Failed")
          std::cerr << "the log of " << members[i]->name
                    << " cannot be read: " << Message(answers[i].status()) << std::endl;
        continue;
      }
      std::string_view rest = *answers[i];
      if (rest.ends_with('\n')) rest.remove_suffix(1);
      if (rest.empty()) continue;
      for (const std::string_view line : Split(rest, '\n')) {
        const auto [time, text] = SplitTime(line);
        lines.push_back({time, choice_.timestamps ? line : text, members[i]});
      }
    }
    std::ranges::stable_sort(lines, {}, &Line::time);
    for (const Line& line : lines) printer_.Print(line.member->name, line.text);
    return absl::OkStatus();
  }

  void DropEnded(const view::JobPage& page, std::list<PodFollower>& followers) {
    followers.remove_if([&](const PodFollower& follower) {
      if (!follower.ended()) return false;
      // A pod that was gone before its log could be opened: the job's history has the end of it.
      const bool gone =
          std::ranges::find(page.members, follower.uid(), &view::Member::uid) == page.members.end();
      if (gone && !follower.has_read()) followed_.erase(follower.uid());
      return true;
    });
  }

  // Until the job is over and all of its members are silent, or nobody reads any more.
  absl::Status Follow(JobsClient& client, view::JobPage page, const EndingSignals& signals) {
    const std::string name = page.job.Id();
    std::list<PodFollower> followers;
    bool told = false;
    while (!printer_.broken()) {
      for (const view::Member& member : page.members) {
        if (!IsChosen(member.name) || member.waits || followed_.contains(member.uid)) continue;
        if (followers.size() >= kMostFollowed) {
          if (!std::exchange(told, true))
            std::cerr << "only " << kMostFollowed << " pods are followed at a time" << std::endl;
          break;
        }
        followed_.insert(member.uid);
        followers.emplace_back(client.api(), page.job, member, choice_, printer_);
      }
      choice_.tail.reset();  // pods that come are shown whole
      choice_.since.reset();
      ShowGone(page);
      for (PodFollower& follower : followers) {
        const auto member = std::ranges::find(page.members, follower.uid(), &view::Member::uid);
        if (member == page.members.end()) {
          follower.Stop();  // its name may be another pod's by now
        } else if (page.job.over || (!member->runs && !member->waits)) {
          follower.Finish();
        }
      }
      DropEnded(page, followers);
      if (page.job.over && followers.empty()) {
        ShowGone(page);
        break;
      }
      if (signals.AwaitFor(kJobLogsPollInterval)) break;
      auto job = view::FindJob(client.api(), page.job.ns, {.kind = page.job.kind, .name = page.job.name});
      if (absl::IsNotFound(job.status())) {
        std::cerr << name << " was deleted" << std::endl;
        break;
      }
      if (!job.ok()) continue;  // the server is away; it is asked again
      if (auto next = view::ReadMembers(client.api(), *std::move(job)); next.ok()) page = *std::move(next);
    }
    for (PodFollower& follower : followers) follower.Stop();
    return absl::OkStatus();
  }

  std::string job_;
  bool follow_ = false;
  LogChoice choice_;
  JobsFlags jobs_;
  LinePrinter printer_;
  std::set<std::string> shown_;     // uids of pods that are gone
  std::set<std::string> followed_;  // uids
};

}  // namespace

std::unique_ptr<Command> NewLogs() { return std::make_unique<JobLogs>(); }

}  // namespace trainyard::cli
