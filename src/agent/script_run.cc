#include "agent/script_run.h"

#include <signal.h>

#include <algorithm>

#include "agent/descendants.h"

namespace trainyard::agent {
namespace {

// A script that prints without pause shall not keep the loop from its clients.
constexpr int kReadsAtOnce = 4;
constexpr int kReadsAtEnd = 64;
// How long processes that the first one left behind may go on printing: a `tee` has its last lines to write.
constexpr std::uint64_t kLeaveMillis = 500;
constexpr std::uint64_t kClearMillis = 5'000;
// A process may fork between two looks at /proc.
constexpr std::uint64_t kKillAgainMillis = 20;

}  // namespace

ScriptRun::ScriptRun(Poller& poller, Outputs copies, std::shared_ptr<AttemptLog> log)
    : poller_(poller), copies_(copies), log_(std::move(log)) {}

Failure ScriptRun::Start(const LaunchPlan& plan) {
  Failure failure = Launch(plan, child_);
  if (!failure.ok()) {
    failure_ = failure.Text();
    stage_ = RunStage::kOver;
    log_->Close();
    return failure;
  }
  poller_.Watch(child_.report.get(), Source::kReport, EPOLLIN);
  return Failure::None();
}

void ScriptRun::Stop(std::uint64_t kill_at) {
  const bool first = !stopping();
  kill_at_ = std::min(kill_at_, kill_at);
  if (stage_ == RunStage::kLeaving) leave_until_ = kill_at_;
  // One that is being launched is told when it runs: until then it has no session of its own.
  if (first && stage_ != RunStage::kLaunching) Tell(SIGTERM);
}

void ScriptRun::Tell(int signal) { SignalDescendants(signal, stage_ <= RunStage::kRunning ? child_.pid : 0); }

bool ScriptRun::ReadOnce(bool error_stream, std::uint64_t now) {
  static char room[65536];
  OwnedFd& pipe = error_stream ? child_.err : child_.out;
  if (!pipe.valid()) return false;
  const ssize_t got = ::read(pipe.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    pipe.Reset();
    return false;
  }
  const std::string_view bytes(room, static_cast<std::size_t>(got));
  log_->Append(bytes);
  (error_stream ? copies_.err : copies_.out).Write(bytes, now);
  return true;
}

void ScriptRun::OnOutput(bool error_stream, std::uint64_t now) {
  const OutputCopy& copy = error_stream ? copies_.err : copies_.out;
  for (int i = 0; i < kReadsAtOnce && !copy.full(); ++i) {
    if (!ReadOnce(error_stream, now)) return;
  }
}

void ScriptRun::OnReport() {
  if (!child_.report.valid()) return;
  char room[4096];
  const ssize_t got = ::read(child_.report.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    failure_.append(room, static_cast<std::size_t>(got));
    return;
  }
  child_.report.Reset();
  if (stage_ != RunStage::kLaunching || !failure_.empty()) return;
  stage_ = RunStage::kRunning;
  if (stopping()) Tell(SIGTERM);
}

void ScriptRun::OnEnded(pid_t pid, int wait_status, std::uint64_t now) {
  if (pid != child_.pid || stage_ > RunStage::kRunning) return;
  while (child_.report.valid() && failure_.empty()) OnReport();
  child_.report.Reset();
  exit_ = ScriptExit::FromWait(wait_status);
  ended_millis_ = WallMillis();
  stage_ = RunStage::kLeaving;
  leave_until_ = stopping() ? kill_at_ : now + kLeaveMillis;
}

void ScriptRun::Kill(std::uint64_t now) {
  Tell(SIGKILL);
  next_kill_ = now + kKillAgainMillis;
}

void ScriptRun::Advance(std::uint64_t now) {
  if (stage_ == RunStage::kOver) return;
  if (stage_ <= RunStage::kRunning && now >= kill_at_ && (next_kill_ == kNever || now >= next_kill_))
    Kill(now);
  const bool silent = !child_.out.valid() && !child_.err.valid();
  if (stage_ == RunStage::kLeaving && (no_children_ || now >= leave_until_ || (silent && !stopping()))) {
    stage_ = RunStage::kClearing;
    clear_until_ = now + kClearMillis;
    next_kill_ = now;
  }
  if (stage_ == RunStage::kClearing) {
    if (no_children_ || now >= clear_until_) return Finish(now);
    if (now >= next_kill_) Kill(now);
  }
  WatchOutputs();
}

void ScriptRun::Finish(std::uint64_t now) {
  left_some_ = !no_children_;
  for (const bool error_stream : {false, true}) {
    for (int i = 0; i < kReadsAtEnd && ReadOnce(error_stream, now); ++i) {
    }
  }
  child_.out.Reset();
  child_.err.Reset();
  log_->Close();
  stage_ = RunStage::kOver;
}

void ScriptRun::WatchOutputs() {
  const auto watch = [&](const OwnedFd& pipe, const OutputCopy& copy, Source source) {
    if (!pipe.valid()) return;
    // An end is told of however little one asks for, so that asking for nothing would not rest.
    if (copy.full()) {
      poller_.Forget(pipe.get());
    } else {
      poller_.Watch(pipe.get(), source, EPOLLIN);
    }
  };
  watch(child_.out, copies_.out, Source::kOut);
  watch(child_.err, copies_.err, Source::kErr);
}

std::uint64_t ScriptRun::deadline() const {
  switch (stage_) {
    case RunStage::kLaunching:
    case RunStage::kRunning:
      return next_kill_ == kNever ? kill_at_ : next_kill_;
    case RunStage::kLeaving:
      return leave_until_;
    case RunStage::kClearing:
      return std::min(clear_until_, next_kill_);
    case RunStage::kOver:
      break;
  }
  return kNever;
}

}  // namespace trainyard::agent
