#include "controllers/node_lifecycle.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::controllers {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

ObjectRef NodeRef(const std::string& name) { return {kube::Resource::Nodes(), {.ns = "", .name = name}}; }
ObjectRef LeaseRef(const std::string& name) {
  return {kube::Resource::Leases(), {.ns = std::string(kLeaseNamespace), .name = name}};
}

std::string_view HeartbeatOf(const Document& node) {
  const Array* conditions = ArrayAt(node, {"status", "conditions"});
  if (conditions == nullptr) return "";
  for (const Document& condition : *conditions) {
    if (StringAt(condition, {"type"}) == "Ready") return StringAt(condition, {"lastHeartbeatTime"});
  }
  return "";
}

absl::Status FirstError(const std::vector<absl::Status>& results) {
  for (const absl::Status& result : results) {
    if (!result.ok() && !kube::IsNotFound(result)) return result;
  }
  return absl::OkStatus();
}

}  // namespace

NodeLifecycle::NodeLifecycle(Parts parts, IdSource random, const NodeTimes& times)
    : api_(parts.api),
      watches_(parts.watches),
      clock_(parts.clock),
      tell_(std::move(parts.tell)),
      times_(times),
      by_node_(watches_.pods().AddIndex([](const ObservedPod& pod, std::vector<std::string>& values) {
        if (!pod.node.empty()) values.emplace_back(pod.node.view());
      })),
      loop_("nodes", clock_, std::move(random),
            EachAlone([this](const kube::ObjectKey& key) { return Pass(key); })) {
  watches_.nodes().OnChange([this](const kube::Change<ObservedNode>& change) { ObserveNode(change); });
  watches_.leases().OnChange([this](const kube::Change<ObservedLease>& change) { ObserveLease(change); });
  watches_.pods().OnChange([this](const kube::Change<ObservedPod>& change) { ObservePod(change); });
}

void NodeLifecycle::BeginPass() {
  const bool judging = NextPass() != SteadyTime::Never();
  const absl::Duration late = NotePass(watched_, PassInterval(times_), clock_.Steady());
  if (judging && late > times_.grace / 4) log::Info("node judge late", {{"late", late}});
}

SteadyTime NodeLifecycle::NextPass() const {
  if (!watched_.last_pass || (health_.empty() && missing_.empty())) return SteadyTime::Never();
  return *watched_.last_pass + PassInterval(times_);
}

// ---- what is seen

void NodeLifecycle::ObserveNode(const kube::Change<ObservedNode>& change) {
  const std::string& name = change.Any().meta.name;
  loop_.Add({.ns = "", .name = name});
  if (change.after == nullptr) {
    health_.erase(name);
    return;
  }
  missing_.erase(name);
  NodeHealth& health = health_[name];
  if (health.uid != change.after->meta.uid) health = {.uid = change.after->meta.uid, .heard = watched_.now};
  NoteHeartbeat(health, change.after->heartbeat, watched_.now);
}

void NodeLifecycle::ObserveLease(const kube::Change<ObservedLease>& change) {
  if (change.after == nullptr || change.after->meta.ns != kLeaseNamespace) return;
  const auto health = health_.find(change.after->meta.name);
  if (health != health_.end()) NoteLease(health->second, change.after->renewed, watched_.now);
}

void NodeLifecycle::ObservePod(const kube::Change<ObservedPod>& change) {
  if (change.after == nullptr) {
    leaving_.erase(change.before->meta.Key());
    return;
  }
  if (change.after->node.empty()) return;
  // A healthy node has nothing to do with what becomes of its pods, and there are many of them.
  const kube::ObjectKey key{.ns = "", .name = std::string(change.after->node.view())};
  const auto node = watches_.nodes().cache().Get(key);
  const bool healthy = node != nullptr && node->ready == kube::ConditionStatus::kTrue;
  if (!healthy || StaysFor(change.after->tolerations, node->taints)) loop_.Add(key);
}

std::vector<PodPtr> NodeLifecycle::PodsOn(const std::string& node) const {
  return watches_.pods().cache().ListBy(by_node_, node);
}

// ---- what is done

kube::Outcome NodeLifecycle::Pass(const kube::ObjectKey& key) {
  const std::string& name = key.name;
  // Before the nodes are listed, none of them is missing.
  if (!watches_.nodes().HasSynced()) return kube::Again{absl::Seconds(1)};
  const auto node = watches_.nodes().cache().Get(key);
  const std::vector<PodPtr> pods = PodsOn(name);
  if (node == nullptr) return RemoveOrphans(name, pods);

  NodeHealth& health = health_[name];
  const bool ready = node->ready == kube::ConditionStatus::kTrue;
  if (watched_.now >= LostAt(health, times_, node->has_ready)) {
    if (const absl::Status checked = CheckLife(*node, health); !checked.ok()) return kube::Failed{checked};
  }
  if (NeedsTaints(*node)) {
    if (const absl::Status written = WriteTaints(*node); !written.ok()) return kube::Failed{written};
  }
  if (node->has_ready && !ready) {
    if (const absl::Status marked = MarkPodsNotReady(name, pods); !marked.ok()) return kube::Failed{marked};
    if (const absl::Status freed = ReleasePods(*node, pods); !freed.ok()) return kube::Failed{freed};
  }
  const auto leaves = EvictPods(*node, pods);
  if (!leaves.ok()) return kube::Failed{leaves.status()};
  SteadyTime next = *leaves;
  // One that is unknown already is not judged again; it comes back by what it says itself.
  const SteadyTime lost_at = LostAt(health, times_, node->has_ready);
  if (lost_at > watched_.now) next = std::min(next, lost_at);
  if (next == SteadyTime::Never()) return kube::Done{};
  return kube::Again{std::max(next - watched_.now, absl::ZeroDuration())};
}

// Renews the controllers' own lease, and so returns after every heartbeat that was sent before: a read shows
// only what is on disk, and a busy disk holds up the heartbeats of all nodes at once.
absl::Status NodeLifecycle::WaitForHeartbeats() {
  const std::string name = "trainyard-controllers";
  const Object lease{{"apiVersion", kube::Resource::Leases().ApiVersion()},
                     {"kind", "Lease"},
                     {"metadata", Object{{"name", name}, {"namespace", "kube-system"}}},
                     {"spec", Object{{"holderIdentity", name}, {"renewTime", PrintMicroTime(clock_.Now())}}}};
  return api_
      .Patch(kube::Resource::Leases(), {.ns = "kube-system", .name = name}, PrintJson(lease),
             {.type = kube::PatchType::kApply, .field_manager = name, .force = true})
      .status();
}

// Nothing has been seen of the node for its grace. Before it is said to be lost it is looked for: what a
// watch missed is no silence.
absl::Status NodeLifecycle::CheckLife(const ObservedNode& node, NodeHealth& health) {
  if (node.has_ready && node.ready == kube::ConditionStatus::kUnknown) return absl::OkStatus();
  TY_RETURN_IF_ERROR(WaitForHeartbeats());
  auto found = ReadAll(api_, {NodeRef(node.meta.name), LeaseRef(node.meta.name)});
  for (const auto& answer : found) TY_RETURN_IF_ERROR(answer);
  if (!*found[0] || UidOf(**found[0]) != node.meta.uid) return absl::OkStatus();
  const bool renewed =
      *found[1] && NoteLease(health, StringAt(**found[1], {"spec", "renewTime"}), watched_.now);
  const bool reported = NoteHeartbeat(health, HeartbeatOf(**found[0]), watched_.now);
  if (renewed || reported || !MarkUnknown(**found[0], clock_.Now())) return absl::OkStatus();
  log::Warn("a node gives no sign of life",
            {{"node", node.meta.name}, {"silent", watched_.now - health.heard}});
  TY_RETURN_IF_ERROR(Perform(
      api_,
      Replace{.ref = NodeRef(node.meta.name), .object = **std::move(found[0]), .subresource = "status"}));
  tell_({.resource = kube::Resource::Nodes(),
         .key = node.meta.Key(),
         .uid = node.meta.uid,
         .warning = true,
         .reason = "NodeNotReady",
         .message = "the node gives no sign of life any more"});
  return absl::OkStatus();
}

absl::Status NodeLifecycle::WriteTaints(const ObservedNode& node) {
  TY_ASSIGN_OR_RETURN(std::optional<Document> live, ReadOne(api_, NodeRef(node.meta.name)));
  if (!live) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const ObservedNode now, controllers::ObserveNode(PrintJson(*live)));
  if (!NeedsTaints(now)) return absl::OkStatus();
  CorrectTaints(*live, WantedTaints(now), clock_.Now());
  return Perform(api_, Replace{.ref = NodeRef(node.meta.name), .object = *std::move(live)});
}

absl::Status NodeLifecycle::MarkPodsNotReady(const std::string& node, const std::vector<PodPtr>& pods) {
  std::vector<ObjectRef> refs;
  for (const PodPtr& pod : pods) {
    if (pod->ready) refs.push_back({kube::Resource::Pods(), pod->meta.Key()});
  }
  std::vector<Action> actions;
  auto found = ReadAll(api_, refs);
  for (std::size_t i = 0; i < refs.size(); ++i) {
    TY_RETURN_IF_ERROR(found[i]);
    if (!*found[i] || !MarkPodNotReady(**found[i], node, clock_.Now())) continue;
    actions.emplace_back(Replace{.ref = refs[i], .object = **std::move(found[i]), .subresource = "status"});
  }
  return FirstError(Perform(api_, actions));
}

absl::StatusOr<SteadyTime> NodeLifecycle::EvictPods(const ObservedNode& node,
                                                    const std::vector<PodPtr>& pods) {
  SteadyTime next = SteadyTime::Never();
  std::vector<PodPtr> due;
  for (const PodPtr& pod : pods) {
    const kube::ObjectKey key = pod->meta.Key();
    const auto stays = StaysFor(pod->tolerations, node.taints);
    if (!stays || pod->meta.deletion_time || pod->IsFinished()) {
      leaving_.erase(key);
      continue;
    }
    Leaving& leaving = leaving_[key];
    if (leaving.uid != pod->meta.uid) leaving = {.uid = pod->meta.uid, .since = watched_.now};
    const SteadyTime at = leaving.since + *stays;
    if (at <= watched_.now) {
      due.push_back(pod);
    } else {
      next = std::min(next, at);
    }
  }
  TY_RETURN_IF_ERROR(EndPods(due, {.reason = "DeletionByTaintManager",
                                   .message = StrCat("its node ", node.meta.name,
                                                     " has a taint that it does not tolerate any longer")}));
  for (const PodPtr& pod : due) {
    tell_({.resource = kube::Resource::Pods(),
           .key = pod->meta.Key(),
           .uid = pod->meta.uid,
           .reason = "TaintManagerEviction",
           .message = StrCat("deleted: its node ", node.meta.name,
                             " has a taint that it does not tolerate any longer")});
  }
  return next;
}

// Who says that a node is out of service promises that nothing runs there any more.
absl::Status NodeLifecycle::ReleasePods(const ObservedNode& node, const std::vector<PodPtr>& pods) {
  if (!HasTaint(node, kOutOfServiceTaint)) return absl::OkStatus();
  std::vector<PodPtr> ending;
  std::ranges::copy_if(pods, std::back_inserter(ending),
                       [](const PodPtr& pod) { return pod->meta.deletion_time.has_value(); });
  return EndPods(ending, {.reason = "DeletionByPodGC",
                          .message = StrCat("its node ", node.meta.name, " is out of service"),
                          .fail = true,
                          .force = true});
}

kube::Outcome NodeLifecycle::RemoveOrphans(const std::string& node, const std::vector<PodPtr>& pods) {
  if (pods.empty()) {
    missing_.erase(node);
    return kube::Done{};
  }
  const SteadyTime due = missing_.try_emplace(node, watched_.now).first->second + times_.orphan_grace;
  if (watched_.now < due) return kube::Again{due - watched_.now};
  const auto found = ReadOne(api_, NodeRef(node));
  if (!found.ok()) return kube::Failed{found.status()};
  if (*found) return kube::Again{times_.orphan_grace};  // the watch is about to say so
  return OutcomeOf(EndPods(pods, {.reason = "DeletionByPodGC",
                                  .message = StrCat("its node ", node, " does not exist any more"),
                                  .fail = true,
                                  .force = true}));
}

absl::Status NodeLifecycle::EndPods(const std::vector<PodPtr>& pods, const Ending& ending) {
  std::vector<ObjectRef> refs;
  refs.reserve(pods.size());
  for (const PodPtr& pod : pods) refs.push_back({kube::Resource::Pods(), pod->meta.Key()});
  std::vector<Action> marks;
  std::vector<Action> deletes;
  auto found = ReadAll(api_, refs);
  for (std::size_t i = 0; i < refs.size(); ++i) {
    TY_RETURN_IF_ERROR(found[i]);
    if (!*found[i] || UidOf(**found[i]) != pods[i]->meta.uid) continue;
    Document& pod = **found[i];
    const std::string_view phase = StringAt(pod, {"status", "phase"});
    const bool finished = phase == "Succeeded" || phase == "Failed";
    deletes.emplace_back(
        Delete{.ref = refs[i],
               .uid = pods[i]->meta.uid,
               .grace_seconds = ending.force ? std::optional<std::int64_t>(0) : std::nullopt});
    if (finished || !MarkDisrupted(pod, ending.reason, ending.message, clock_.Now())) continue;
    if (ending.fail) MakeObjectAt(pod, {"status"})["phase"] = "Failed";
    marks.emplace_back(Replace{.ref = refs[i], .object = std::move(pod), .subresource = "status"});
  }
  TY_RETURN_IF_ERROR(FirstError(Perform(api_, marks)));
  return FirstError(Perform(api_, deletes));
}

}  // namespace trainyard::controllers
