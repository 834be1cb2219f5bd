// What this machine permits its pods, found out once.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::node {

struct Machine {
  // Whose namespaces pods get: "root" (the machine's), "user" (of an ordinary user), "none".
  std::string namespaces = "none";
  bool own_pids = false;
  bool bind_filter = false;
  uid_t uid = 0;
  // What pods have to do without, and what to do about it; one sentence each.
  std::vector<std::string> shortcomings;

  bool has_namespaces() const { return namespaces != "none"; }
};

// Asks the shim, which tries. Takes some milliseconds.
absl::StatusOr<Machine> ProbeMachine(const std::string& shim);

// Writes the shim that this program carries to a file of `home` that is named by its content, if it is not
// there; the file's path.
absl::StatusOr<std::string> InstallShim(const std::string& home);

}  // namespace trainyard::node
