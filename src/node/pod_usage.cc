#include "node/pod_usage.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/document.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

constexpr absl::Duration kLeastWindow = absl::Seconds(1);
constexpr absl::Duration kFirstWindow = absl::Milliseconds(200);  // of pods that were never measured
constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::size_t kMostSmall = std::size_t{64} << 10;

struct Process {
  pid_t parent = 0;
  double seconds = 0;  // of its own, and of its children that have ended
  double bytes = 0;
};

// The fields of /proc/PID/stat behind the name, which may hold anything.
std::optional<Process> ReadProcess(pid_t pid) {
  const auto text = ReadFile(StrCat("/proc/", pid, "/stat"), kMostSmall);
  if (!text.ok()) return std::nullopt;
  const std::size_t name = text->rfind(')');
  if (name == std::string::npos || name + 2 >= text->size()) return std::nullopt;
  const std::vector<std::string_view> fields = Split(std::string_view(*text).substr(name + 2), ' ');
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kUserTime = 11;  // and the system's, and both of ended children
  constexpr std::size_t kPages = 21;
  if (fields.size() <= kPages) return std::nullopt;
  Process process{.parent = ParseNumber<pid_t>(fields[kParent]).value_or(0)};
  std::int64_t ticks = 0;
  for (std::size_t i = kUserTime; i < kUserTime + 4; ++i)
    ticks += ParseNumber<std::int64_t>(fields[i]).value_or(0);
  process.seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  process.bytes = static_cast<double>(ParseNumber<std::int64_t>(fields[kPages]).value_or(0)) *
                  static_cast<double>(::sysconf(_SC_PAGESIZE));
  return process;
}

std::map<pid_t, Process> ReadProcesses() {
  std::map<pid_t, Process> all;
  DIR* const folder = ::opendir("/proc");
  while (const dirent* const entry = folder == nullptr ? nullptr : ::readdir(folder)) {
    const auto pid = ParseNumber<pid_t>(entry->d_name);
    if (!pid) continue;
    if (const auto process = ReadProcess(*pid)) all[*pid] = *process;
  }
  if (folder != nullptr) ::closedir(folder);
  return all;
}

// The uid of the pod whose shim the process is; "" if it is none of this home.
std::string PodOf(pid_t pid, std::string_view pods_folder) {
  const auto command = ReadFile(StrCat("/proc/", pid, "/cmdline"), kMostSmall);
  if (!command.ok() || command->find("trainyard-shim") == std::string::npos) return "";
  const std::vector<std::string_view> words = Split(std::string_view(*command), '\0');
  if (words.size() < 3 || words[1] != "run" || !words[2].starts_with(pods_folder)) return "";
  return std::string(words[2].substr(pods_folder.size()));
}

}  // namespace

// Many may ask at once: what was measured a moment ago is told again, or each would shorten the others'
// window.
std::vector<apiserver::PodUsage> PodUsageReader::Measure() {
  const MutexLock lock(mu_);
  const bool first = std::ranges::any_of(
      last_, [](const apiserver::PodUsage& usage) { return usage.window <= absl::ZeroDuration(); });
  if (measured_ != SteadyTime() &&
      Clock::System().Steady() - measured_ < (first ? kFirstWindow : kLeastWindow))
    return last_;
  const std::string pods_folder = StrCat(home_, "/pods/");
  const std::map<pid_t, Process> all = ReadProcesses();
  std::map<pid_t, std::string> pod_of;
  for (const auto& [pid, process] : all) {
    if (std::string pod = PodOf(pid, pods_folder); !pod.empty()) pod_of[pid] = std::move(pod);
  }
  std::map<std::string, Process> sums;
  for (const auto& [pid, process] : all) {
    pid_t up = pid;
    // A shim that the machine counts in a namespace of its own is below the one that made it.
    for (int depth = 0; up > 1 && !pod_of.contains(up) && depth < 64; ++depth) {
      const auto found = all.find(up);
      up = found == all.end() ? 0 : found->second.parent;
    }
    const auto found = pod_of.find(up);
    if (found == pod_of.end()) continue;
    sums[found->second].seconds += process.seconds;
    sums[found->second].bytes += process.bytes;
  }
  const SteadyTime now = Clock::System().Steady();
  std::vector<apiserver::PodUsage> usages;
  std::erase_if(samples_, [&](const auto& sample) { return !sums.contains(sample.first); });
  for (const auto& [uid, sum] : sums) {
    const auto known = samples_.find(uid);
    if (known == samples_.end()) {
      const auto text = ReadFile(StrCat(pods_folder, uid, "/pod.json"), kMostBytes);
      const auto record = text.ok() ? ParseJson(*text) : absl::StatusOr<Document>(text.status());
      if (!record.ok()) continue;
      samples_[uid] = {.ns = std::string(StringAt(*record, {"pod", "metadata", "namespace"})),
                       .pod = std::string(StringAt(*record, {"pod", "metadata", "name"})),
                       .processor_seconds = sum.seconds,
                       .time = now};
      usages.push_back({.ns = samples_[uid].ns, .pod = samples_[uid].pod, .memory_bytes = sum.bytes});
      continue;
    }
    Sample& before = known->second;
    const absl::Duration window = now - before.time;
    const double seconds = absl::ToDoubleSeconds(window);
    usages.push_back(
        {.ns = before.ns,
         .pod = before.pod,
         .processors = seconds > 0 ? std::max(0.0, sum.seconds - before.processor_seconds) / seconds : 0,
         .memory_bytes = sum.bytes,
         .window = window});
    before.processor_seconds = sum.seconds;
    before.time = now;
  }
  measured_ = now;
  last_ = usages;
  return usages;
}

}  // namespace trainyard::node
