#include "agent/agent.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/descendants.h"

namespace trainyard::agent {
namespace {

// How long answers, followed logs and the copy of the output have to reach their readers at the end.
constexpr std::uint64_t kFlushMillis = 3'000;
// Of the time after SIGTERM, what is kept for killing, reading the last output and sending it.
constexpr std::uint64_t kEndMarginMillis = 1'000;

std::string StateFolder(const Options& options) {
  if (!options.state_dir.empty()) return options.state_dir;
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

}  // namespace

Agent::Agent(AgentConfig config)
    : config_(std::move(config)),
      own_out_(poller_, STDOUT_FILENO, Source::kOwnOut),
      own_err_(poller_, STDERR_FILENO, Source::kOwnErr),
      log_space_(StateFolder(config_.options), config_.options.log_bytes),
      server_(poller_, *this,
              {.idle_millis = config_.options.idle_timeout_millis,
               .request_millis = config_.options.request_timeout_millis}) {
  status_.incarnation = config_.incarnation;
}

Failure Agent::Open() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&caught, signal);
  ::sigprocmask(SIG_BLOCK, &caught, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  signals_ = OwnedFd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid() || !poller_.valid()) return Failure::Here("cannot wait for events");
  poller_.Watch(signals_.get(), Source::kSignals, EPOLLIN);
  if (Failure failure = server_.Listen(config_.options.listen); !failure.ok()) return failure;
  (void)WriteAll(STDERR_FILENO, "trainyard-agent listens on " + server_.address() + "\n");
  return Failure::None();
}

int Agent::Serve() {
  constexpr int kAtOnce = 64;
  Event events[kAtOnce];
  while (!killed_) {
    const int count = poller_.Wait(events, kAtOnce, NextDeadline());
    const std::uint64_t now = SteadyMillis();
    for (int i = 0; i < count; ++i) Dispatch(events[i], now);
    own_out_.Advance(now);
    own_err_.Advance(now);
    AdvanceRun(now);
    server_.Advance(now);
    if (ending_ && (now >= ending_->last || IsFlushed(now))) break;
  }
  KillDescendants();
  if (killed_) return 128 + SIGKILL;
  return asked_code_ ? *asked_code_ : exit_code_ == 0 && signal_ != 0 ? 128 + signal_ : exit_code_;
}

std::uint64_t Agent::NextDeadline() const {
  std::uint64_t next = std::min({server_.deadline(), own_out_.deadline(), own_err_.deadline()});
  if (run_ != nullptr) next = std::min(next, run_->deadline());
  if (ending_) next = std::min({next, ending_->last, ending_->flush_until});
  return next;
}

void Agent::Dispatch(const Event& event, std::uint64_t now) {
  switch (event.source) {
    case Source::kListener:
      return server_.OnAccept(now);
    case Source::kSignals:
      return HandleSignals();
    case Source::kClient:
      return server_.OnClient(event.serial, event.events, now);
    case Source::kOwnOut:
      return own_out_.OnWritable();
    case Source::kOwnErr:
      return own_err_.OnWritable();
    case Source::kOut:
    case Source::kErr:
      if (run_ != nullptr) run_->OnOutput(event.source == Source::kErr, now);
      return;
    case Source::kReport:
      if (run_ != nullptr) run_->OnReport();
      return;
  }
}

void Agent::HandleSignals() {
  const std::uint64_t now = SteadyMillis();
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (config_.guard != 0 && ::getppid() != config_.guard) {
      killed_ = true;
      continue;
    }
    signal_ = static_cast<int>(info.ssi_signo);
    const std::uint64_t all = config_.options.term_grace_millis;
    const std::uint64_t margin = std::min(kEndMarginMillis, all / 2);
    BeginEnd(now + std::min(kDefaultGraceMillis, all - margin), now + all);
  }
}

void Agent::BeginEnd(std::uint64_t kill_at, std::uint64_t last) {
  if (!ending_) ending_.emplace();
  ending_->last = std::min(ending_->last, last);
  if (Active()) StopScript(kill_at);
}

// Reaps, and tells what has become of the script.
void Agent::AdvanceRun(std::uint64_t now) {
  const bool none = ReapChildren([&](pid_t pid, int wait_status) {
    if (Active()) run_->OnEnded(pid, wait_status, now);
  });
  if (!log_space_.on_disk() && status_.logs_on_disk) {
    status_.logs_on_disk = false;
    Change();
  }
  if (!Active()) return;
  if (none) run_->OnNoChildren();
  run_->Advance(now);
  if (!run_->over()) return;
  const bool failed = !run_->failure().empty();
  status_.state = failed ? State::kFailed : State::kExited;
  status_.pid.reset();
  status_.ended_millis = run_->ended_millis();
  if (!failed) status_.exit = run_->exit();
  status_.reason = failed ? run_->failure() : PrintExit(status_.exit);
  if (run_->left_some()) status_.reason += "; it left processes that cannot be killed";
  exit_code_ = ExitCodeOf(status_);
  Change();
}

// At the end: true when everybody has got everything, or has had the time for it.
bool Agent::IsFlushed(std::uint64_t now) {
  if (!ShallEnd()) return false;
  if (ending_->flush_until == kNever) ending_->flush_until = now + kFlushMillis;
  return now >= ending_->flush_until || (server_.quiet() && own_out_.empty() && own_err_.empty());
}

}  // namespace trainyard::agent
