#include "node/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

constexpr std::int64_t kPeriodMicros = 100'000;

// The mount points of cgroup file systems: by controller for version 1, "" for version 2.
std::map<std::string, std::string, std::less<>> FindMounts(std::string_view mountinfo) {
  std::map<std::string, std::string, std::less<>> mounts;
  for (const std::string_view line : Split(mountinfo, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const std::string_view type = dash[1];
    if (type == "cgroup2") mounts.emplace("", words[4]);
    if (type != "cgroup") continue;
    for (const std::string_view option : Split(dash[3], ',')) mounts.emplace(option, words[4]);
  }
  return mounts;
}

std::string Join(std::string_view mount, std::string_view path) {
  return path == "/" ? std::string(mount) : StrCat(mount, path);
}

bool WriteFile(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool MakeFolder(const std::string& path) { return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST; }

// With version 2, a cgroup that hands controllers on may hold no processes itself. So this process steps into
// one of its own below; that fails if others are there too, and then it steps back.
std::string Delegate(const std::string& own) {
  const std::string leaf = own + "/trainyard-up";
  if (!MakeFolder(leaf)) return StrCat("cannot make a cgroup in ", own, ": ", std::strerror(errno));
  if (!WriteFile(leaf + "/cgroup.procs", "0")) {
    return StrCat("cannot enter ", leaf, ": ", std::strerror(errno));
  }
  if (WriteFile(own + "/cgroup.subtree_control", "+memory +cpu")) return "";
  const std::string why = StrCat("cannot hand on controllers of ", own, ": ", std::strerror(errno));
  WriteFile(own + "/cgroup.procs", "0");
  ::rmdir(leaf.c_str());
  return why;
}

std::string OpenV2(const CgroupPlace& place, std::string_view cluster, std::string& root) {
  std::string why = Delegate(place.memory);
  std::string parent = place.memory;
  if (!why.empty() && ::geteuid() == 0) {
    // The root of the hierarchy is free of that rule.
    parent = place.memory.substr(0, std::string_view("/sys/fs/cgroup").size());
    why = WriteFile(parent + "/cgroup.subtree_control", "+memory +cpu")
              ? ""
              : StrCat("cannot hand on controllers of ", parent, ": ", std::strerror(errno));
  }
  if (!why.empty()) return why;
  root = StrCat(parent, "/trainyard-", cluster);
  if (!MakeFolder(root) || !WriteFile(root + "/cgroup.subtree_control", "+memory +cpu")) {
    return StrCat("cannot make ", root, ": ", std::strerror(errno));
  }
  return "";
}

void RemoveTree(const std::string& folder) {
  if (DIR* listing = ::opendir(folder.c_str())) {
    while (const dirent* entry = ::readdir(listing)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') RemoveTree(StrCat(folder, "/", entry->d_name));
    }
    ::closedir(listing);
  }
  ::rmdir(folder.c_str());
}

}  // namespace

CgroupPlace FindCgroups(std::string_view self_cgroup, std::string_view mountinfo) {
  const auto mounts = FindMounts(mountinfo);
  CgroupPlace place;
  std::string unified;
  for (const std::string_view line : Split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    for (const std::string_view controller : Split(line.substr(first + 1, second - first - 1), ',')) {
      const auto mount = mounts.find(controller);
      if (mount == mounts.end()) continue;
      if (controller == "memory") place.memory = Join(mount->second, path);
      if (controller == "cpu") place.cpu = Join(mount->second, path);
      if (controller.empty()) unified = Join(mount->second, path);
    }
  }
  if (!place.memory.empty()) {
    place.version = CgroupPlace::Version::k1;
  } else if (!unified.empty()) {
    place = {.version = CgroupPlace::Version::k2, .memory = unified, .cpu = unified};
  }
  return place;
}

CgroupLimits FindLimits(const ContainerSpec& container) {
  const auto milli = [](const Resources& resources, std::string_view name) -> std::optional<std::int64_t> {
    const auto found = resources.find(name);
    if (found == resources.end() || found->second.Sign() <= 0) return std::nullopt;
    const auto value = name == "cpu" ? found->second.Milli() : found->second.Units();
    return value.ok() ? std::optional(*value) : std::nullopt;
  };
  CgroupLimits limits{.memory_bytes = milli(container.limits, "memory"),
                      .cpu_milli = milli(container.limits, "cpu"),
                      .cpu_request_milli = milli(container.requests, "cpu")};
  if (!limits.cpu_request_milli) limits.cpu_request_milli = limits.cpu_milli;
  return limits;
}

std::vector<CgroupWrite> PlanLimits(CgroupPlace::Version version, const CgroupLimits& limits) {
  std::vector<CgroupWrite> writes;
  const bool v1 = version == CgroupPlace::Version::k1;
  if (limits.memory_bytes) {
    writes.push_back({v1 ? "memory.limit_in_bytes" : "memory.max", StrCat(*limits.memory_bytes)});
  }
  if (limits.cpu_milli) {
    const std::int64_t quota = std::max<std::int64_t>(*limits.cpu_milli * kPeriodMicros / 1000, 1000);
    if (v1) {
      writes.push_back({"cpu.cfs_period_us", StrCat(kPeriodMicros)});
      writes.push_back({"cpu.cfs_quota_us", StrCat(quota)});
    } else {
      writes.push_back({"cpu.max", StrCat(quota, " ", kPeriodMicros)});
    }
  }
  if (limits.cpu_request_milli) {
    const std::int64_t shares = std::clamp<std::int64_t>(*limits.cpu_request_milli * 1024 / 1000, 2, 262144);
    if (v1) {
      writes.push_back({"cpu.shares", StrCat(shares)});
    } else {
      // The scale of version 2: 1 to 10000 for 2 to 262144.
      writes.push_back({"cpu.weight", StrCat(1 + (shares - 2) * 9999 / 262142)});
    }
  }
  return writes;
}

Cgroups Cgroups::None(std::string_view shortcoming) {
  Cgroups cgroups;
  cgroups.shortcoming_ =
      StrCat("no cgroups (", shortcoming, "): limits on memory and processors are not enforced");
  return cgroups;
}

Cgroups Cgroups::Open(const CgroupPlace& place, std::string_view cluster) {
  Cgroups cgroups;
  switch (place.version) {
    case CgroupPlace::Version::kNone:
      return None("this machine has none");
    case CgroupPlace::Version::k1: {
      cgroups.memory_ = StrCat(place.memory, "/trainyard-", cluster);
      if (!MakeFolder(cgroups.memory_))
        return None(StrCat("cannot make ", cgroups.memory_, ": ", std::strerror(errno)));
      cgroups.cpu_ = place.cpu.empty() ? "" : StrCat(place.cpu, "/trainyard-", cluster);
      if (!cgroups.cpu_.empty() && !MakeFolder(cgroups.cpu_)) cgroups.cpu_.clear();
      break;
    }
    case CgroupPlace::Version::k2:
      if (std::string why = OpenV2(place, cluster, cgroups.memory_); !why.empty()) return None(why);
      break;
  }
  cgroups.version_ = place.version;
  return cgroups;
}

Cgroups Cgroups::OfHome(const std::string& home) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const auto own = ReadFile("/proc/self/cgroup", kMost);
  const auto mounts = ReadFile("/proc/self/mountinfo", kMost);
  return Open(FindCgroups(own.value_or(""), mounts.value_or("")), Hex32(Crc32c(home)));
}

void Cgroups::RemoveAll() {
  for (const std::string& root : Roots()) RemoveTree(root);
}

std::vector<std::string> Cgroups::Roots() const {
  std::vector<std::string> roots;
  if (!memory_.empty()) roots.push_back(memory_);
  if (!cpu_.empty()) roots.push_back(cpu_);
  return roots;
}

std::vector<std::string> Cgroups::Make(std::string_view pod_uid, std::string_view run,
                                       const CgroupLimits& limits) {
  std::vector<std::string> folders;
  if (version_ == CgroupPlace::Version::kNone || limits.empty()) return folders;
  for (const std::string& root : Roots()) {
    const std::string pod = StrCat(root, "/", pod_uid);
    const std::string folder = StrCat(pod, "/", run);
    if (!MakeFolder(pod)) continue;
    if (version_ == CgroupPlace::Version::k2) WriteFile(pod + "/cgroup.subtree_control", "+memory +cpu");
    if (!MakeFolder(folder)) continue;
    // A file that another hierarchy has is not here; that is as it should be.
    for (const CgroupWrite& write : PlanLimits(version_, limits))
      WriteFile(StrCat(folder, "/", write.file), write.text);
    folders.push_back(folder);
  }
  return folders;
}

void Cgroups::Remove(std::string_view pod_uid, std::string_view run) {
  for (const std::string& root : Roots()) ::rmdir(StrCat(root, "/", pod_uid, "/", run).c_str());
}

void Cgroups::RemovePod(std::string_view pod_uid) {
  for (const std::string& root : Roots()) RemoveTree(StrCat(root, "/", pod_uid));
}

}  // namespace trainyard::node
