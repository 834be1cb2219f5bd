#include "agent/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/sys.h"

namespace trainyard::agent {
namespace {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
};

// Of /proc/PID/stat: "PID (NAME) STATE PARENT GROUP …"; the name may hold anything.
bool ReadProcess(const char* name, Process& process) {
  std::string text;
  if (!ReadSmallFile(std::string("/proc/") + name + "/stat", text)) return false;
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return false;
  char* at = text.data() + name_end + 4;
  process.pid = static_cast<pid_t>(std::strtol(name, nullptr, 10));
  process.parent = static_cast<pid_t>(std::strtol(at, &at, 10));
  process.group = static_cast<pid_t>(std::strtol(at, &at, 10));
  return true;
}

std::vector<Process> ListProcesses() {
  std::vector<Process> processes;
  DIR* listing = ::opendir("/proc");
  if (listing == nullptr) return processes;
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    Process process;
    if (ReadProcess(entry->d_name, process)) processes.push_back(process);
  }
  ::closedir(listing);
  return processes;
}

std::vector<Process> ListDescendants() {
  const std::vector<Process> all = ListProcesses();
  std::vector<Process> found{{.pid = ::getpid()}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Process& process : all) {
      if (process.parent == found[i].pid) found.push_back(process);
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

void SignalDescendants(int signal, pid_t group) {
  if (group > 0) ::kill(-group, signal);
  for (const Process& process : ListDescendants()) {
    if (group <= 0 || process.group != group) ::kill(process.pid, signal);
  }
}

bool ReapChildren(const std::function<void(pid_t, int wait_status)>& ended) {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return errno == ECHILD;
    if (pid == 0) return false;
    ended(pid, status);
  }
}

void KillDescendants() {
  constexpr std::uint64_t kPatienceMillis = 5'000;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  const std::uint64_t until = SteadyMillis() + kPatienceMillis;
  while (true) {
    SignalDescendants(SIGKILL, 0);
    if (ReapChildren([](pid_t, int) {}) || SteadyMillis() >= until) return;
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace trainyard::agent
