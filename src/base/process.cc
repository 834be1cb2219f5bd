#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard {
namespace {

// posix_spawn's two descriptions of the child, freed together.
struct SpawnPlan {
  SpawnPlan() {
    TY_CHECK(posix_spawn_file_actions_init(&actions) == 0 && posix_spawnattr_init(&attributes) == 0,
             "out of memory");
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// posix_spawn says only ENOENT or EACCES; find out of what, so that the message can.
absl::Status SpawnError(int error, const ProcessSpec& spec) {
  struct stat info{};
  if (!spec.working_dir.empty() && (::stat(spec.working_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
    return absl::NotFoundError(
        StrCat("cannot start ", spec.argv[0], ": working directory ", spec.working_dir, " does not exist"));
  }
  return ErrnoStatus(error, StrCat("cannot start ", spec.argv[0]));
}

// The child must not inherit our blocked or ignored signals.
void ResetSignals(SpawnPlan& plan) {
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&plan.attributes, &none);
  posix_spawnattr_setsigdefault(&plan.attributes, &all);
  posix_spawnattr_setpgroup(&plan.attributes, 0);
  posix_spawnattr_setflags(&plan.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

// The child's 0, 1 and 2. Sources are first copied above 2, so that one never overwrites another.
struct Stdio {
  Fd in, out, err;
};

absl::StatusOr<Fd> CopyAboveStdio(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return ErrnoStatus(errno, StrCat("cannot copy descriptor ", fd));
  return copy;
}

// A given descriptor, or else the file.
absl::StatusOr<Fd> PrepareOne(int given, const std::string& path, int flags) {
  if (given >= 0) return CopyAboveStdio(given);
  const char* name = path.empty() ? "/dev/null" : path.c_str();
  const Fd opened(::open(name, flags | O_CLOEXEC, 0644));
  if (!opened.valid()) return ErrnoStatus(errno, StrCat("cannot open ", name, " for a process"));
  return CopyAboveStdio(opened.get());
}

absl::StatusOr<Stdio> PrepareStdio(const ProcessSpec& spec) {
  constexpr int kLog = O_WRONLY | O_CREAT | O_APPEND;
  Stdio stdio;
  TY_ASSIGN_OR_RETURN(stdio.in, PrepareOne(spec.stdin_fd, "", O_RDONLY));
  TY_ASSIGN_OR_RETURN(stdio.out, PrepareOne(spec.stdout_fd, spec.stdout_path, kLog));
  TY_ASSIGN_OR_RETURN(stdio.err, PrepareOne(spec.stderr_fd, spec.stderr_path, kLog));
  return stdio;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int ShellCode(const ExitStatus& status) {
  if (const auto* exited = std::get_if<Exited>(&status)) return exited->code;
  return 128 + std::get<Signaled>(status).signal;
}

std::string PrintExit(const ExitStatus& status) {
  if (const auto* exited = std::get_if<Exited>(&status)) return StrCat("exited ", exited->code);
  const auto& signaled = std::get<Signaled>(status);
  const char* name = ::sigabbrev_np(signaled.signal);
  return StrCat("killed by signal ", signaled.signal, name == nullptr ? "" : StrCat(" (SIG", name, ")"),
                signaled.core_dumped ? ", core dumped" : "");
}

absl::StatusOr<Child> Child::Spawn(const ProcessSpec& spec) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("cannot start a process without a program name");
  TY_ASSIGN_OR_RETURN(const Stdio stdio, PrepareStdio(spec));

  SpawnPlan plan;
  ResetSignals(plan);
  posix_spawn_file_actions_adddup2(&plan.actions, stdio.in.get(), 0);
  posix_spawn_file_actions_adddup2(&plan.actions, stdio.out.get(), 1);
  posix_spawn_file_actions_adddup2(&plan.actions, stdio.err.get(), 2);
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
  if (!spec.working_dir.empty())
    posix_spawn_file_actions_addchdir_np(&plan.actions, spec.working_dir.c_str());

  std::vector<std::string> argv = spec.argv;
  std::vector<std::string> env;
  if (spec.env) {
    for (const auto& [name, value] : *spec.env) env.push_back(StrCat(name, "=", value));
  }
  std::vector<char*> env_pointers = Pointers(env);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0].c_str(), &plan.actions, &plan.attributes,
                                 Pointers(argv).data(), spec.env ? env_pointers.data() : environ);
  if (error != 0) return SpawnError(error, spec);

  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const absl::Status status = ErrnoStatus(errno, "pidfd_open");
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return status;
  }
  return Child(pid, std::move(pidfd));
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    End();
    pid_ = other.pid_;
    pidfd_ = std::move(other.pidfd_);
    status_ = other.status_;
  }
  return *this;
}

Child::~Child() { End(); }

// A moved-from child has no pidfd and owns nothing.
void Child::End() {
  if (!pidfd_.valid() || status_) return;
  ::kill(-pid_, SIGKILL);
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);  // it may have left its group
  (void)Reap();
}

absl::Status Child::AwaitEnd(absl::Duration timeout) const {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  pollfd poller{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  while (true) {
    int wait_ms = -1;
    if (deadline != SteadyTime::Never()) {
      const absl::Duration left = deadline - Clock::System().Steady();
      wait_ms = static_cast<int>(absl::ToInt64Milliseconds(
          std::clamp(absl::Ceil(left, absl::Milliseconds(1)), absl::ZeroDuration(), absl::Hours(1))));
    }
    const int ready = ::poll(&poller, 1, wait_ms);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll on a child");
    if (Clock::System().Steady() >= deadline) {
      return absl::DeadlineExceededError(StrCat("process ", pid_, " still runs"));
    }
  }
}

absl::StatusOr<ExitStatus> Child::Reap() {
  int raw = 0;
  while (::waitpid(pid_, &raw, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, StrCat("waitpid ", pid_));
  }
  if (WIFEXITED(raw)) {
    status_ = Exited{WEXITSTATUS(raw)};
  } else {
    status_ = Signaled{WTERMSIG(raw), WCOREDUMP(raw) != 0};
  }
  return *status_;
}

absl::StatusOr<ExitStatus> Child::Wait(absl::Duration timeout) {
  if (status_) return *status_;
  TY_RETURN_IF_ERROR(AwaitEnd(timeout));
  return Reap();
}

absl::Status Child::Kill(int signal) {
  if (status_) return absl::NotFoundError(StrCat("process ", pid_, " has ended: ", PrintExit(*status_)));
  if (::kill(-pid_, signal) != 0) return ErrnoStatus(errno, StrCat("cannot signal process group ", pid_));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> Child::Stop(absl::Duration grace) {
  if (status_) return *status_;
  TY_RETURN_IF_ERROR(Kill(SIGTERM));
  const absl::Status ended = AwaitEnd(grace);
  if (!ended.ok() && !absl::IsDeadlineExceeded(ended)) return ended;
  // Also when the child went by itself: what it started may not have. Its id is ours until it is reaped.
  TY_RETURN_IF_ERROR(Kill(SIGKILL));
  return Reap();
}

}  // namespace trainyard
