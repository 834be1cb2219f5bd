// An address of its own for a pod without a network of its own: a process that binds a port of the wildcard
// address or of 127.0.0.1 gets that port of the pod's address instead, and one that connects to a port of
// 127.0.0.1 that the pod has bound comes there.
//
// A seccomp filter in the pod's processes sends each bind() and connect() to the shim before it happens. The
// shim does it with the process's own socket in its place, or tells the kernel to go on. Everything else, and
// every other system call, is the kernel's alone. Port 0 is left to the kernel too: it cannot clash, is
// reachable at the pod's address, and a client that binds it may go on to connect to anywhere.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <set>

#include "shim/sys.h"

namespace trainyard::shim {

// In the child, for itself and all that it starts: the descriptor through which its calls are seen; -1 and
// errno if there is none to be had.
int InstallBindFilter();

// What the processes of a pod have bound of its address; a port that nobody listens on any more may be among
// them.
using BoundPorts = std::set<std::uint16_t>;

// In the shim, when the descriptor is readable: answers one call. Never waits for long, and never leaves the
// process waiting: whatever cannot be done here, the kernel is told to do.
void AnswerCall(int listener, in_addr pod_address, BoundPorts& bound);

}  // namespace trainyard::shim
