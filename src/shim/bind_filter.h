// An address of its own for a pod without a network of its own: a process that binds a port of the wildcard
// address gets that port of the pod's address instead.
//
// A seccomp filter in the pod's processes sends each bind() to the shim before it happens. The shim binds the
// process's own socket in its place, or tells the kernel to go on. Everything else, and every other system
// call, is the kernel's alone. Port 0 is left to the kernel too: it cannot clash, is reachable at the pod's
// address, and a client that binds it may go on to connect to anywhere.
#pragma once

#include <netinet/in.h>

#include "shim/sys.h"

namespace trainyard::shim {

// In the child, for itself and all that it starts: the descriptor through which its bind() calls are seen; -1
// and errno if there is none to be had.
int InstallBindFilter();

// In the shim, when the descriptor is readable: answers one call. Never waits, and never leaves the process
// waiting: whatever cannot be done here, the kernel is told to do.
void AnswerBind(int listener, in_addr pod_address);

}  // namespace trainyard::shim
