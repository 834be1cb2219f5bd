#include "agent/launch.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <string_view>
#include <vector>

namespace trainyard::agent {
namespace {

constexpr int kNotStarted = 127;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view PathOf(const std::vector<std::string>& env) {
  for (const std::string& variable : env) {
    if (variable.starts_with("PATH=")) return std::string_view(variable).substr(5);
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

bool IsMissing(int error) { return error == ENOENT || error == ENOTDIR; }

// Returns only when it does not run: errno says why, ENOENT if it is nowhere on the PATH.
void ExecuteFromPath(const std::string& program, char* const* args, char* const* env, std::string_view path) {
  int told = ENOENT;
  while (true) {
    const std::size_t colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    candidate += candidate.empty() ? "./" : "/";
    candidate += program;
    ::execve(candidate.c_str(), args, env);
    if (!IsMissing(errno)) told = errno;
    if (colon == std::string_view::npos) break;
    path.remove_prefix(colon + 1);
  }
  errno = told;
}

// Returns only on failure.
Failure Execute(const LaunchPlan& plan) {
  const std::vector<char*> env = Pointers(plan.env);
  std::string names;
  for (const std::string& program : plan.programs) {
    std::vector<std::string> words = plan.args;
    words.insert(words.begin(), program);
    const std::vector<char*> args = Pointers(words);
    const bool has_folder = program.find('/') != std::string::npos;
    if (has_folder) {
      ::execve(program.c_str(), args.data(), env.data());
    } else {
      ExecuteFromPath(program, args.data(), env.data(), PathOf(plan.env));
    }
    // Also said of a file that is there, when the interpreter of its first line is not.
    if (has_folder || !IsMissing(errno)) return Failure::Here("cannot run " + program);
    names += (names.empty() ? "" : " or ") + program;
  }
  return {.stage = "there is no " + names + " on the PATH" +
                   (plan.script.empty() ? "" : " to run " + plan.script + ": name one with --python")};
}

Failure FindScript(const LaunchPlan& plan) {
  if (plan.script.empty() || ::access(plan.script.c_str(), F_OK) == 0) return Failure::None();
  if (!IsMissing(errno)) return Failure::Here("cannot look at " + plan.script);
  if (plan.script.starts_with('/')) return {.stage = plan.script + " is not there"};
  char folder[PATH_MAX];
  const bool has_name = ::getcwd(folder, sizeof folder) != nullptr;
  return {.stage = plan.script + " is not in " + (has_name ? folder : "the working directory")};
}

// By the system call: the C library keeps two signals to itself, which somebody may have had ignored.
void RestoreSignals() {
  constexpr std::size_t kMaskBytes = 8;
  const struct {
    unsigned long handler, flags, restorer, mask;
  } usual{};
  for (int number = 1; number < NSIG; ++number) {
    ::syscall(SYS_rt_sigaction, number, &usual, nullptr, kMaskBytes);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What whoever started the agent left open is not the script's.
void KeepDescriptors() {
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr int kMost = 1024;  // an old kernel; the agent's own are closed anyway
  for (int fd = 3; fd < kMost; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

Failure Prepare(const LaunchPlan& plan) {
  ::setsid();
  if (!plan.working_dir.empty() && ::chdir(plan.working_dir.c_str()) != 0) {
    return Failure::Here("cannot change to the working directory " + plan.working_dir);
  }
  if (Failure failure = FindScript(plan); !failure.ok()) return failure;
  RestoreSignals();
  KeepDescriptors();
  return Failure::None();
}

[[noreturn]] void RunChild(const LaunchPlan& plan, pid_t agent, int out, int err, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != agent) ::_exit(kNotStarted);  // it died before it was to be told of
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  Failure failure = Prepare(plan);
  if (failure.ok()) failure = Execute(plan);
  (void)WriteAll(report, failure.Text());
  ::_exit(kNotStarted);
}

Failure MakePipe(OwnedFd& read, OwnedFd& write) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Failure::Here("cannot make a pipe");
  read = OwnedFd(ends[0]);
  write = OwnedFd(ends[1]);
  ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
  return Failure::None();
}

}  // namespace

Failure Launch(const LaunchPlan& plan, Launched& launched) {
  OwnedFd out;
  OwnedFd err;
  OwnedFd report;
  if (Failure failure = MakePipe(launched.out, out); !failure.ok()) return failure;
  if (Failure failure = MakePipe(launched.err, err); !failure.ok()) return failure;
  if (Failure failure = MakePipe(launched.report, report); !failure.ok()) return failure;
  const pid_t agent = ::getpid();
  launched.pid = ::fork();
  if (launched.pid < 0) return Failure::Here("cannot fork");
  if (launched.pid == 0) RunChild(plan, agent, out.get(), err.get(), report.get());
  return Failure::None();
}

}  // namespace trainyard::agent
