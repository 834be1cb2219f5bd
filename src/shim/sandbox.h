// The pod's own view of the machine: namespaces for mounts, host name and process ids, made once by the shim
// before it starts the first process.
#pragma once

#include <string>
#include <string_view>

#include "shim/sys.h"

namespace trainyard::shim {

enum class Namespaces : unsigned char { kNone, kRoot, kUser };

std::string_view PrintNamespaces(Namespaces namespaces);
Namespaces ParseNamespaces(std::string_view text);  // what is not known is kNone

struct SandboxConfig {
  Namespaces namespaces = Namespaces::kNone;
  bool own_pids = false;  // a pid namespace
  bool hosts = false;     // "hosts" in the current folder is /etc/hosts
  bool devices = false;   // /dev is private
  std::string hostname;   // empty: the machine's
};

// Before the fork: the child will be in the namespaces, as process 1 if they have process ids. Only for a
// process with one thread.
Failure LeaveMachine(const SandboxConfig& config);

// After the fork, in the child.
Failure SetUpSandbox(const SandboxConfig& config);

}  // namespace trainyard::shim
