#include "shim/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "shim/mounts.h"

namespace trainyard::shim {
namespace {

// Everybody keeps the ids that they had outside.
Failure MapOwnIds(uid_t uid, gid_t gid) {
  const std::string user = std::to_string(uid) + " " + std::to_string(uid) + " 1";
  const std::string group = std::to_string(gid) + " " + std::to_string(gid) + " 1";
  if (!WriteSmallFile("/proc/self/uid_map", user)) return Failure::Here("cannot map the user id");
  if (!WriteSmallFile("/proc/self/setgroups", "deny") || !WriteSmallFile("/proc/self/gid_map", group)) {
    return Failure::Here("cannot map the group id");
  }
  return Failure::None();
}

}  // namespace

std::string_view PrintNamespaces(Namespaces namespaces) {
  switch (namespaces) {
    case Namespaces::kNone:
      return "none";
    case Namespaces::kRoot:
      return "root";
    case Namespaces::kUser:
      return "user";
  }
  return "none";
}

Namespaces ParseNamespaces(std::string_view text) {
  if (text == "root") return Namespaces::kRoot;
  if (text == "user") return Namespaces::kUser;
  return Namespaces::kNone;
}

Failure LeaveMachine(const SandboxConfig& config) {
  if (config.namespaces == Namespaces::kNone) return Failure::None();
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  int flags = CLONE_NEWNS | CLONE_NEWUTS;
  if (config.namespaces == Namespaces::kUser) flags |= CLONE_NEWUSER;
  if (config.own_pids) flags |= CLONE_NEWPID;
  if (::unshare(flags) != 0) return Failure::Here("cannot make namespaces");
  return config.namespaces == Namespaces::kUser ? MapOwnIds(uid, gid) : Failure::None();
}

Failure SetUpSandbox(const SandboxConfig& config) {
  if (config.namespaces == Namespaces::kNone) return Failure::None();
  // What is mounted on the machine later shall be seen; what is mounted here shall not leave.
  if (::mount("", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return Failure::Here("cannot part from the mounts");
  if (config.own_pids && ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return Failure::Here("cannot mount /proc");
  }
  if (!config.hostname.empty() && ::sethostname(config.hostname.data(), config.hostname.size()) != 0) {
    return Failure::Here("cannot set the host name to " + config.hostname);
  }
  if (config.hosts) {
    if (Failure failure = MountAll({{.source = "hosts", .target = "/etc/hosts"}}); !failure.ok())
      return failure;
  }
  return config.devices ? CoverDevices() : Failure::None();
}

}  // namespace trainyard::shim
