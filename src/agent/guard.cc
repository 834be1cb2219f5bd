#include "agent/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "agent/descendants.h"
#include "agent/status.h"

namespace trainyard::agent {
namespace {

[[noreturn]] void Guard(pid_t agent, const sigset_t& caught) {
  std::optional<ScriptExit> end;
  while (!end) {
    const int signal = ::sigwaitinfo(&caught, nullptr);
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) ::kill(agent, signal);
    (void)ReapChildren([&](pid_t pid, int wait_status) {
      if (pid == agent) end = ScriptExit::FromWait(wait_status);
    });
  }
  KillDescendants();
  ::_exit(end->signal ? 128 + *end->signal : end->code.value_or(1));
}

}  // namespace

pid_t StandGuard() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (::getpid() == 1) return 0;
  sigset_t caught;
  sigset_t before;
  sigemptyset(&caught);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&caught, signal);
  ::sigprocmask(SIG_BLOCK, &caught, &before);
  const pid_t guard = ::getpid();
  const pid_t agent = ::fork();
  if (agent > 0) Guard(agent, caught);
  if (agent < 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return 0;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGHUP, 0, 0, 0);
  if (::getppid() != guard) ::_exit(1);
  return guard;
}

}  // namespace trainyard::agent
