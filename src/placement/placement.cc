#include "placement/placement.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "kube/quantity.h"

namespace trainyard::placement {
namespace {

constexpr std::string_view kPods = "pods";
constexpr std::size_t kNodesInMessage = 20;

bool Holds(const NodeTerm& term, const kube::CompactNode& node) {
  const auto field = [&](std::string_view key) -> std::optional<std::string_view> {
    if (key == "metadata.name") return node.meta.name;
    return std::nullopt;
  };
  return term.labels.Matches([&](std::string_view key) { return node.meta.labels.Find(key); }) &&
         std::all_of(term.fields.begin(), term.fields.end(),
                     [&](const auto& requirement) { return requirement.Matches(field); });
}

bool SelectorHolds(const PodDemand& pod, const kube::CompactNode& node) {
  const bool labels = std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& label) {
    return node.meta.labels.Find(label.first) == label.second;
  });
  const bool terms =
      pod.node_terms.empty() || std::any_of(pod.node_terms.begin(), pod.node_terms.end(),
                                            [&](const NodeTerm& term) { return Holds(term, node); });
  return labels && terms;
}

const kube::Taint* FindUntolerated(const PodDemand& pod, const kube::CompactNode& node) {
  for (const kube::Taint& taint : node.taints) {
    if (taint.effect == "PreferNoSchedule") continue;
    const bool tolerated =
        std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                    [&](const Toleration& toleration) { return toleration.Tolerates(taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

bool Clash(const HostPort& a, const HostPort& b) {
  const auto everywhere = [](const std::string& address) { return address.empty() || address == "0.0.0.0"; };
  return a.port == b.port && a.protocol == b.protocol &&
         (everywhere(a.address) || everywhere(b.address) || a.address == b.address);
}

bool PortsClash(const PodDemand& pod, const NodeRoom& room) {
  for (const auto& other : room.pods) {
    for (const HostPort& theirs : other->host_ports) {
      for (const HostPort& ours : pod.host_ports) {
        if (Clash(ours, theirs)) return true;
      }
    }
  }
  return false;
}

bool Selects(const PodTerm& term, std::string_view own_namespace, const PodDemand& other) {
  const std::string_view ns = other.meta.ns.view();
  const bool in_scope = term.all_namespaces ||
                        (term.namespaces.empty() ? ns == own_namespace
                                                 : std::find(term.namespaces.begin(), term.namespaces.end(),
                                                             ns) != term.namespaces.end());
  return in_scope && term.labels.Matches([&](std::string_view key) { return other.meta.labels.Find(key); });
}

// Whether a pod that the term selects runs in the same place as `room`'s node, by the term's topology.
bool RunsNear(const PodTerm& term, const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  const auto place = room.node->meta.labels.Find(term.topology_key);
  if (!place) return false;
  for (const auto& [name, other] : cluster) {
    if (other.node->meta.labels.Find(term.topology_key) != place) continue;
    for (const auto& neighbour : other.pods) {
      if (neighbour->meta.uid != pod.meta.uid && Selects(term, pod.meta.ns.view(), *neighbour)) return true;
    }
  }
  return false;
}

bool RunsAnywhere(const PodTerm& term, const PodDemand& pod, const ClusterRoom& cluster) {
  for (const auto& [name, room] : cluster) {
    for (const auto& other : room.pods) {
      if (other->meta.uid != pod.meta.uid && Selects(term, pod.meta.ns.view(), *other)) return true;
    }
  }
  return false;
}

bool AffinityHolds(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  for (const PodTerm& term : pod.together) {
    if (RunsNear(term, pod, room, cluster)) continue;
    // The first of a group that wants to be with its own kind has to begin somewhere.
    const bool first = Selects(term, pod.meta.ns.view(), pod) && !RunsAnywhere(term, pod, cluster) &&
                       room.node->meta.labels.Find(term.topology_key).has_value();
    if (!first) return false;
  }
  return true;
}

// Neither wants the other near.
bool AntiAffinityHolds(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  for (const PodTerm& term : pod.apart) {
    if (RunsNear(term, pod, room, cluster)) return false;
  }
  for (const auto& [name, other_room] : cluster) {
    for (const auto& other : other_room.pods) {
      for (const PodTerm& term : other->apart) {
        const auto place = room.node->meta.labels.Find(term.topology_key);
        const bool same_place = place && other_room.node->meta.labels.Find(term.topology_key) == place;
        if (same_place && Selects(term, other->meta.ns.view(), pod)) return false;
      }
    }
  }
  return true;
}

void CheckResources(const PodDemand& pod, const NodeRoom& room, std::vector<Refusal>& refusals) {
  const std::int64_t places = kube::FindAmount(room.node->allocatable, kPods);
  if (places > 0 && static_cast<std::int64_t>(room.pods.size() + 1) * 1000 > places) {
    refusals.push_back({.node = room.name(),
                        .reason = "Too many pods",
                        .detail = StrCat("takes ", places / 1000),
                        .by_pods = true});
  }
  for (const kube::ResourceAmount& request : pod.requests) {
    if (request.milli <= 0) continue;
    const std::int64_t free = room.Free(request.name.view());
    if (request.milli <= free) continue;
    const std::int64_t all = kube::FindAmount(room.node->allocatable, request.name.view());
    refusals.push_back({.node = room.name(),
                        .reason = StrCat("Insufficient ", request.name.view()),
                        .detail = StrCat("asks for ", ShownAmount(request.name.view(), request.milli), ", ",
                                         ShownAmount(request.name.view(), std::max<std::int64_t>(free, 0)),
                                         " of ", ShownAmount(request.name.view(), all), " is free"),
                        .by_pods = request.milli <= all});
  }
}

// The better, the smaller. Suits the pod's wishes first, then leaves nodes evenly used.
std::tuple<std::int64_t, std::int64_t, std::size_t> Rank(const PodDemand& pod, const NodeRoom& room) {
  std::int64_t wishes = 0;
  for (const NodeTerm& term : pod.preferred_nodes) wishes += Holds(term, *room.node) ? term.weight : 0;
  for (const kube::Taint& taint : room.node->taints) {
    if (taint.effect == "PreferNoSchedule" && FindUntolerated(pod, *room.node) == nullptr) wishes -= 1;
  }
  // How full the fullest of what it asks for would be, in thousandths.
  std::int64_t fullness = 0;
  for (const std::string_view resource : {std::string_view("cpu"), std::string_view("memory")}) {
    const std::int64_t all = kube::FindAmount(room.node->allocatable, resource);
    if (all <= 0) continue;
    const std::int64_t used = all - room.Free(resource) + kube::FindAmount(pod.requests, resource);
    fullness = std::max(fullness, used / std::max<std::int64_t>(all / 1000, 1));
  }
  return {-wishes, fullness, room.pods.size()};
}

// The pods of lower priority that have to go for the pod to fit; nothing if that does not help.
std::optional<Preemption> VictimsOn(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  std::vector<PodPtr> lower;
  for (const auto& other : room.pods) {
    if (other->priority < pod.priority) lower.push_back(other);
  }
  if (lower.empty()) return std::nullopt;
  std::sort(lower.begin(), lower.end(), [](const auto& a, const auto& b) {
    return std::tie(a->priority, b->meta.created) < std::tie(b->priority, a->meta.created);
  });
  ClusterRoom without = cluster;
  NodeRoom& emptied = without.find(room.name())->second;
  for (const auto& victim : lower) emptied.TakeAway(*victim);
  if (!Refusals(pod, emptied, without).empty()) return std::nullopt;
  // The highest first are put back, as long as there is room.
  Preemption preemption{.node = room.name()};
  for (auto victim = lower.rbegin(); victim != lower.rend(); ++victim) {
    emptied.Put(*victim);
    if (Refusals(pod, emptied, without).empty()) continue;
    emptied.TakeAway(**victim);
    preemption.victims.insert(preemption.victims.begin(), *victim);
  }
  return preemption;
}

std::optional<Preemption> FindPreemption(const PodDemand& pod, const ClusterRoom& cluster,
                                         const std::vector<Refusal>& refusals) {
  if (!pod.may_preempt) return std::nullopt;
  std::set<std::string_view> hopeless;
  for (const Refusal& refusal : refusals) {
    if (!refusal.by_pods) hopeless.insert(refusal.node);
  }
  std::optional<Preemption> best;
  const auto cost = [](const Preemption& p) {
    return std::tuple(p.victims.empty() ? INT64_MIN : p.victims.back()->priority, p.victims.size());
  };
  for (const auto& [name, room] : cluster) {
    if (hopeless.contains(name)) continue;
    auto found = VictimsOn(pod, room, cluster);
    if (found && !found->victims.empty() && (!best || cost(*found) < cost(*best))) best = std::move(found);
  }
  return best;
}

}  // namespace

void Add(std::vector<kube::ResourceAmount>& amounts, const std::vector<kube::ResourceAmount>& more,
         std::int64_t sign) {
  for (const kube::ResourceAmount& amount : more) {
    auto place = std::lower_bound(amounts.begin(), amounts.end(), amount,
                                  [](const auto& a, const auto& b) { return a.name.view() < b.name.view(); });
    if (place == amounts.end() || place->name != amount.name) place = amounts.insert(place, {amount.name, 0});
    place->milli += sign * amount.milli;
  }
}

std::string ShownAmount(std::string_view resource, std::int64_t milli) {
  const bool bytes = resource == "memory" || resource == "ephemeral-storage";
  return kube::Quantity::FromMilli(milli,
                                   bytes ? kube::Quantity::Format::kBinary : kube::Quantity::Format::kDecimal)
      .Print();
}

std::int64_t NodeRoom::Free(std::string_view resource) const {
  return kube::FindAmount(node->allocatable, resource) - kube::FindAmount(used, resource);
}

void NodeRoom::Put(PodPtr pod) {
  Add(used, pod->requests, 1);
  pods.push_back(std::move(pod));
}

void NodeRoom::TakeAway(const PodDemand& pod) {
  const auto found = std::find_if(pods.begin(), pods.end(),
                                  [&](const auto& other) { return other->meta.uid == pod.meta.uid; });
  if (found == pods.end()) return;
  Add(used, pod.requests, -1);
  pods.erase(found);
}

std::vector<Refusal> Refusals(const PodDemand& pod, const NodeRoom& room, const ClusterRoom& cluster) {
  std::vector<Refusal> refusals;
  const auto refuse = [&](std::string reason, bool by_pods = false) {
    refusals.push_back({.node = room.name(), .reason = std::move(reason), .by_pods = by_pods});
  };
  if (room.node->unschedulable) {
    const kube::Taint cordoned{.key = kube::SharedText("node.kubernetes.io/unschedulable"),
                               .effect = kube::SharedText("NoSchedule")};
    const bool tolerated = std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                                       [&](const Toleration& t) { return t.Tolerates(cordoned); });
    if (!tolerated) refuse("node(s) were unschedulable");
  }
  if (const kube::Taint* taint = FindUntolerated(pod, *room.node)) {
    // Of a cordoned node that has been said.
    if (!refusals.empty() && taint->key == "node.kubernetes.io/unschedulable") return refusals;
    refuse(StrCat("node(s) had untolerated taint {", taint->key.view(), ": ", taint->value.view(), "}"));
  } else if (!room.node->IsReady() && !room.node->unschedulable) {
    refuse("node(s) were not ready");
  }
  if (!SelectorHolds(pod, *room.node)) refuse("node(s) didn't match Pod's node affinity/selector");
  if (!refusals.empty()) return refusals;
  CheckResources(pod, room, refusals);
  if (PortsClash(pod, room)) refuse("node(s) didn't have free ports for the requested pod ports", true);
  if (!pod.together.empty() && !AffinityHolds(pod, room, cluster))
    refuse("node(s) didn't match pod affinity rules");
  if (!AntiAffinityHolds(pod, room, cluster)) refuse("node(s) didn't match pod anti-affinity rules", true);
  return refusals;
}

Placement PlacePod(const PodDemand& pod, const ClusterRoom& cluster) {
  Placement placement;
  const NodeRoom* best = nullptr;
  for (const auto& [name, room] : cluster) {
    std::vector<Refusal> refusals = Refusals(pod, room, cluster);
    if (refusals.empty()) {
      if (best == nullptr || Rank(pod, room) < Rank(pod, *best)) best = &room;
      continue;
    }
    for (Refusal& refusal : refusals) placement.refusals.push_back(std::move(refusal));
  }
  if (best != nullptr) {
    placement.node = best->name();
    placement.refusals.clear();
    return placement;
  }
  placement.preemption = FindPreemption(pod, cluster, placement.refusals);
  return placement;
}

std::string PrintUnschedulable(const PodDemand& pod, const Placement& placement) {
  std::set<std::string_view> nodes;
  std::map<std::string_view, int> counts;
  for (const Refusal& refusal : placement.refusals) {
    nodes.insert(refusal.node);
    ++counts[refusal.reason];
  }
  if (nodes.empty()) return "no nodes available to schedule pods";
  std::string message = StrCat("0/", nodes.size(), " nodes are available: ");
  bool first = true;
  for (const auto& [reason, count] : counts) {
    StrAppend(message, first ? "" : ", ", count, " ", reason);
    first = false;
  }
  message += '.';
  if (placement.preemption) {
    StrAppend(message, " Room is being made on ", placement.preemption->node, ": ",
              placement.preemption->victims.size(), " pod(s) of lower priority end.");
  } else if (pod.priority > 0 && !pod.may_preempt) {
    message += " The pod does not preempt others.";
  }
  std::size_t shown = 0;
  std::string_view last;
  for (const Refusal& refusal : placement.refusals) {
    const bool same_node = refusal.node == last;
    if (!same_node && ++shown > kNodesInMessage) {
      message += "; ...";
      break;
    }
    StrAppend(message,
              same_node    ? ", "
              : shown == 1 ? " "
                           : "; ",
              same_node ? "" : refusal.node, same_node ? "" : ": ", refusal.reason);
    if (!refusal.detail.empty()) StrAppend(message, " (", refusal.detail, ")");
    last = refusal.node;
  }
  return message;
}

}  // namespace trainyard::placement
