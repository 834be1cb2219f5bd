#include "controllers/node_health.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rfc3339.h"
#include "base/text.h"
#include "controllers/actions.h"

namespace trainyard::controllers {
namespace {

constexpr std::string_view kNoSchedule = "NoSchedule";
constexpr std::string_view kNoExecute = "NoExecute";

// Conditions of which nothing is known either when the node is lost.
constexpr std::array<std::string_view, 4> kFromTheNode = {"Ready", "MemoryPressure", "DiskPressure",
                                                          "PIDPressure"};

// Conditions that keep new pods away while they are true.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTroubleTaints = {
    {{"MemoryPressure", "node.kubernetes.io/memory-pressure"},
     {"DiskPressure", "node.kubernetes.io/disk-pressure"},
     {"PIDPressure", "node.kubernetes.io/pid-pressure"},
     {"NetworkUnavailable", "node.kubernetes.io/network-unavailable"}}};
constexpr std::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";

// Whether a taint is ours to set and to remove.
bool IsManaged(std::string_view key, std::string_view effect) {
  if (key == kNotReadyTaint || key == kUnreachableTaint) return effect == kNoSchedule || effect == kNoExecute;
  if (effect != kNoSchedule) return false;
  return key == kUnschedulableTaint ||
         std::ranges::any_of(kTroubleTaints, [&](const auto& taint) { return taint.second == key; });
}

bool Has(const std::vector<kube::Taint>& taints, std::string_view key, std::string_view effect) {
  return std::ranges::any_of(
      taints, [&](const kube::Taint& taint) { return taint.key == key && taint.effect == effect; });
}

kube::Taint MakeTaint(std::string_view key, std::string_view effect) {
  return {.key = kube::SharedText(key), .value = {}, .effect = kube::SharedText(effect)};
}

Document* FindCondition(Document& object, std::string_view type) {
  Array* conditions = ArrayAt(object, {"status", "conditions"});
  if (conditions == nullptr) return nullptr;
  auto* found = std::ranges::find_if(
      *conditions, [&](const Document& condition) { return StringAt(condition, {"type"}) == type; });
  return found == conditions->end() ? nullptr : found;
}

}  // namespace

absl::Duration PassInterval(const NodeTimes& times) { return times.grace / 16; }

absl::Duration NotePass(WatchedTime& watched, absl::Duration interval, SteadyTime clock_now) {
  const absl::Duration passed = clock_now - watched.last_pass.value_or(clock_now);
  watched.last_pass = clock_now;
  watched.now = watched.now + std::min(passed, interval);
  return std::max(passed - interval, absl::ZeroDuration());
}

bool NoteLease(NodeHealth& health, std::string_view renewed, SteadyTime now) {
  if (health.lease == renewed) return false;
  health.lease = renewed;
  health.heard = now;
  return true;
}

bool NoteHeartbeat(NodeHealth& health, std::string_view heartbeat, SteadyTime now) {
  if (health.heartbeat == heartbeat) return false;
  health.heartbeat = heartbeat;
  health.heard = now;
  return true;
}

SteadyTime LostAt(const NodeHealth& health, const NodeTimes& times, bool has_reported) {
  return health.heard + (has_reported ? times.grace : times.startup_grace);
}

bool MarkUnknown(Document& node, absl::Time now) {
  bool changed = false;
  for (const std::string_view type : kFromTheNode) {
    const Document* known = FindCondition(node, type);
    if (known == nullptr && type != "Ready") continue;
    if (known != nullptr && StringAt(*known, {"status"}) == "Unknown") continue;
    changed |= SetCondition(node,
                            {.type = std::string(type),
                             .status = "Unknown",
                             .reason = known == nullptr ? "NodeStatusNeverUpdated" : "NodeStatusUnknown",
                             .message = known == nullptr ? "the node has never said how it is"
                                                         : "nothing has been heard of the node for too long"},
                            now);
  }
  return changed;
}

std::vector<kube::Taint> WantedTaints(const ObservedNode& node) {
  std::vector<kube::Taint> wanted;
  // A new node has said nothing yet; it becomes unknown if that goes on.
  if (node.has_ready && node.ready != kube::ConditionStatus::kTrue) {
    const std::string_view key =
        node.ready == kube::ConditionStatus::kFalse ? kNotReadyTaint : kUnreachableTaint;
    wanted.push_back(MakeTaint(key, kNoSchedule));
    wanted.push_back(MakeTaint(key, kNoExecute));
  }
  for (const auto& [condition, key] : kTroubleTaints) {
    if (std::ranges::find(node.troubles, condition) != node.troubles.end()) {
      wanted.push_back(MakeTaint(key, kNoSchedule));
    }
  }
  if (node.unschedulable) wanted.push_back(MakeTaint(kUnschedulableTaint, kNoSchedule));
  return wanted;
}

bool NeedsTaints(const ObservedNode& node) {
  const std::vector<kube::Taint> wanted = WantedTaints(node);
  const auto has = [&](const kube::Taint& taint) { return Has(node.taints, taint.key, taint.effect); };
  if (!std::ranges::all_of(wanted, has)) return true;
  return std::ranges::any_of(node.taints, [&](const kube::Taint& taint) {
    return IsManaged(taint.key, taint.effect) && !Has(wanted, taint.key, taint.effect);
  });
}

void CorrectTaints(Document& node, const std::vector<kube::Taint>& wanted, absl::Time now) {
  Object& spec = MakeObjectAt(node, {"spec"});
  Array kept;
  std::vector<kube::Taint> missing = wanted;
  if (const Array* present = ArrayAt(node, {"spec", "taints"})) {
    for (const Document& taint : *present) {
      const std::string_view key = StringAt(taint, {"key"});
      const std::string_view effect = StringAt(taint, {"effect"});
      if (IsManaged(key, effect) && !Has(wanted, key, effect)) continue;
      std::erase_if(missing, [&](const kube::Taint& t) { return t.key == key && t.effect == effect; });
      kept.push_back(taint);
    }
  }
  for (const kube::Taint& taint : missing) {
    Object added{{"key", taint.key.view()}, {"effect", taint.effect.view()}};
    if (taint.effect == kNoExecute) added["timeAdded"] = PrintTime(now);
    kept.emplace_back(std::move(added));
  }
  if (kept.empty()) {
    Remove(spec, "taints");
  } else {
    spec["taints"] = std::move(kept);
  }
}

bool Tolerates(const Toleration& toleration, const kube::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

std::optional<absl::Duration> StaysFor(const std::vector<Toleration>& tolerations,
                                       const std::vector<kube::Taint>& taints) {
  std::optional<absl::Duration> shortest;
  for (const kube::Taint& taint : taints) {
    if (taint.effect != kNoExecute) continue;
    const auto tolerated =
        std::ranges::find_if(tolerations, [&](const Toleration& t) { return Tolerates(t, taint); });
    if (tolerated == tolerations.end()) return absl::ZeroDuration();
    if (!tolerated->seconds) continue;
    const absl::Duration stays = std::max(absl::Seconds(*tolerated->seconds), absl::ZeroDuration());
    shortest = std::min(shortest.value_or(stays), stays);
  }
  return shortest;
}

bool HasTaint(const ObservedNode& node, std::string_view key) {
  return std::ranges::any_of(node.taints, [&](const kube::Taint& taint) { return taint.key == key; });
}

bool MarkPodNotReady(Document& pod, std::string_view node, absl::Time now) {
  const Document* ready = FindCondition(pod, "Ready");
  if (ready == nullptr || StringAt(*ready, {"status"}) != "True") return false;
  return SetCondition(pod,
                      {.type = "Ready",
                       .status = "False",
                       .reason = "NodeNotReady",
                       .message = StrCat("its node ", node, " is not ready")},
                      now);
}

bool MarkDisrupted(Document& pod, std::string_view reason, std::string_view message, absl::Time now) {
  return SetCondition(pod,
                      {.type = "DisruptionTarget",
                       .status = "True",
                       .reason = std::string(reason),
                       .message = std::string(message)},
                      now);
}

}  // namespace trainyard::controllers
