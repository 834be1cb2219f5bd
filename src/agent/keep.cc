#include "agent/keep.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "agent/descendants.h"
#include "agent/sys.h"

namespace trainyard::agent {
namespace {

constexpr int kMostQuick = 5;
constexpr std::uint64_t kQuickMillis = 300;
constexpr std::uint64_t kFirstWaitMillis = 100;
constexpr std::uint64_t kLongestWaitMillis = 5'000;
constexpr int kSignalCode = 128;
constexpr int kNotFound = 127;

void Say(const std::string& text) { (void)WriteAll(STDERR_FILENO, "trainyard-agent: " + text + "\n"); }

pid_t Start(const std::vector<std::string>& command, const sigset_t& mask, int early) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  // Two processes of one member would be in each other's way.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(1);
  ::setenv(kEarlyEndsVariable, std::to_string(early).c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Say("cannot run " + command[0] + ": " + std::strerror(errno));
  ::_exit(kNotFound);
}

class Keeper {
 public:
  explicit Keeper(const std::vector<std::string>& command) : command_(command) {
    sigemptyset(&caught_);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&caught_, signal);
    ::sigprocmask(SIG_BLOCK, &caught_, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }

  int Run() {
    KeepCounts counts;
    for (;;) {
      const std::uint64_t begun = SteadyMillis();
      child_ = Start(command_, before_, counts.early);
      if (child_ < 0) return 1;
      const ScriptExit end = Await();
      const KeepDecision next = DecideKeep(end, SteadyMillis() - begun, counts);
      if (!next.again || stopping_) return next.again ? kSignalCode + SIGTERM : next.exit_code;
      if (end.signal) Say("the process " + PrintExit(end) + ": starting it again");
      if (Pause(next.wait_millis)) return kSignalCode + SIGTERM;
    }
  }

 private:
  ScriptExit Await() {
    std::optional<ScriptExit> end;
    while (!end) {
      const int signal = ::sigwaitinfo(&caught_, nullptr);
      if (signal == SIGTERM || signal == SIGINT) {
        stopping_ = true;
        ::kill(child_, signal);
      }
      (void)ReapChildren([&](pid_t pid, int wait_status) {
        if (pid == child_) end = ScriptExit::FromWait(wait_status);
      });
    }
    return *end;
  }

  // Whether it is to stop.
  bool Pause(std::uint64_t millis) const {
    const std::uint64_t due = SteadyMillis() + millis;
    for (std::uint64_t now = SteadyMillis(); now < due; now = SteadyMillis()) {
      const std::uint64_t left = due - now;
      const timespec wait{.tv_sec = static_cast<time_t>(left / 1000),
                          .tv_nsec = static_cast<long>(left % 1000) * 1'000'000};
      const int signal = ::sigtimedwait(&caught_, nullptr, &wait);
      if (signal == SIGTERM || signal == SIGINT) return true;
    }
    return false;
  }

  const std::vector<std::string>& command_;
  sigset_t caught_{};
  sigset_t before_{};
  pid_t child_ = 0;
  bool stopping_ = false;
};

}  // namespace

KeepDecision DecideKeep(const ScriptExit& end, std::uint64_t ran_millis, KeepCounts& counts) {
  if (end.signal) {
    counts.quick = ran_millis < kQuickMillis ? counts.quick + 1 : 0;
    return {.again = counts.quick < kMostQuick, .exit_code = kSignalCode + *end.signal};
  }
  const int code = end.code.value_or(1);
  if (code != kStartAgain && code != kStartAgainEarly) return {.exit_code = code};
  counts.early = code == kStartAgainEarly ? counts.early + 1 : 0;
  if (counts.early <= 1) return {.again = true};
  const std::uint64_t wait = kFirstWaitMillis << std::min(counts.early - 2, 10);
  return {.again = true, .wait_millis = std::min(wait, kLongestWaitMillis)};
}

int Keep(const std::vector<std::string>& command) { return Keeper(command).Run(); }

}  // namespace trainyard::agent
