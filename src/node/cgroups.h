// Limits on memory and processor time, where the machine lets us set them: cgroups of version 1 or 2, or
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node/pod_spec.h"

namespace trainyard::node {

// Where this process stands among the cgroups. Pure, from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. Where version 1 has the memory controller it is used, also in a mixed set-up.
struct CgroupPlace {
  enum class Version : std::uint8_t { kNone, k1, k2 };
  Version version = Version::kNone;
  // Folders of this process; with version 2 they are one.
  std::string memory;
  std::string cpu;  // empty: not limited
  bool operator==(const CgroupPlace&) const = default;
};
CgroupPlace FindCgroups(std::string_view self_cgroup, std::string_view mountinfo);

struct CgroupLimits {
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> cpu_milli;          // at most so much of a processor
  std::optional<std::int64_t> cpu_request_milli;  // its share when there is not enough for all
  bool operator==(const CgroupLimits&) const = default;

  bool empty() const { return !memory_bytes && !cpu_milli && !cpu_request_milli; }
};
CgroupLimits FindLimits(const ContainerSpec& container);

// The file and the text for each limit. Pure.
struct CgroupWrite {
  std::string file;
  std::string text;
  bool operator==(const CgroupWrite&) const = default;
};
std::vector<CgroupWrite> PlanLimits(CgroupPlace::Version version, const CgroupLimits& limits);

// Makes cgroups for runs of containers, below one of the cluster's own.
class Cgroups {
 public:
  // Never fails: without cgroups, no limits are set, and `shortcoming` says why.
  static Cgroups Open(const CgroupPlace& place, std::string_view cluster);
  // Of the cluster of this home.
  static Cgroups OfHome(const std::string& home);
  static Cgroups None(std::string_view shortcoming);

  // The folders that the run's process is to join; none if there is nothing to limit or no way to.
  std::vector<std::string> Make(std::string_view pod_uid, std::string_view run, const CgroupLimits& limits);
  // Once the run has ended. What cannot be removed yet is left to RemovePod().
  void Remove(std::string_view pod_uid, std::string_view run);
  void RemovePod(std::string_view pod_uid);
  // When nothing runs any more.
  void RemoveAll();

  const std::string& shortcoming() const { return shortcoming_; }

 private:
  Cgroups() = default;
  std::vector<std::string> Roots() const;

  CgroupPlace::Version version_ = CgroupPlace::Version::kNone;
  std::string memory_;  // of the cluster
  std::string cpu_;
  std::string shortcoming_;
};

}  // namespace trainyard::node
