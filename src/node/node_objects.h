// The objects by which a node makes itself known: the Node and its Lease. Pure, but for looking at the
// machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"
#include "node/pod_spec.h"

namespace trainyard::node {

// What does not change while the machine runs.
struct MachineFacts {
  std::string hostname;
  std::string kernel;
  std::string os_image;
  std::string architecture;  // "amd64", "arm64"
  std::string machine_id;
  std::string boot_id;
  int cpus = 1;
  std::int64_t memory_bytes = 0;
  std::int64_t disk_bytes = 0;
};
// `folder`: whose file system holds the pods.
MachineFacts LookAtMachine(const std::string& folder);

struct NodeConfig {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> capacity;  // instead of what the machine has, by resource
};

inline constexpr std::string_view kHostIp = "127.0.0.1";
inline constexpr int kMaxPods = 1000;

// What the node has to give, with what the configuration says instead or beside.
Resources NodeCapacity(const NodeConfig& config, const MachineFacts& facts);

// A new Node, with its status.
Document MakeNode(const NodeConfig& config, const MachineFacts& facts, std::string_view release,
                  absl::Time now);
// A merge patch of a Node that is there already: labels and annotations.
Document NodePatch(const NodeConfig& config, const MachineFacts& facts);
// A strategic merge patch of its status. `since`: since when it is ready.
Document NodeStatusPatch(const NodeConfig& config, const MachineFacts& facts, std::string_view release,
                         absl::Time since, absl::Time now);
// It says in its status that it is ready.
bool SaysReady(const Document& node);

Document MakeLease(std::string_view node, absl::Duration duration, absl::Time now);

}  // namespace trainyard::node
