#include "job/scale/autoscale.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace trainyard::job::scale {
namespace {

constexpr std::string_view kCpu = "cpu";

std::int64_t LimitOf(const Cluster& cluster, std::string_view resource, const Limits& limits) {
  const auto total = static_cast<double>(cluster.total.Get(resource));
  return static_cast<std::int64_t>(std::floor(resource == kCpu ? total * limits.max_load : total));
}

bool IsOver(const Cluster& cluster, std::string_view resource, const Limits& limits) {
  return cluster.requested.Get(resource) > LimitOf(cluster, resource, limits);
}

double FulfilmentOf(const ElasticRole& role, int size) {
  if (role.most <= role.least) return 1;
  return static_cast<double>(size - role.least) / static_cast<double>(role.most - role.least);
}

// Room that there is, or that there will be when those are gone that are told to go.
enum class Room : std::uint8_t { kNow, kSoon };

bool Holds(const Node& node, const Resources& pod, Room room) {
  if (!node.only_for.empty() && pod.Get(node.only_for) == 0) return false;
  return std::ranges::all_of(pod.amounts(), [&](const auto& one) {
    const auto& [name, amount] = one;
    const std::int64_t soon = room == Room::kSoon ? node.leaving.Get(name) : 0;
    return amount <= 0 || node.free.Get(name) + soon >= amount;
  });
}

// Plays through what would be, one pod at a time.
class DryRun {
 public:
  DryRun(const Cluster& cluster, const std::vector<ElasticRole>& roles,
         const std::vector<WaitingPods>& waiting, const Limits& limits)
      : cluster_(cluster), roles_(roles), waiting_(waiting), limits_(limits) {
    for (const ElasticRole& role : roles) sizes_.push_back(role.now);
    whys_.resize(roles.size());
    waits_.resize(roles.size());
    lacks_.resize(roles.size());
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) by_name_.emplace(cluster_.nodes[i].name, i);
    for (std::size_t i = 0; i < roles_.size(); ++i) PlacePending(i);
    ForgetTheHopeless();
  }

  std::vector<Change> Run() {
    while (ShrinkOne()) {
    }
    PlaceWaiting();
    while (GrowOne()) {
    }
    std::vector<Change> changes;
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      if (sizes_[i] == roles_[i].now) continue;
      changes.push_back({.job = roles_[i].job,
                         .role = roles_[i].role,
                         .from = roles_[i].now,
                         .to = sizes_[i],
                         .why = whys_[i]});
    }
    return changes;
  }

 private:
  // ---- before anything changes

  // Who would not fit even if all others had their least is not made room for.
  void ForgetTheHopeless() {
    std::vector<Node> emptied = cluster_.nodes;
    for (const ElasticRole& role : roles_) {
      for (std::size_t pod = static_cast<std::size_t>(role.least); pod < role.pods.size(); ++pod) {
        if (Node* node = FindNode(emptied, role.pods[pod])) node->free.Add(role.each);
      }
    }
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      if (lacks_[i] > 0 && !Fits(emptied, Several(roles_[i].each, lacks_[i]))) {
        cluster_.requested.Add(roles_[i].each, -lacks_[i]);
        lacks_[i] = 0;
      }
      if (!roles_[i].waits) continue;
      waits_[i] = Fits(emptied, Several(roles_[i].each, roles_[i].least));
      if (!waits_[i]) cluster_.requested.Add(roles_[i].each, -roles_[i].now);
    }
    std::erase_if(waiting_, [&](const WaitingPods& job) {
      if (Fits(emptied, job.pods)) return false;
      for (const Resources& pod : job.pods) cluster_.requested.Add(pod, -1);
      return true;
    });
  }

  static std::vector<Resources> Several(const Resources& pod, int count) {
    return {static_cast<std::size_t>(count), pod};
  }
  static bool Fits(std::vector<Node> nodes, const std::vector<Resources>& pods) {
    return std::ranges::all_of(pods, [&](const Resources& pod) { return Place(nodes, pod); });
  }

  Node* FindNode(std::vector<Node>& nodes, const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &nodes[found->second];
  }

  // Pods that have no node yet get theirs before anybody grows; those beyond the least that find none are
  // taken back.
  void PlacePending(std::size_t i) {
    const ElasticRole& role = roles_[i];
    if (role.waits) return;
    for (int pod = 0; pod < role.now; ++pod) {
      const auto index = static_cast<std::size_t>(pod);
      if (index < role.pods.size() && !role.pods[index].empty()) continue;
      if (Place(cluster_.nodes, role.each)) continue;
      if (pod < role.least) {
        ++lacks_[i];
        continue;
      }
      if (role.pods.empty()) return;
      cluster_.requested.Add(role.each, pod - sizes_[i]);
      sizes_[i] = pod;
      whys_[i] = "the pods beyond find no node";
      return;
    }
  }

  // ---- less

  // What there is too little of, and for whom.
  struct Shortage {
    std::vector<std::string> resources;
    std::string why;
  };

  bool ShrinkOne() {
    const Shortage shortage = FindShortage();
    if (shortage.resources.empty()) return false;
    const bool somebody_waits = SomebodyWaits();
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      const ElasticRole& role = roles_[i];
      if (sizes_[i] <= role.least || (!role.settled && !somebody_waits)) continue;
      const bool helps = std::ranges::any_of(
          shortage.resources, [&](const std::string& name) { return role.each.Get(name) > 0; });
      if (!helps) continue;
      // Of equals, the one that comes last gives way first.
      if (!chosen || FulfilmentOf(role, sizes_[i]) >= FulfilmentOf(roles_[*chosen], sizes_[*chosen]))
        chosen = i;
    }
    if (!chosen) return false;
    Shrink(*chosen);
    if (whys_[*chosen].empty()) whys_[*chosen] = shortage.why;
    return true;
  }

  void Shrink(std::size_t i) {
    const ElasticRole& role = roles_[i];
    const auto last = static_cast<std::size_t>(--sizes_[i]);
    cluster_.requested.Add(role.each, -1);
    if (last >= role.pods.size() || role.pods[last].empty()) return;  // it had no node
    if (Node* node = FindNode(cluster_.nodes, role.pods[last])) node->free.Add(role.each);
  }

  Shortage FindShortage() const {
    Shortage shortage;
    for (const auto& [name, amount] : cluster_.requested.amounts()) {
      if (!IsOver(cluster_, name, limits_)) continue;
      shortage.resources.push_back(name);
      StrAppend(shortage.why, shortage.why.empty() ? "more " : " and ", name);
    }
    if (!shortage.resources.empty()) {
      StrAppend(shortage.why, " is asked for than there is to give");
      return shortage;
    }
    return FindHomeless();
  }

  bool SomebodyWaits() const {
    return !waiting_.empty() || std::ranges::find(waits_, true) != waits_.end() ||
           std::ranges::any_of(lacks_, [](int lack) { return lack > 0; });
  }

  // A job that waits and does not fit anywhere, though there is enough of everything on the whole.
  Shortage FindHomeless() const {
    std::vector<Node> nodes = cluster_.nodes;
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      for (int pod = 0; pod < CountWaiting(i); ++pod) {
        if (!Place(nodes, roles_[i].each)) return NoPlaceFor(roles_[i].job, roles_[i].each);
      }
    }
    for (const WaitingPods& job : waiting_) {
      for (const Resources& pod : job.pods) {
        if (!Place(nodes, pod)) return NoPlaceFor(job.job, pod);
      }
    }
    return {};
  }

  // Pods of the role that others make room for.
  int CountWaiting(std::size_t i) const { return waits_[i] ? sizes_[i] : lacks_[i]; }

  static Shortage NoPlaceFor(const std::string& job, const Resources& pod) {
    Shortage shortage{.why = StrCat(job, " waits for room")};
    for (const auto& [name, amount] : pod.amounts()) {
      if (amount > 0) shortage.resources.push_back(name);
    }
    return shortage;
  }

  // On the node where the least is left over, so that large pods find room too.
  static bool Place(std::vector<Node>& nodes, const Resources& pod) {
    Node* best = nullptr;
    for (Node& node : nodes) {
      if (!Holds(node, pod, Room::kSoon)) continue;
      if (best == nullptr || node.free.Get(kCpu) < best->free.Get(kCpu)) best = &node;
    }
    if (best == nullptr) return false;
    best->free.Add(pod, -1);
    return true;
  }

  // ---- more

  // What is free is theirs who wait; the others grow into the rest.
  void PlaceWaiting() {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      for (int pod = 0; pod < CountWaiting(i); ++pod) Place(cluster_.nodes, roles_[i].each);
    }
    for (const WaitingPods& job : waiting_) {
      for (const Resources& pod : job.pods) Place(cluster_.nodes, pod);
    }
  }

  bool GrowOne() {
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      const ElasticRole& role = roles_[i];
      if (!role.settled || sizes_[i] >= role.most || sizes_[i] < role.now || !HasRoomFor(role.each)) continue;
      const auto rank = [&](std::size_t k) {
        return std::tuple(FulfilmentOf(roles_[k], sizes_[k]), roles_[k].each.Get(kCpu));
      };
      if (!chosen || rank(i) < rank(*chosen)) chosen = i;
    }
    if (!chosen) return false;
    ++sizes_[*chosen];
    cluster_.requested.Add(roles_[*chosen].each);
    Place(cluster_.nodes, roles_[*chosen].each);
    whys_[*chosen] = "the cluster has room";
    return true;
  }

  bool HasRoomFor(const Resources& pod) const {
    for (const auto& [name, amount] : pod.amounts()) {
      if (amount > 0 && cluster_.requested.Get(name) + amount > LimitOf(cluster_, name, limits_))
        return false;
    }
    return std::ranges::any_of(cluster_.nodes,
                               [&](const Node& node) { return Holds(node, pod, Room::kNow); });
  }

  Cluster cluster_;
  const std::vector<ElasticRole>& roles_;
  std::vector<WaitingPods> waiting_;
  const Limits& limits_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // of nodes
  std::vector<bool> waits_;                                  // by role
  std::vector<int> lacks_;                                   // pods below the least that find no node
  std::vector<int> sizes_;
  std::vector<std::string> whys_;
};

}  // namespace

double Fulfilment(const ElasticRole& role) { return FulfilmentOf(role, role.now); }

std::string FindOverload(const Cluster& cluster, const Limits& limits) {
  for (const auto& [name, amount] : cluster.requested.amounts()) {
    if (IsOver(cluster, name, limits)) return name;
  }
  return "";
}

std::vector<Change> PlanScaling(const Cluster& cluster, const std::vector<ElasticRole>& roles,
                                const std::vector<WaitingPods>& waiting, const Limits& limits) {
  return DryRun(cluster, roles, waiting, limits).Run();
}

}  // namespace trainyard::job::scale
