#include "controllers/scheduler/scheduler.h"

#include <utility>

#include "base/document.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::scheduler {
namespace {

constexpr absl::Duration kTryAgain = absl::Seconds(1);

// A merge patch replaces the list of conditions whole; a strategic one replaces the one of its type.
std::string ConditionPatch(const PodDemand& pod, std::string_view message, std::string_view nominated,
                           absl::Time now) {
  Object status{{"conditions", Array{Object{{"type", "PodScheduled"},
                                            {"status", "False"},
                                            {"reason", "Unschedulable"},
                                            {"message", message},
                                            {"lastProbeTime", nullptr},
                                            {"lastTransitionTime", PrintTime(now)}}}}};
  if (!nominated.empty()) status["nominatedNodeName"] = nominated;
  return PrintJson(Object{{"metadata", Object{{"uid", pod.meta.uid}}}, {"status", std::move(status)}});
}

std::string BindingOf(const PodDemand& pod, std::string_view node) {
  return PrintJson(Object{
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata", Object{{"name", pod.meta.name}, {"namespace", pod.meta.ns.view()}, {"uid", pod.meta.uid}}},
      {"target", Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
}

}  // namespace

Scheduler::Scheduler(kube::Api& api, Clock& clock, IdSource ids, kube::EventRecorder& events,
                     SchedulerOptions options)
    : api_(api),
      clock_(clock),
      events_(events),
      options_(std::move(options)),
      pods_(api, clock, IdSource(ids.Next()), {.resource = kube::Resource::Pods()}, placement::ParseDemand),
      nodes_(api, clock, IdSource(ids.Next()), {.resource = kube::Resource::Nodes()},
             [](std::string json) { return kube::ParseNode(std::move(json)); }),
      groups_(api, clock, IdSource(ids.Next()), {.resource = kube::Resource::PodGroups()},
              placement::ParsePodGroup),
      alarm_(clock.NewAlarm()) {
  pods_.OnChange([this](const kube::Change<PodDemand>& change) {
    {
      MutexLock lock(mu_);
      if (change.after == nullptr || !change.after->node.empty()) assumed_.erase(change.Any().meta.uid);
    }
    alarm_->Notify();
  });
  nodes_.OnChange([this](const auto&) { alarm_->Notify(); });
  groups_.OnChange([this](const auto&) { alarm_->Notify(); });
}

Scheduler::~Scheduler() { Stop(); }

void Scheduler::Start() {
  pods_.Start();
  nodes_.Start();
  groups_.Start();
  thread_ = std::thread([this] { Run(); });
}

void Scheduler::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  pods_.Stop();
  nodes_.Stop();
  groups_.Stop();
  if (thread_.joinable()) thread_.join();
}

// Places pods whenever something has changed: nothing else can make a pod fit that did not.
void Scheduler::Run() {
  if (!pods_.WaitForSync(absl::InfiniteDuration()).ok() ||
      !nodes_.WaitForSync(absl::InfiniteDuration()).ok() ||
      !groups_.WaitForSync(absl::InfiniteDuration()).ok())
    return;
  for (;;) {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    again_ = SteadyTime::Never();
    Step();
    alarm_->WaitUntil(again_);
  }
}

ClusterRoom Scheduler::Observe() {
  ClusterRoom cluster;
  for (const auto& node : nodes_.cache().List()) cluster[node->meta.name].node = node;
  MutexLock lock(mu_);
  for (const auto& pod : pods_.cache().List()) {
    if (pod->finished) continue;
    std::string_view place = pod->node;
    if (const auto assumed = assumed_.find(pod->meta.uid); place.empty() && assumed != assumed_.end())
      place = assumed->second;
    if (const auto room = cluster.find(place); room != cluster.end()) room->second.Put(pod);
  }
  return cluster;
}

std::vector<PodPtr> Scheduler::Waiting() {
  std::vector<PodPtr> waiting;
  for (const auto& pod : pods_.cache().List()) {
    if (pod->Waits() && !pod->gated && pod->scheduler == options_.name) waiting.push_back(pod);
  }
  {
    MutexLock lock(mu_);
    std::erase_if(waiting,
                  [&](const auto& pod) TY_REQUIRES(mu_) { return assumed_.contains(pod->meta.uid); });
  }
  return waiting;
}

int Scheduler::Step() {
  auto waiting = Waiting();
  if (waiting.empty()) return 0;
  const placement::Turn turn = PlanTurn(
      std::move(waiting), [this](const kube::ObjectKey& key) { return groups_.cache().Get(key); }, Observe());
  if (!Bind(turn.bindings)) again_ = clock_.Steady() + kTryAgain;
  Tell(turn.unplaced);
  return static_cast<int>(turn.bindings.size());
}

bool Scheduler::Bind(const std::vector<Binding>& bindings) {
  if (bindings.empty()) return true;
  bool whole = true;
  std::vector<kube::Operation> operations;
  {
    MutexLock lock(mu_);
    for (const Binding& binding : bindings) assumed_[binding.pod->meta.uid] = binding.node;
  }
  for (const Binding& binding : bindings) {
    kube::Operation operation;
    operation.request = {.method = "POST",
                         .target = kube::ResourcePath(kube::Resource::Pods(), binding.pod->meta.ns.view(),
                                                      binding.pod->meta.name, "binding"),
                         .body = BindingOf(*binding.pod, binding.node)};
    operations.push_back(std::move(operation));
  }
  const auto results = api_.Do(std::move(operations));
  for (std::size_t at = 0; at < results.size(); ++at) {
    const Binding& binding = bindings[at];
    if (results[at].ok()) {
      events_.Record(Reference(*binding.pod), kube::EventType::kNormal, "Scheduled",
                     StrCat("Successfully assigned ", binding.pod->meta.Key().Str(), " to ", binding.node));
      continue;
    }
    // If somebody else has bound it, or it is gone, the watch will tell.
    whole = whole && (kube::IsNotFound(results[at].status()) || kube::IsConflict(results[at].status()));
    log::Info(
        "pod was not bound",
        {{"pod", binding.pod->meta.Key().Str()}, {"node", binding.node}, {"error", results[at].status()}});
    MutexLock lock(mu_);
    assumed_.erase(binding.pod->meta.uid);
  }
  return whole;
}

void Scheduler::Tell(const std::vector<placement::Unplaced>& unplaced) {
  std::vector<kube::Operation> operations;
  for (const auto& [pod, why, preemption] : unplaced) {
    if (preemption) Preempt(*pod, *preemption);
    if (why == pod->told) continue;
    events_.Record(Reference(*pod), kube::EventType::kWarning, "FailedScheduling", why);
    operations.push_back(
        kube::PatchOperation(kube::Resource::Pods(), pod->meta.Key(),
                             ConditionPatch(*pod, why, preemption ? preemption->node : "", clock_.Now()),
                             {.type = kube::PatchType::kStrategic}, "status"));
  }
  if (operations.empty()) return;
  for (const auto& result : api_.Do(std::move(operations))) {
    if (!result.ok() && !kube::IsNotFound(result.status()) && !kube::IsConflict(result.status())) {
      log::Warn("cannot say why a pod is not scheduled", {{"error", result.status()}});
    }
  }
}

void Scheduler::Preempt(const PodDemand& pod, const Preemption& preemption) {
  for (const auto& victim : preemption.victims) {
    if (victim->meta.deletion_time) continue;
    events_.Record(Reference(*victim), kube::EventType::kNormal, "Preempted",
                   StrCat("Preempted by ", pod.meta.Key().Str(), " on node ", preemption.node));
    const std::string condition = PrintJson(
        Object{{"status",
                Object{{"conditions", Array{Object{{"type", "DisruptionTarget"},
                                                   {"status", "True"},
                                                   {"reason", "PreemptionByScheduler"},
                                                   {"message", StrCat("preempted by ", pod.meta.Key().Str(),
                                                                      ", which has a higher priority")},
                                                   {"lastTransitionTime", PrintTime(clock_.Now())}}}}}}});
    const auto marked = api_.Patch(kube::Resource::Pods(), victim->meta.Key(), condition,
                                   {.type = kube::PatchType::kStrategic}, "status");
    const absl::Status deleted =
        marked.ok() ? api_.Delete(kube::Resource::Pods(), victim->meta.Key(), {.uid = victim->meta.uid})
                    : marked.status();
    if (!deleted.ok() && !kube::IsNotFound(deleted)) {
      log::Warn("cannot preempt a pod", {{"pod", victim->meta.Key().Str()}, {"error", deleted}});
    }
  }
}

kube::ObjectReference Scheduler::Reference(const PodDemand& pod) const {
  return {.api_version = "v1",
          .kind = "Pod",
          .key = pod.meta.Key(),
          .uid = pod.meta.uid,
          .resource_version = pod.meta.resource_version};
}

}  // namespace trainyard::scheduler
