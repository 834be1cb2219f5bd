// Who is there when the agent itself is killed. The kernel ends all of a container whose process 1 is; where
// the agent is another one, its parent does: every process that it leaves behind becomes this one's child.
#pragma once

#include <sys/types.h>

namespace trainyard::agent {

// Forks. In the child, which goes on as the agent: the parent's number. The parent hands on signals, waits,
// kills what is left and exits as the agent does; it never returns. If the parent is killed, the agent gets
// SIGHUP. As process 1, or if there is no process to be had: 0, and this one is the agent.
pid_t StandGuard();

}  // namespace trainyard::agent
