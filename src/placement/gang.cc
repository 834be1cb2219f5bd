#include "placement/gang.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::placement {
namespace {

std::optional<kube::ObjectKey> GroupOf(const PodDemand& pod) {
  const std::string_view name = pod.meta.labels.Get(kPodGroupLabel);
  if (name.empty()) return std::nullopt;
  return kube::ObjectKey{std::string(pod.meta.ns.view()), std::string(name)};
}

std::string PrintGang(const Gang& gang) {
  return StrCat(
      "gang of ", gang.minimum,
      gang.held > 0 ? StrCat(", of which ", gang.held, gang.held == 1 ? " has" : " have", " a node,") : "");
}

// Whether more room would let the node take the pod.
bool IsSuitable(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  return std::ranges::all_of(Refusals(pod, room, cluster), &Refusal::by_pods);
}

// "needs 40 cpu; 6 are free" for each resource that all suitable nodes together have too little of; empty:
// they have enough of everything.
std::string PrintShortage(const std::vector<PodPtr>& pods, const ClusterRoom& cluster) {
  std::vector<kube::ResourceAmount> needed;
  for (const PodPtr& pod : pods) Add(needed, pod->requests, 1);
  std::string text;
  for (const kube::ResourceAmount& need : needed) {
    const std::string_view name = need.name.view();
    std::int64_t free = 0;
    for (const auto& [node, room] : cluster) {
      if (IsSuitable(*pods.front(), room, cluster)) free += std::max<std::int64_t>(room.Free(name), 0);
    }
    if (need.milli <= free) continue;
    const std::string shown = ShownAmount(name, free);
    StrAppend(text, text.empty() ? "needs " : ", and ", ShownAmount(name, need.milli), " ", name, "; ", shown,
              shown == "1" ? " is free" : " are free");
  }
  return text;
}

// As PlaceGang(), if pods of lower priority may be told to go; empty: the gang does not fit even so.
std::vector<std::pair<PodPtr, Preemption>> FindPreemptions(const std::vector<PodPtr>& pods,
                                                           ClusterRoom cluster) {
  std::vector<std::pair<PodPtr, Preemption>> found;
  for (const PodPtr& pod : pods) {
    Placement placement = PlacePod(*pod, cluster);
    if (placement.node.empty() && !placement.preemption) return {};
    if (placement.preemption) {
      placement.node = placement.preemption->node;
      for (const PodPtr& victim : placement.preemption->victims)
        cluster.find(placement.node)->second.TakeAway(*victim);
      found.emplace_back(pod, *std::move(placement.preemption));
    }
    cluster.find(placement.node)->second.Put(pod);
  }
  return found;
}

// Pods that made way for it are still ending: it waits for their room, and no other pod has to go.
bool IsRoomBeingMade(const PodDemand& pod, const ClusterRoom& cluster) {
  const auto room = cluster.find(pod.nominated_node);
  if (room == cluster.end()) return false;
  return std::ranges::any_of(room->second.pods, [&pod](const PodPtr& other) {
    return other->meta.deletion_time && other->priority < pod.priority;
  });
}

// Whose turn it is: the lowest first.
using Order = std::tuple<std::int64_t, absl::Time, std::string>;
Order OrderOf(const PodDemand& pod) { return {-pod.priority, pod.meta.created, pod.meta.uid}; }

// What is placed at a time: a pod, or all that wait of a gang.
struct Unit {
  Order order;
  Gang gang;
  std::string why;  // it cannot be placed
};

std::vector<Unit> FindUnits(const std::vector<PodPtr>& waiting, const FindPodGroup& find_group,
                            const ClusterRoom& cluster) {
  std::map<kube::ObjectKey, int> held;
  for (const auto& [name, room] : cluster) {
    for (const PodPtr& pod : room.pods) {
      if (const auto group = GroupOf(*pod); group && !pod->meta.deletion_time) ++held[*group];
    }
  }
  std::vector<Unit> units;
  std::map<kube::ObjectKey, std::size_t> gangs;  // units by group
  for (const PodPtr& pod : waiting) {
    const auto group = GroupOf(*pod);
    const auto [at, is_new] = group ? gangs.emplace(*group, units.size()) : std::pair(gangs.end(), true);
    if (!is_new) {
      units[at->second].gang.waiting.push_back(pod);
      continue;
    }
    Unit unit{.order = OrderOf(*pod), .gang = {.minimum = 0, .waiting = {pod}}};
    const auto known = group ? find_group(*group) : nullptr;
    if (known != nullptr) {
      unit.gang.minimum = known->minimum;
      unit.gang.held = held[*group];
      unit.order = {-pod->priority, known->meta.created, known->meta.uid};
    } else if (group) {
      unit.why = StrCat("waits for its PodGroup ", group->Str(), ", which does not exist");
    }
    units.push_back(std::move(unit));
  }
  std::ranges::sort(units, {}, &Unit::order);
  return units;
}

class TurnPlanner {
 public:
  explicit TurnPlanner(ClusterRoom cluster) : cluster_(std::move(cluster)) {}

  void Place(const Unit& unit) {
    if (!unit.why.empty()) {
      for (const PodPtr& pod : unit.gang.waiting) turn_.unplaced.push_back({.pod = pod, .why = unit.why});
    } else if (unit.gang.minimum > unit.gang.held) {
      PlaceTogether(unit.gang);
    } else {
      for (const PodPtr& pod : unit.gang.waiting) PlaceOne(pod);
    }
  }
  Turn Take() && { return std::move(turn_); }

 private:
  void Bind(const PodPtr& pod, const std::string& node) {
    cluster_.find(node)->second.Put(pod);
    turn_.bindings.push_back({.pod = pod, .node = node});
  }

  void PlaceOne(const PodPtr& pod) {
    Placement placement = PlacePod(*pod, cluster_);
    if (!placement.node.empty()) return Bind(pod, placement.node);
    if (IsRoomBeingMade(*pod, cluster_)) placement.preemption.reset();
    turn_.unplaced.push_back({.pod = pod, .why = PrintUnschedulable(*pod, placement)});
    turn_.unplaced.back().preemption = std::move(placement.preemption);
  }

  // Those beyond the minimum are placed as far as there is room.
  void PlaceTogether(const Gang& gang) {
    const GangPlacement placement = PlaceGang(gang, cluster_);
    for (const Binding& binding : placement.placed) Bind(binding.pod, binding.node);
    if (placement.why.empty()) {
      for (const PodPtr& pod : gang.waiting) {
        if (std::ranges::find(placement.placed, pod, &Binding::pod) == placement.placed.end()) PlaceOne(pod);
      }
      return;
    }
    const bool being_made =
        std::ranges::any_of(gang.waiting, [&](const PodPtr& pod) { return IsRoomBeingMade(*pod, cluster_); });
    for (const PodPtr& pod : gang.waiting) {
      Unplaced& unplaced = turn_.unplaced.emplace_back(Unplaced{.pod = pod, .why = placement.why});
      const auto found = std::ranges::find(placement.preemptions, pod, &std::pair<PodPtr, Preemption>::first);
      if (!being_made && found != placement.preemptions.end()) unplaced.preemption = found->second;
    }
  }

  ClusterRoom cluster_;
  Turn turn_;
};

}  // namespace

absl::StatusOr<PodGroup> ParsePodGroup(std::string json) {
  PodGroup group;
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(group.meta, kube::ParseObjectMeta(std::move(json)));
  constexpr std::int64_t kMost = 1'000'000;
  group.minimum = static_cast<int>(
      std::clamp<std::int64_t>(IntAt(document, {"spec", "minMember"}).value_or(1), 1, kMost));
  return group;
}

GangPlacement PlaceGang(const Gang& gang, const ClusterRoom& cluster) {
  GangPlacement out;
  const auto missing = static_cast<std::size_t>(std::max(gang.minimum - gang.held, 0));
  if (gang.waiting.size() < missing) {
    // How many there are is not said: each new one would be a new message for all.
    out.why = StrCat("gang of ", gang.minimum, " waits until ", gang.minimum, " of its pods exist");
    return out;
  }
  ClusterRoom room = cluster;
  std::string refusal;
  std::size_t refused = 0;
  for (const PodPtr& pod : gang.waiting) {
    if (out.placed.size() == missing || gang.waiting.size() - refused < missing) break;
    const Placement placement = PlacePod(*pod, room);
    if (placement.node.empty()) {
      if (refused++ == 0) refusal = PrintUnschedulable(*pod, placement);
      continue;
    }
    room.find(placement.node)->second.Put(pod);
    out.placed.push_back({.pod = pod, .node = placement.node});
  }
  if (out.placed.size() == missing) return out;
  const std::vector<PodPtr> needed(gang.waiting.begin(),
                                   gang.waiting.begin() + static_cast<std::ptrdiff_t>(missing));
  const std::string shortage = PrintShortage(needed, cluster);
  out.why = shortage.empty() ? StrCat(PrintGang(gang), " needs ", missing, " places; ", out.placed.size(),
                                      out.placed.size() == 1 ? " fits: " : " fit: ", refusal)
                             : StrCat(PrintGang(gang), " ", shortage);
  out.placed.clear();
  out.preemptions = FindPreemptions(needed, cluster);
  return out;
}

Turn PlanTurn(std::vector<PodPtr> waiting, const FindPodGroup& find_group, ClusterRoom cluster) {
  std::ranges::sort(waiting, {}, [](const PodPtr& pod) { return OrderOf(*pod); });
  const std::vector<Unit> units = FindUnits(waiting, find_group, cluster);
  TurnPlanner planner(std::move(cluster));
  for (const Unit& unit : units) planner.Place(unit);
  return std::move(planner).Take();
}

}  // namespace trainyard::placement
