// Pods that start together or not at all, and one turn of a scheduler over all pods that wait. Pure.
//
// A pod names its gang by a label; the PodGroup of that name says how many pods must have a node at the same
// time. Pods that have one already count, so that one member of a running gang is replaced like any pod.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/object_meta.h"
#include "kube/resource.h"
#include "placement/demand.h"
#include "placement/placement.h"

namespace trainyard::placement {

inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

struct PodGroup {
  kube::ObjectMeta meta;
  int minimum = 1;
};
// InvalidArgument: the text is not a PodGroup.
absl::StatusOr<PodGroup> ParsePodGroup(std::string json);

struct Gang {
  int minimum = 1;
  int held = 0;                 // pods of it that have a node
  std::vector<PodPtr> waiting;  // in the order in which they get theirs
};

struct Binding {
  PodPtr pod;
  std::string node;
};

struct GangPlacement {
  std::vector<Binding> placed;  // none, or enough for the minimum
  // Why none is placed, with numbers: "gang of 40 needs 40 cpu; 6 are free". Empty: it may start.
  std::string why;
  // The pods that must go so that the gang can start, by the pod that takes their room; empty: that does not
  // help.
  std::vector<std::pair<PodPtr, Preemption>> preemptions;
};
GangPlacement PlaceGang(const Gang& gang, const ClusterRoom& cluster);

// A pod that stays without a node for now.
struct Unplaced {
  PodPtr pod;
  std::string why;
  std::optional<Preemption> preemption;
};

struct Turn {
  std::vector<Binding> bindings;
  std::vector<Unplaced> unplaced;
};

using FindPodGroup = std::function<std::shared_ptr<const PodGroup>(const kube::ObjectKey&)>;

// Pods and gangs of higher priority come first, then those that have waited longest. One that does not fit
// keeps no room free: those behind it that fit are placed.
Turn PlanTurn(std::vector<PodPtr> waiting, const FindPodGroup& find_group, ClusterRoom cluster);

}  // namespace trainyard::placement
