// What scheduling needs to know of a pod: what it asks for, and where it may run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/node.h"
#include "kube/object_meta.h"
#include "kube/pod.h"
#include "kube/selector.h"

namespace trainyard::placement {

struct HostPort {
  std::int64_t port = 0;
  std::string protocol;
  std::string address;  // empty: all
  bool operator==(const HostPort&) const = default;
};

struct Toleration {
  std::string key;  // empty with kExists: every taint
  bool exists = false;
  std::string value;
  std::string effect;  // empty: every effect

  bool Tolerates(const kube::Taint& taint) const;
};

// One term of a node affinity: all its requirements must hold.
struct NodeTerm {
  kube::LabelSelector labels;
  std::vector<kube::LabelRequirement> fields;  // metadata.name is the only one there is
  std::int64_t weight = 0;                     // of a preferred one
};

// Pods with these labels must, or must not, run in the same place.
struct PodTerm {
  kube::LabelSelector labels;
  std::vector<std::string> namespaces;  // empty: the pod's own
  bool all_namespaces = false;
  std::string topology_key;
};

struct PodDemand {
  kube::ObjectMeta meta;
  std::string node;  // where it has been put
  std::string scheduler;
  bool finished = false;
  bool gated = false;
  std::int64_t priority = 0;
  bool may_preempt = true;
  std::vector<kube::ResourceAmount> requests;  // by name
  std::vector<HostPort> host_ports;
  std::vector<std::pair<std::string, std::string>> node_selector;
  std::vector<NodeTerm> node_terms;  // one of them must hold, if there are any
  std::vector<NodeTerm> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<PodTerm> together;
  std::vector<PodTerm> apart;
  std::string told;            // the message of its PodScheduled condition
  std::string nominated_node;  // where room is being made for it

  bool Waits() const { return node.empty() && !finished && !meta.deletion_time; }
};

// InvalidArgument: the text is no pod; what is wrong with it.
absl::StatusOr<PodDemand> ParseDemand(std::string json);

}  // namespace trainyard::placement
