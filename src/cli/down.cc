// trainyard down
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>

#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/commands.h"
#include "node/end_pods.h"

namespace trainyard::cli {
namespace {

constexpr int kPatienceMs = 10000;

class Down final : public Command {
 public:
  std::string name() const override { return "down"; }
  std::string summary() const override { return "End the cluster of this machine and all that it runs"; }
  std::string details() const override {
    return "Objects stay: the next `trainyard up` has them, and starts their pods again.\n\n"
           "Example:\n"
           "  trainyard down --grace 0s";
  }
  void Declare(Flags& flags) override {
    home_.Declare(flags);
    flags.Duration(
        {.name = "--grace", .value = "TIME", .help = "How long processes may take to end by themselves (5s)"},
        grace_);
  }

  absl::Status Run() override {
    if (grace_ && *grace_ < absl::ZeroDuration()) return UsageError("--grace must not be negative");
    TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
    TY_ASSIGN_OR_RETURN(const auto running, local::FindRunning(home));
    if (running) TY_RETURN_IF_ERROR(StopProcess(running->pid));
    const int pods = node::CountPods(home.root);
    TY_RETURN_IF_ERROR(node::EndPods(home.root, grace_.value_or(absl::Seconds(5))));
    std::cerr << (running ? "the cluster has ended" : "no cluster was running");
    if (pods > 0) {
      std::cerr << (running ? ", and " : "; ended ") << pods << (pods == 1 ? " pod" : " pods")
                << (running ? " with it" : " that went on without one");
    }
    std::cerr << "\n";
    return absl::OkStatus();
  }

 private:
  static absl::Status StopProcess(pid_t pid) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid())
      return errno == ESRCH ? absl::OkStatus() : ErrnoStatus(errno, StrCat("cannot find process ", pid));
    for (const int signal : {SIGTERM, SIGKILL}) {
      if (::kill(pid, signal) != 0 && errno != ESRCH)
        return ErrnoStatus(errno, StrCat("cannot end process ", pid));
      pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ended, 1, kPatienceMs) > 0) return absl::OkStatus();
    }
    return absl::DeadlineExceededError(StrCat("process ", pid, " does not end"));
  }

  HomeFlag home_;
  std::optional<absl::Duration> grace_;
};

}  // namespace

std::unique_ptr<Command> NewDown() { return std::make_unique<Down>(); }

}  // namespace trainyard::cli
