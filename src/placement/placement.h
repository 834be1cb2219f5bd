// Where a pod goes. Pure: the cluster as it is goes in, a node or the reasons of every node come out.
//
//   every node ── may the pod run there? ──▶ those that fit ── which suits best? ──▶ one
//                        │ none fits
//                        ▼
//              would one fit if pods of lower priority went? ──▶ these go, the pod waits for their room
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/node.h"
#include "placement/demand.h"

namespace trainyard::placement {

using PodPtr = std::shared_ptr<const PodDemand>;

// Adds amounts, `sign` times, to those that are sorted by name.
void Add(std::vector<kube::ResourceAmount>& amounts, const std::vector<kube::ResourceAmount>& more,
         std::int64_t sign);
// "2", "500m", "4Gi".
std::string ShownAmount(std::string_view resource, std::int64_t milli);

// A node with what runs on it.
struct NodeRoom {
  std::shared_ptr<const kube::CompactNode> node;
  std::vector<PodPtr> pods;
  std::vector<kube::ResourceAmount> used;  // by name

  const std::string& name() const { return node->meta.name; }
  std::int64_t Free(std::string_view resource) const;
  void Put(PodPtr pod);
  void TakeAway(const PodDemand& pod);
};

// All nodes, by name.
using ClusterRoom = std::map<std::string, NodeRoom, std::less<>>;

// Why one node does not take a pod.
struct Refusal {
  std::string node;
  std::string reason;  // as the summary counts it: "Insufficient cpu", "node(s) had untolerated taint {k: v}"
  std::string detail;  // more of it, where there is more: "asks for 4, 1 is free"
  bool by_pods = false;  // it would be another if some pods went
};

struct Preemption {
  std::string node;
  std::vector<PodPtr> victims;  // lowest priority first
};

struct Placement {
  std::string node;  // empty: none fits
  std::vector<Refusal> refusals;
  std::optional<Preemption> preemption;
};

Placement PlacePod(const PodDemand& pod, const ClusterRoom& cluster);

// What stands in the way of the pod on that node; nothing if it fits.
std::vector<Refusal> Refusals(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster);

// "0/3 nodes are available: 1 Insufficient cpu, 2 ...", then each node with its reason. `placement` has no
// node.
std::string PrintUnschedulable(const PodDemand& pod, const Placement& placement);

}  // namespace trainyard::placement
