// Starting one process of a container: everything between fork and exec.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/mounts.h"
#include "shim/protocol.h"
#include "shim/sys.h"

namespace trainyard::shim {

struct LaunchSpec {
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::string cwd;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::vector<gid_t> groups;
  std::vector<std::string> cgroups;
  struct Limit {
    int resource = 0;
    rlimit values{};
  };
  std::vector<Limit> limits;
  std::vector<MountRequest> mounts;
  bool no_new_privileges = false;

  // Nothing, and what is wrong: the message makes no sense.
  static std::optional<LaunchSpec> Parse(const MessageReader& message, std::string& wrong);
};

// What the pod as a whole gives to each of its processes.
struct LaunchPlace {
  int machine_proc = -1;    // the machine's /proc, where the process has the number that others know
  bool namespaces = false;  // the process gets marks and mounts
  bool bind_filter = false;
  pid_t join = 0;  // an exec: the container's first process, whose view it shares
};

struct Launched {
  pid_t pid = -1;
  OwnedFd out;
  OwnedFd err;     // an exec has one stream for both
  OwnedFd report;  // a socket: LaunchReports, then its end when the program runs
};

// What the child tells on its way. A failure is the last.
struct LaunchReport {
  std::optional<pid_t> machine_pid;
  std::optional<ino_t> mark;
  OwnedFd mark_holder;  // while it is open the mark is nobody else's
  OwnedFd bind_listener;
  Failure failure;
};

// Forks. The shim's epoll loop goes on at once; the child reports.
Failure Launch(const LaunchSpec& spec, const LaunchPlace& place, bool one_stream, Launched& launched);

// False: no report is there yet, or (ended) there will be no more.
bool NextReport(int socket, LaunchReport& report, bool& ended);

}  // namespace trainyard::shim
