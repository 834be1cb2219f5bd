// Seeing files at another place than where they are: bind mounts in a mount namespace that is ours alone.
//
// A place that does not exist is made visible without being made on the machine: its nearest existing
// ancestor is covered by a small file system in memory, into which everything that was there is bound back.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "shim/sys.h"

namespace trainyard::shim {

struct MountRequest {
  std::string source;
  std::string target;
  bool read_only = false;
};

// What has been mounted in one namespace. A copy goes along with a process that forks.
class MountTable {
 public:
  // All of them, in this order. Sources are opened before the first target is covered.
  Failure Mount(const std::vector<MountRequest>& requests);
  // A private /dev with what programs use of it, and room for /dev/termination-log.
  Failure CoverDevices();

 private:
  struct Opened;
  Failure Attach(const Opened& opened);
  // The target exists when it returns, as a folder or as an empty file.
  Failure EnsureTarget(const std::string& target, bool folder);
  Failure MakeMissing(const std::string& ancestor, const std::string& target, bool folder);
  Failure Cover(const std::string& folder, bool (*wanted)(std::string_view name));
  bool IsOurs(const std::string& folder) const;
  bool IsInVolume(std::string_view path) const;

  std::vector<dev_t> covers_;
  std::vector<std::string> targets_;
};

}  // namespace trainyard::shim
