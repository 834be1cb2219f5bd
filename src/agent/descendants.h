// The processes below this one: every process of the script, also one that left its group and session. As
// subreaper or process 1, the agent becomes parent of each whose parent has ended.
#pragma once

#include <sys/types.h>

#include <functional>

namespace trainyard::agent {

// Tells the whole group first, which nobody escapes by forking, and then every other descendant once. Group
// 0: there is none.
void SignalDescendants(int signal, pid_t group);

// Reaps what has ended, without waiting. True: there is no child left, and so no descendant.
bool ReapChildren(const std::function<void(pid_t, int wait_status)>& ended);

// Kills until nothing is left, or some seconds have passed: a process in a disk access ends when that does.
void KillDescendants();

}  // namespace trainyard::agent
