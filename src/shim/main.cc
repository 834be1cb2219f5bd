// trainyard-shim: see shim.h. Started by the process node, not by people.
//
//   trainyard-shim run FOLDER   becomes the shim of the pod whose folder it is. One message on standard
//                               output: `answer`, with pid or error; then it is on its own.
//   trainyard-shim probe        one message on standard output: what this machine permits.
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "shim/probe.h"
#include "shim/shim.h"

namespace trainyard::shim {
namespace {

int Report(const Failure& failure) {
  (void)WriteAll(STDOUT_FILENO, MessageWriter(kAnswer).Add(key::kError, failure.Text()).Take());
  return 1;
}

// Lets go of the terminal, the pipes and everything else of whoever started it.
void LetGo() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int log = ::open("shim.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(log >= 0 ? log : null, STDERR_FILENO);
}

// Without a pid namespace, somebody has to be there when the shim itself is killed: its processes then become
// children of this one, which kills them.
[[noreturn]] void Guard(pid_t shim) {
  LetGo();
  while (true) {
    const pid_t ended = ::waitpid(-1, nullptr, 0);
    if (ended == shim || (ended < 0 && errno != EINTR)) break;
  }
  KillEverything(false);
  ::_exit(0);
}

int Serve(const ShimConfig& config, int machine_proc) {
  ::setsid();  // whoever waits for the process that forked this one may kill that one's group
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (const Failure failure = SetUpSandbox(config.sandbox); !failure.ok()) return Report(failure);
  Shim shim(config, machine_proc);
  if (const Failure failure = shim.Open(); !failure.ok()) return Report(failure);
  (void)WriteAll(STDOUT_FILENO, MessageWriter(kAnswer).Add(key::kPid, shim.machine_pid()).Take());
  LetGo();
  shim.Serve();
  return 0;
}

int BecomeShim(const char* folder) {
  ::close_range(3, ~0U, 0);
  ::umask(022);
  if (::chdir(folder) != 0) return Report(Failure::Here(std::string("cannot change to ") + folder));
  ShimConfig config;
  if (const Failure failure = ShimConfig::Read(config); !failure.ok()) return Report(failure);
  const int machine_proc = ::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (machine_proc < 0) return Report(Failure::Here("cannot open /proc"));
  if (const Failure failure = LeaveMachine(config.sandbox); !failure.ok()) return Report(failure);
  // So that whoever started it has no child to wait for.
  if (!config.sandbox.own_pids) {
    const pid_t guard = ::fork();
    if (guard < 0) return Report(Failure::Here("cannot fork"));
    if (guard > 0) return 0;
    ::setsid();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }
  const pid_t shim = ::fork();
  if (shim < 0) return Report(Failure::Here("cannot fork"));
  if (shim == 0) return Serve(config, machine_proc);
  if (!config.sandbox.own_pids) Guard(shim);
  return 0;
}

int Probe() {
  const Permitted permitted = ProbeMachine();
  const std::string answer = MessageWriter(kAnswer)
                                 .Add(key::kNamespaces, PrintNamespaces(permitted.namespaces))
                                 .Add(key::kOwnPids, permitted.own_pids ? 1 : 0)
                                 .Add(key::kBindFilter, permitted.bind_filter ? 1 : 0)
                                 .Add(key::kNamespacesReason, permitted.namespaces_reason)
                                 .Add(key::kBindFilterReason, permitted.bind_filter_reason)
                                 .Take();
  return WriteAll(STDOUT_FILENO, answer) ? 0 : 1;
}

}  // namespace
}  // namespace trainyard::shim

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "run" && argc == 3) return trainyard::shim::BecomeShim(argv[2]);
  if (verb == "probe") return trainyard::shim::Probe();
  if (verb == "bind-trial") return trainyard::shim::RunBindTrial();
  std::fputs(
      "trainyard-shim is started by `trainyard up`, one for each pod; there is nothing to do here by hand.\n",
      stderr);
  return 2;
}
