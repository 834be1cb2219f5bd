// Child processes: each in a process group of its own, with exactly the descriptors it was given, never left
// behind as a zombie.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"

namespace trainyard {

// How a process ended. A process that returned 137 and one that was killed by signal 9 are two things here;
// ShellCode() is where they become one, as a shell or a kubelet reports them.
struct Exited {
  int code = 0;
  bool operator==(const Exited&) const = default;
};
struct Signaled {
  int signal = 0;
  bool core_dumped = false;
  bool operator==(const Signaled&) const = default;
};
using ExitStatus = std::variant<Exited, Signaled>;

int ShellCode(const ExitStatus& status);          // 128+n for signal n
std::string PrintExit(const ExitStatus& status);  // "exited 3", "killed by signal 9 (SIGKILL)"

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in this process's PATH unless it has a slash
  // What the child's environment is, whole. Unset: this process's own.
  std::optional<std::vector<std::pair<std::string, std::string>>> env;
  std::string working_dir;  // empty: this process's own
  // Files that receive the output, made or appended to. Empty: /dev/null. The same path for both is one
  // stream.
  std::string stdout_path;
  std::string stderr_path;
  // Descriptors of this process that become the child's 0, 1 and 2 instead of the above; -1: not given.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
};

// Owns one child. Thread-compatible: one thread at a time.
class Child {
 public:
  // Fails with NotFound or PermissionDenied, naming the program or folder, when the child cannot start.
  static absl::StatusOr<Child> Spawn(const ProcessSpec& spec);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&& other) noexcept;
  // Kills the whole group and reaps the child, if the child has not been waited for.
  ~Child();

  pid_t pid() const { return pid_; }
  // To poll: readable once the child has ended. Stays owned by this object.
  int pidfd() const { return pidfd_.get(); }

  // The exit status, or DeadlineExceeded while it runs on. May be called again after the end.
  absl::StatusOr<ExitStatus> Wait(absl::Duration timeout = absl::InfiniteDuration());
  // Signals the whole process group. NotFound once the child has been reaped.
  absl::Status Kill(int signal);
  // SIGTERM to the group, and SIGKILL to what is left of it when the child has ended or the grace is over;
  // returns how the child ended.
  absl::StatusOr<ExitStatus> Stop(absl::Duration grace);

 private:
  Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  absl::Status AwaitEnd(absl::Duration timeout) const;
  absl::StatusOr<ExitStatus> Reap();
  void End();

  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace trainyard
