#include "cli/launch_follow.h"

#include <iostream>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/ending_signals.h"
#include "cli/jobs_common.h"
#include "job/progress.h"
#include "kube/http.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kLaunchFollowTick = absl::Milliseconds(50);
constexpr absl::Duration kLastLines = absl::Seconds(5);  // in which they come after the task is over

// What two streams have told so far.
class Follower {
 public:
  Follower(LauncherClient& launcher, std::string task) : launcher_(launcher), task_(std::move(task)) {}
  ~Follower() {
    launcher_.calls().Cancel(events_call_);
    launcher_.calls().Cancel(logs_call_);
    const MutexLock lock(mu_);
    while (open_ > 0) changed_.Wait(mu_);
  }

  void FollowEvents() {
    Opened();
    events_call_ = launcher_.calls().Follow(
        launcher_.Call("GET", StrCat("/tasks/", kube::PercentEncoded(task_), "/events")),
        [this](std::string_view piece) {
          std::vector<std::string> lines;
          event_lines_.Add(piece, [&](std::string_view line) { lines.emplace_back(line); });
          const MutexLock printing(print_mu_);
          const MutexLock lock(mu_);
          for (const std::string& line : lines) TakeEvent(line);
        },
        [this](const absl::StatusOr<http::Answer>& answer) { Closed(answer, /*events=*/true); });
  }
  void FollowLogs(const std::string& query) {
    Opened();
    logs_call_ = launcher_.calls().Follow(
        launcher_.Call("GET", StrCat("/tasks/", kube::PercentEncoded(task_), "/logs", query)),
        [this](std::string_view piece) {
          const MutexLock lock(print_mu_);
          log_lines_.Add(piece, [this](std::string_view line) { printer_.Print(line); });
        },
        [this](const absl::StatusOr<http::Answer>& answer) { Closed(answer, /*events=*/false); });
  }

  // Nothing is printed meanwhile.
  Interruption AskWhatToDo(int signal, const EndingSignals& signals) {
    const MutexLock quiet(print_mu_);
    return AskAboutJob(StrCat("task ", task_), signal, signals);
  }

  // Whether a stream is still open, after so long at most.
  bool AwaitEnd(absl::Duration timeout) {
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    const MutexLock lock(mu_);
    while (open_ > 0 && changed_.WaitUntil(mu_, deadline)) {
    }
    return open_ == 0;
  }
  bool events_ended() {
    const MutexLock lock(mu_);
    return events_ended_;
  }
  absl::Status failure() {
    const MutexLock lock(mu_);
    return failure_;
  }
  bool deleted() {
    const MutexLock lock(mu_);
    return deleted_;
  }
  std::optional<job::Progress> last() {
    const MutexLock lock(mu_);
    return last_;
  }

 private:
  void Opened() {
    const MutexLock lock(mu_);
    ++open_;
  }

  void TakeEvent(std::string_view line) TY_REQUIRES(mu_) {
    constexpr std::string_view kData = "data: ";
    deleted_ = deleted_ || line == "event: deleted";
    if (!line.starts_with(kData)) return;
    const auto task = ParseJson(line.substr(kData.size()));
    if (!task.ok() || Find(*task, {"phase"}) == nullptr) return;
    last_ = job::ParseProgress(job::Reporter::kLauncher, *task);
    const std::string text = StrCat("task ", task_, ": ", Print(last_->phase), ": ", last_->reason);
    if (text != told_) std::cerr << text << std::endl;
    told_ = text;
  }

  void Closed(const absl::StatusOr<http::Answer>& answer, bool events) {
    const MutexLock lock(mu_);
    --open_;
    events_ended_ = events_ended_ || events;
    if (!answer.ok() && !absl::IsCancelled(answer.status()) && failure_.ok()) failure_ = answer.status();
    if (answer.ok() && answer->code / 100 != 2 && failure_.ok())
      failure_ = absl::NotFoundError(http::ErrorOf(*answer));
    changed_.SignalAll();
  }

  LauncherClient& launcher_;
  const std::string task_;
  http::Calls::Id events_call_ = 0;
  http::Calls::Id logs_call_ = 0;
  LineSplitter event_lines_;  // of the calls' thread
  LineSplitter log_lines_;    // likewise
  LinePrinter printer_;       // likewise
  Mutex print_mu_;            // taken before mu_
  Mutex mu_;
  CondVar changed_;
  std::string told_ TY_GUARDED_BY(mu_);
  std::optional<job::Progress> last_ TY_GUARDED_BY(mu_);
  int open_ TY_GUARDED_BY(mu_) = 0;
  bool events_ended_ TY_GUARDED_BY(mu_) = false;
  bool deleted_ TY_GUARDED_BY(mu_) = false;
  absl::Status failure_ TY_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<Followed> FollowTask(LauncherClient& launcher, const std::string& task,
                                    const EndingSignals& signals) {
  Follower follower(launcher, task);
  follower.FollowEvents();
  follower.FollowLogs("?follow=1");
  bool cancelled = false;
  while (!follower.events_ended()) {
    const std::optional<int> signal = signals.NextFor(kLaunchFollowTick);
    if (!signal) continue;
    const std::string left =
        StrCat("task ", task, " is left to itself; `trainyard launch status ", task, "` shows it");
    if (cancelled) return absl::CancelledError(left);
    switch (follower.AskWhatToDo(*signal, signals)) {
      case Interruption::kEnd:
        cancelled = true;
        std::cerr << "cancelling task " << task << "; once more to leave it to itself" << std::endl;
        launcher.Ask("POST", StrCat("/tasks/", task, "/cancel")).IgnoreError();
        break;
      case Interruption::kLeave:
        std::cerr << left << std::endl;
        return Followed::kLeft;
      case Interruption::kGoOn:
        break;
    }
  }
  follower.AwaitEnd(kLastLines);
  const job::Progress last = follower.last().value_or(job::Progress());
  if (!IsOver(last.phase) && follower.deleted())
    return absl::CancelledError(StrCat("task ", task, " was deleted"));
  if (!IsOver(last.phase)) {
    const absl::Status failure = follower.failure();
    return absl::UnavailableError(StrCat("the launcher has gone while task ", task, " runs",
                                         failure.ok() ? "" : ": ", failure.ok() ? "" : Message(failure),
                                         "; `trainyard launch status ", task, "` shows how it goes on"));
  }
  if (last.phase == job::WorkPhase::kSucceeded) return Followed::kSucceeded;
  return absl::InternalError(
      StrCat("task ", task, " ",
             last.phase == job::WorkPhase::kFailed ? "has failed: " : "was ended: ", last.reason));
}

absl::Status ShowLogs(LauncherClient& launcher, const std::string& task, const LogFlags& flags,
                      const EndingSignals& signals) {
  Follower follower(launcher, task);
  std::string query = flags.follow ? "?follow=1" : "?";
  if (!flags.member.empty()) StrAppend(query, "&member=", kube::PercentEncoded(flags.member));
  if (flags.tail) StrAppend(query, "&tail=", *flags.tail);
  follower.FollowLogs(query);
  while (!follower.AwaitEnd(kLaunchFollowTick)) {
    if (signals.AwaitFor(absl::ZeroDuration())) return absl::OkStatus();
  }
  return follower.failure();
}

}  // namespace trainyard::cli
