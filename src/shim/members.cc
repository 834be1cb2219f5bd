#include "shim/members.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "shim/sys.h"

namespace trainyard::shim {
namespace {

std::vector<pid_t> ListProcesses() {
  std::vector<pid_t> pids;
  DIR* listing = ::opendir("/proc");
  if (listing == nullptr) return pids;
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    pids.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  ::closedir(listing);
  return pids;
}

struct ProcessFacts {
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
};

// Of /proc/PID/stat: "PID (NAME) STATE PARENT GROUP SESSION …"; the name may hold anything.
bool ReadFacts(pid_t pid, ProcessFacts& facts) {
  std::string text;
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  if (!ReadSmallFile(AT_FDCWD, path.c_str(), text)) return false;
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return false;
  facts.state = text[name_end + 2];
  char* at = text.data() + name_end + 4;
  facts.parent = static_cast<pid_t>(std::strtol(at, &at, 10));
  (void)std::strtol(at, &at, 10);
  facts.session = static_cast<pid_t>(std::strtol(at, &at, 10));
  return true;
}

bool IsMember(pid_t pid, const Membership& container) {
  if (container.mark && FindMark(pid) != container.mark) return false;
  ProcessFacts facts;
  if (!ReadFacts(pid, facts) || facts.state == 'Z' || facts.state == 'X') return false;
  return container.mark || facts.session == container.main;
}

// The processes below this one, found by their parents.
std::vector<pid_t> ListDescendants() {
  std::vector<std::pair<pid_t, pid_t>> parents;
  for (const pid_t pid : ListProcesses()) {
    ProcessFacts facts;
    if (ReadFacts(pid, facts)) parents.emplace_back(pid, facts.parent);
  }
  std::vector<pid_t> found{::getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [pid, parent] : parents) {
      if (parent == found[i]) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

std::optional<ino_t> FindMark(pid_t pid) {
  struct stat info{};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/uts";
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

int SignalOthers(const Membership& container, int signal) {
  int count = 0;
  for (const pid_t pid : ListProcesses()) {
    if (pid == container.main || pid == ::getpid() || !IsMember(pid, container)) continue;
    if (signal == 0 || ::kill(pid, signal) == 0) ++count;
  }
  return count;
}

void KillEverything(bool own_pids) {
  while (true) {
    if (own_pids) {
      ::kill(-1, SIGKILL);
    } else {
      for (const pid_t pid : ListDescendants()) ::kill(pid, SIGKILL);
    }
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return;
    // A process in the middle of a disk access ends when that does.
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace trainyard::shim
