#include "agent/keep.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/descendants.h"
#include "agent/script_run.h"
#include "agent/sys.h"

namespace trainyard::agent {
namespace {

constexpr int kMostQuick = 5;
constexpr std::uint64_t kQuickMillis = 300;
constexpr std::uint64_t kFirstWaitMillis = 100;
constexpr std::uint64_t kLongestWaitMillis = 5'000;
constexpr std::uint64_t kKeepFlushMillis = 3'000;
constexpr int kSignalCode = 128;
constexpr int kNotFound = 127;
// Of all that is printed, so much is at hand; of that, so much goes into the termination message.
constexpr std::uint64_t kOutputBytes = std::uint64_t{64} << 10;
constexpr std::size_t kMessageBytes = 2'048;
constexpr std::size_t kCauseBytes = 300;
constexpr const char* kMessageFile = "/dev/termination-log";

std::string_view LineAt(std::string_view text, bool last) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t end = last ? text.rfind('\n') : text.find('\n');
  if (end == std::string_view::npos) return text;
  return last ? text.substr(end + 1) : text.substr(0, end);
}

class Keeper {
 public:
  Keeper(const Options& options, std::vector<std::string> environment)
      : options_(options),
        environment_(std::move(environment)),
        own_out_(poller_, STDOUT_FILENO, Source::kOwnOut),
        own_err_(poller_, STDERR_FILENO, Source::kOwnErr),
        space_([] { return OwnedFd(::memfd_create("trainyard-agent-log", MFD_CLOEXEC)); },
               [] { return OwnedFd(); }, kOutputBytes) {}

  int Run() {
    if (const Failure failure = Open(); !failure.ok()) {
      Say(failure.Text());
      return 1;
    }
    KeepCounts counts;
    std::string cause;
    for (;;) {
      RunOnce(counts.early, cause);
      if (!run_->failure().empty()) return End(kNotFound, run_->failure());
      const ScriptExit end = run_->exit();
      const KeepDecision next = DecideKeep(end, ended_ - begun_, options_.restarts, counts);
      if (!next.again || stopping_) {
        const int code = end.signal ? kSignalCode + *end.signal : end.code.value_or(1);
        return End(next.again && !end.signal ? kSignalCode + SIGTERM : code, PrintMessage(end, Output()));
      }
      cause = TakeCause(end);
      if (end.signal) Say("the process " + PrintExit(end) + ": starting it again");
      const std::uint64_t due = SteadyMillis() + next.wait_millis;
      while (SteadyMillis() < due && !stopping_) Turn(due);
      if (stopping_) return End(kSignalCode + SIGTERM, "");
    }
  }

 private:
  Failure Open() {
    sigset_t caught;
    sigemptyset(&caught);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
      sigaddset(&caught, signal);
    ::sigprocmask(SIG_BLOCK, &caught, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signals_ = OwnedFd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid() || !poller_.valid()) return Failure::Here("cannot wait for events");
    poller_.Watch(signals_.get(), Source::kSignals, EPOLLIN);
    return Failure::None();
  }

  void RunOnce(int early, const std::string& cause) {
    LaunchPlan plan{.programs = {options_.command[0]},
                    .args = {options_.command.begin() + 1, options_.command.end()},
                    .env = environment_};
    plan.env.push_back(std::string(kEarlyEndsVariable) + "=" + std::to_string(early));
    if (!cause.empty()) plan.env.push_back(std::string(kLastEndVariable) + "=" + cause);
    log_ = std::make_shared<AttemptLog>(space_);
    run_ = std::make_unique<ScriptRun>(poller_, ScriptRun::Outputs{own_out_, own_err_}, log_);
    begun_ = ended_ = SteadyMillis();
    (void)run_->Start(plan);
    while (!run_->over()) Turn(kNever);
  }

  // One turn of the loop: until something has happened, or the time has come.
  void Turn(std::uint64_t until) {
    constexpr int kAtOnce = 16;
    Event events[kAtOnce];
    until = std::min({until, run_->deadline(), own_out_.deadline(), own_err_.deadline()});
    const int count = poller_.Wait(events, kAtOnce, until);
    const std::uint64_t now = SteadyMillis();
    for (int i = 0; i < count; ++i) Dispatch(events[i], now);
    own_out_.Advance(now);
    own_err_.Advance(now);
    const bool none = ReapChildren([&](pid_t pid, int wait_status) {
      if (pid == run_->pid()) ended_ = now;
      run_->OnEnded(pid, wait_status, now);
    });
    if (none) run_->OnNoChildren();
    run_->Advance(now);
  }

  void Dispatch(const Event& event, std::uint64_t now) {
    switch (event.source) {
      case Source::kSignals:
        return PassSignals();
      case Source::kOwnOut:
        return own_out_.OnWritable();
      case Source::kOwnErr:
        return own_err_.OnWritable();
      case Source::kOut:
      case Source::kErr:
        return run_->OnOutput(event.source == Source::kErr, now);
      case Source::kReport:
        return run_->OnReport();
      case Source::kListener:
      case Source::kClient:
        return;
    }
  }

  void PassSignals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      stopping_ |= signal != SIGUSR1 && signal != SIGUSR2;
      if (run_->stage() <= RunStage::kRunning) ::kill(run_->pid(), signal);
    }
  }

  std::string Output() const {
    const std::uint64_t size = log_->end() - log_->begin();
    return log_->Read(log_->end() - std::min<std::uint64_t>(size, kMessageBytes), kMessageBytes);
  }

  // How the process ended, with what it wrote to the termination message; the next one begins without.
  static std::string TakeCause(const ScriptExit& end) {
    std::string cause = PrintExit(end);
    std::string message;
    if (!ReadSmallFile(kMessageFile, message) || message.empty()) return cause;
    const OwnedFd emptied(::open(kMessageFile, O_WRONLY | O_TRUNC | O_CLOEXEC));
    return cause.append(": ").append(LineAt(message, /*last=*/false).substr(0, kCauseBytes));
  }

  void Say(const std::string& text) { own_err_.Write("trainyard-agent: " + text + "\n", SteadyMillis()); }

  // What the program itself has written to the termination message stays.
  int End(int code, const std::string& message) {
    if (!run_->failure().empty()) Say(run_->failure());
    std::string present;
    if (code != 0 && ReadSmallFile(kMessageFile, present) && present.empty()) {
      const OwnedFd file(::open(kMessageFile, O_WRONLY | O_CLOEXEC));
      (void)WriteAll(file.get(), message);
    }
    const std::uint64_t due = SteadyMillis() + kKeepFlushMillis;
    while (!(own_out_.empty() && own_err_.empty()) && SteadyMillis() < due) Turn(due);
    return code;
  }

  const Options& options_;
  const std::vector<std::string> environment_;
  Poller poller_;
  OwnedFd signals_;
  OutputCopy own_out_;
  OutputCopy own_err_;
  LogSpace space_;
  std::shared_ptr<AttemptLog> log_;
  std::unique_ptr<ScriptRun> run_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  bool stopping_ = false;
};

}  // namespace

KeepDecision DecideKeep(const ScriptExit& end, std::uint64_t ran_millis, std::optional<std::uint64_t> most,
                        KeepCounts& counts) {
  const int code = end.signal ? kSignalCode + *end.signal : end.code.value_or(1);
  if (!end.signal && code != kStartAgain && code != kStartAgainEarly) return {.exit_code = code};
  if (end.signal) counts.quick = ran_millis < kQuickMillis ? counts.quick + 1 : 0;
  if (counts.quick >= kMostQuick || (most && static_cast<std::uint64_t>(counts.restarts) >= *most))
    return {.exit_code = code};
  ++counts.restarts;
  if (end.signal) return {.again = true};
  counts.early = code == kStartAgainEarly ? counts.early + 1 : 0;
  if (counts.early <= 1) return {.again = true};
  const std::uint64_t wait = kFirstWaitMillis << std::min(counts.early - 2, 10);
  return {.again = true, .wait_millis = std::min(wait, kLongestWaitMillis)};
}

std::string PrintMessage(const ScriptExit& end, std::string_view output) {
  if (output.size() >= kMessageBytes) {  // its beginning is within a line
    const std::size_t line = output.find('\n');
    if (line != std::string_view::npos && line + 1 < output.size()) output.remove_prefix(line + 1);
  }
  while (output.ends_with('\n')) output.remove_suffix(1);
  const std::string_view last = LineAt(output, /*last=*/true);
  // A program that ended by itself has said why in its last line, as Python does.
  const std::string cause = end.signal || last.empty() ? PrintExit(end) : std::string(last);
  if (output.empty() || output == cause) return cause;
  return std::string(cause).append("\n").append(output);
}

int Keep(const Options& options, std::vector<std::string> environment) {
  return Keeper(options, std::move(environment)).Run();
}

}  // namespace trainyard::agent
