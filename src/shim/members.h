// Which processes belong to a container, also those that left its process group, and ending them.
//
// Each container gets a UTS namespace of its own. It costs next to nothing, is inherited by every process,
// and nobody but an administrator leaves it: it is the mark. Where there are no namespaces the session is.
#pragma once

#include <sys/types.h>

#include <optional>

namespace trainyard::shim {

struct Membership {
  pid_t main = 0;             // the container's first process, leader of its session
  std::optional<ino_t> mark;  // of the UTS namespace
};

// Of a process that is known to be in the container.
std::optional<ino_t> FindMark(pid_t pid);

// Sends the signal to every process of the container but `main`, which may have been reaped; how many there
// were. Signal 0 only counts.
int SignalOthers(const Membership& container, int signal);

// Kills everything below this process until nothing is left of it, and reaps it. `own_pids`: this is process
// 1 of a namespace.
void KillEverything(bool own_pids);

}  // namespace trainyard::shim
