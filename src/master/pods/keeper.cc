#include "master/pods/keeper.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/pod_end.h"

namespace trainyard::master {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(1);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);
constexpr int kKeptPods = 3;  // of each seat, that have ended: their logs
constexpr std::size_t kKeptRestarts = 20;
constexpr int kSignalCode = 128;

int NumberOf(const kube::CompactPod& pod, std::string_view label) {
  return ParseNumber<int>(pod.meta.labels.Get(label)).value_or(-1);
}

PodState EndOf(const kube::CompactPod& pod) {
  if (pod.disruption.status == kube::ConditionStatus::kTrue || !pod.reason.empty()) return PodState::kKilled;
  for (const kube::ContainerStatus& container : pod.containers) {
    if (container.state.kind != kube::ContainerState::Kind::kTerminated || container.state.exit_code == 0)
      continue;
    // A program that takes too much memory takes it again.
    if (container.state.reason.view() == "OOMKilled") return PodState::kFailed;
    const bool killed = container.state.signal == 9 || container.state.signal == 15 ||
                        container.state.exit_code == kSignalCode + 9 ||
                        container.state.exit_code == kSignalCode + 15;
    return killed ? PodState::kKilled : PodState::kFailed;
  }
  return PodState::kKilled;
}

}  // namespace

std::string_view Name(PodRole role) { return role == PodRole::kWorker ? "worker" : "pserver"; }

SeenPod SeenOf(const kube::CompactPod& pod) {
  SeenPod seen{.name = pod.meta.name,
               .index = NumberOf(pod, kElasticIndexLabel),
               .launch = NumberOf(pod, kElasticLaunchLabel),
               .restarts = std::max(0, NumberOf(pod, kElasticRestartsLabel)),
               .deleting = pod.IsBeingDeleted(),
               .since = pod.meta.created};
  switch (pod.phase) {
    case kube::PodPhase::kRunning:
    case kube::PodPhase::kUnknown:
      seen.state = PodState::kRunning;
      break;
    case kube::PodPhase::kSucceeded:
      seen.state = PodState::kSucceeded;
      break;
    case kube::PodPhase::kFailed:
      seen.state = EndOf(pod);
      seen.cause = kube::DescribeEnd(pod);
      break;
    case kube::PodPhase::kPending:
      if (pod.scheduled.status == kube::ConditionStatus::kFalse)
        seen.unscheduled = pod.unscheduled.empty() ? std::string(pod.scheduled.reason.view())
                                                   : std::string(pod.unscheduled.view());
      break;
  }
  if (seen.deleting && seen.cause.empty()) seen.cause = "was deleted";
  return seen;
}

absl::Status EndPods(kube::Api& api, std::string_view ns, std::string_view job, std::string_view master_uid) {
  TY_ASSIGN_OR_RETURN(const kube::ListPage pods,
                      api.ListAll(kube::Resource::Pods(), std::string(ns),
                                  {.label_selector = StrCat(kElasticJobLabel, "=", job)}));
  std::vector<kube::Operation> deletes;
  for (const std::string& text : pods.items) {
    TY_ASSIGN_OR_RETURN(const kube::CompactPod pod, kube::ParsePod(text));
    const bool own = pod.meta.controller && pod.meta.controller->uid.view() == master_uid;
    if (own && !pod.IsFinished() && !pod.IsBeingDeleted())
      deletes.push_back(kube::DeleteOperation(kube::Resource::Pods(), {std::string(ns), pod.meta.name}));
  }
  for (const auto& deleted : api.Do(std::move(deletes))) {
    if (!deleted.ok() && !kube::IsNotFound(deleted.status())) return deleted.status();
  }
  return absl::OkStatus();
}

PodKeeper::PodKeeper(kube::Api& api, Master& master, KeeperOptions options)
    : api_(api),
      master_(master),
      options_(std::move(options)),
      pods_(api, Clock::System(), IdSource::Random(),
            {.resource = kube::Resource::Pods(),
             .ns = options_.ns,
             .label_selector = StrCat(kElasticJobLabel, "=", options_.job, ",", kElasticRoleLabel, "=",
                                      Name(options_.role))},
            [](std::string json) { return kube::ParsePod(std::move(json)); }),
      events_(api, Clock::System(), IdSource::Random(),
              {.component = "trainyard-master", .instance = options_.pod}),
      history_(api.transport(), Clock::System()) {
  memory_.target = options_.target;
  pods_.OnChange([this](const kube::Change<kube::CompactPod>&) { Wake(); });
}

PodKeeper::~PodKeeper() { Stop(); }

void PodKeeper::Start() {
  pods_.Start();
  events_.Start();
  thread_ = std::thread([this] { Run(); });
}

void PodKeeper::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  pods_.Stop();
  events_.Stop();
}

PodsReport PodKeeper::Report() {
  const MutexLock lock(mu_);
  return report_;
}

void PodKeeper::Wake() {
  const MutexLock lock(mu_);
  woken_ = true;
  changed_.SignalAll();
}

void PodKeeper::Run() {
  while (absl::IsDeadlineExceeded(pods_.WaitForSync(kLongestWait))) {
    const MutexLock lock(mu_);
    if (stopping_) return;
  }
  for (;;) {
    Pass();
    const MutexLock lock(mu_);
    const SteadyTime deadline = Clock::System().Steady() + std::min(wait_, kLongestWait);
    while (!woken_ && !stopping_ && changed_.WaitUntil(mu_, deadline)) {
    }
    woken_ = false;
    if (stopping_) return;
  }
}

// What the cache has, and what it does not have yet or not any more.
std::vector<SeenPod> PodKeeper::See() {
  std::vector<SeenPod> seen;
  for (const auto& pod : pods_.cache().List()) {
    // A job of the same name that was before may still be on its way out.
    if (!pod->meta.controller || pod->meta.controller->uid.view() != options_.pod_uid) continue;
    SeenPod one = SeenOf(*pod);
    if (one.index < 0 || one.launch < 0) continue;
    if (one.state == PodState::kPending || one.state == PodState::kRunning) {
      SeenPod& known = launched_[one.name];
      known = one;
      known.state = PodState::kRunning;  // from now on, if the cache has it no more, it is gone
    } else {
      launched_.erase(one.name);
    }
    seen.push_back(std::move(one));
  }
  for (auto& [name, pod] : launched_) {
    if (std::ranges::any_of(seen, [&](const SeenPod& one) { return one.name == pod.name; })) continue;
    if (pod.state == PodState::kRunning) {
      pod.state = PodState::kKilled;
      pod.cause = "was deleted";
    }
    seen.push_back(pod);
  }
  return seen;
}

std::vector<int> PodKeeper::AtWork() {
  if (options_.role == PodRole::kPserver) return master_.GetPservers();
  std::vector<int> at_work;
  for (const WorkerView& worker : master_.GetWorkers()) {
    if (worker.connected && worker.takes_part) at_work.push_back(worker.index);
  }
  return at_work;
}

void PodKeeper::Pass() {
  const Progress progress = master_.GetProgress();
  PodsView view{.role = std::string(Name(options_.role)),
                .limits = options_.limits,
                .memory = memory_,
                .pods = See(),
                .at_work = AtWork()};
  view.more_to_do = progress.waiting_tasks > progress.workers;
  view.over = progress.phase == Phase::kComplete || progress.phase == Phase::kFailed ||
              progress.phase == Phase::kEnding;
  master_.ExpectPods(std::string(Name(options_.role)),
                     static_cast<int>(std::ranges::count_if(view.pods, [](const SeenPod& pod) {
                       return pod.state == PodState::kPending || pod.state == PodState::kRunning;
                     })));
  for (const SeenPod& pod : view.pods) {
    const bool ended = pod.state == PodState::kFailed || pod.state == PodState::kKilled;
    if (!ended || std::exchange(told_[pod.name], true)) continue;
    if (options_.role == PodRole::kWorker) {
      master_.WorkerIsGone(pod.index, pod.name);
    } else {
      master_.PserverIsGone(pod.index, pod.name);
    }
  }
  if (!std::exchange(begun_, true)) TakeHistory(view.pods);
  view.memory = memory_;
  PodsPlan plan = PlanPods(view, Clock::System().Now());
  // A job that is deleted loses its workers before its master: none of them is missed.
  if (!plan.ended.empty() && MasterIsLeaving()) {
    view.over = true;
    plan = PlanPods(view, Clock::System().Now());
  }
  memory_ = plan.memory;
  Act(plan);
  // What ended long ago is forgotten here too.
  std::erase_if(launched_, [&](const auto& one) {
    return one.second.state == PodState::kKilled &&
           memory_.seats[one.second.index].launches > one.second.launch + 1;
  });
  const MutexLock lock(mu_);
  wait_ = plan.wake_after;
  report_.target = options_.role == PodRole::kWorker ? memory_.target : 0;
  report_.running = static_cast<int>(std::ranges::count_if(
      view.pods, [](const SeenPod& pod) { return pod.state == PodState::kRunning && !pod.deleting; }));
  report_.restarts = CountRestarts(memory_);
  report_.waiting = plan.waiting;
  for (const PodsPlan::Ended& ended : plan.ended) {
    report_.last.push_back({Clock::System().Now(), options_.role, ended.index, ended.pod, ended.cause});
  }
  if (report_.last.size() > kKeptRestarts) {
    report_.last.erase(report_.last.begin(), report_.last.end() - static_cast<std::ptrdiff_t>(kKeptRestarts));
  }
}

// Pods that a master before this one has launched, and those that have ended under it.
void PodKeeper::TakeHistory(const std::vector<SeenPod>& pods) {
  std::map<int, int> launches;
  for (const SeenPod& pod : pods) {
    launches[pod.index] = std::max(launches[pod.index], pod.launch);
    memory_.target = std::max(memory_.target, pod.index + 1);
  }
  const MutexLock lock(mu_);
  for (const SeenPod& pod : pods) {
    if (pod.launch < launches[pod.index] && !pod.cause.empty())
      report_.last.push_back({pod.since, options_.role, pod.index, pod.name, pod.cause});
  }
}

bool PodKeeper::MasterIsLeaving() {
  if (leaving_) return true;
  const auto text = api_.Get(kube::Resource::Pods(), {options_.ns, options_.pod});
  if (kube::IsNotFound(text.status())) leaving_ = true;
  if (!text.ok()) return leaving_;
  const auto pod = kube::ParsePod(*text);
  leaving_ = pod.ok() && (pod->IsBeingDeleted() || pod->meta.uid != options_.pod_uid);
  return leaving_;
}

void PodKeeper::Act(const PodsPlan& plan) {
  const kube::ObjectReference self{
      .api_version = "v1", .kind = "Pod", .key = {options_.ns, options_.pod}, .uid = options_.pod_uid};
  for (const PodsPlan::Ended& ended : plan.ended) {
    const std::string text = StrCat(Name(options_.role), " ", ended.index, ": ", ended.pod, " ", ended.cause);
    log::Info("a pod is launched again", {{"because", text}});
    events_.Record(self, kube::EventType::kWarning,
                   options_.role == PodRole::kWorker ? "WorkerRelaunched" : "PserverRelaunched", text);
  }
  std::vector<kube::Operation> operations;
  operations.reserve(plan.launches.size() + plan.deletes.size());
  for (const PodsPlan::Launch& launch : plan.launches)
    operations.push_back(kube::CreateOperation(kube::Resource::Pods(), options_.ns, PodText(launch)));
  for (const std::string& name : plan.deletes)
    operations.push_back(kube::DeleteOperation(kube::Resource::Pods(), {options_.ns, name}));
  // Of each seat the last pods stay, with their logs.
  for (const SeenPod& pod : See()) {
    const bool ended = pod.state != PodState::kPending && pod.state != PodState::kRunning && !pod.deleting;
    if (ended && pod.launch + kKeptPods < memory_.seats[pod.index].launches &&
        pods_.cache().Get({options_.ns, pod.name}))
      operations.push_back(kube::DeleteOperation(kube::Resource::Pods(), {options_.ns, pod.name}));
  }
  if (!operations.empty()) {
    const auto results = api_.Do(std::move(operations));
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      const PodsPlan::Launch& launch = plan.launches[i];
      const absl::Status made = results[i].status();
      if (made.ok()) {
        SeenPod& pod = launched_[NameOf(launch)];
        pod = {.name = NameOf(launch),
               .index = launch.index,
               .launch = launch.launch,
               .restarts = launch.restarts,
               .since = Clock::System().Now()};
      } else {
        // The name may still be another's; and what was made without our hearing of it shows in the cache.
        log::Warn("a pod could not be launched", {{"pod", NameOf(launch)}, {"error", made}});
        --memory_.seats[launch.index].launches;
        memory_.seats[launch.index].not_before = Clock::System().Now() + kBetweenTries;
      }
    }
  }
  KeepHistory(plan);
  if (!plan.failure.empty()) master_.Fail(plan.failure);
}

void PodKeeper::KeepHistory(const PodsPlan& plan) {
  std::vector<std::shared_ptr<const kube::CompactPod>> pods;
  std::vector<kube::Leaving> leaving;
  std::vector<kube::GonePod> gone;
  for (const PodsPlan::Ended& ended : plan.ended) {
    const std::string member = StrCat(Name(options_.role), "-", ended.index);
    auto pod = pods_.cache().Get({options_.ns, ended.pod});
    if (pod == nullptr) {
      gone.push_back({.pod = ended.pod,
                      .uid = ended.pod,  // nobody can say it any more, and the name is no other's
                      .member = member,
                      .cause = ended.cause,
                      .ended = Clock::System().Now()});
      continue;
    }
    // What has no end of its own went with its node, or is out of reach with it.
    leaving.push_back({.pod = pod.get(),
                       .member = member,
                       .why = ended.cause,
                       .lost = !pod->IsFinished() && !pod->IsBeingDeleted()});
    pods.push_back(std::move(pod));
  }
  for (kube::GonePod& one : history_.Collect(leaving)) gone.push_back(std::move(one));
  const absl::Status stored = history_.Store({.ns = options_.ns,
                                              .kind = "elastic",
                                              .job = options_.job,
                                              .reference = Object{{"apiVersion", "v1"},
                                                                  {"kind", "Pod"},
                                                                  {"name", options_.pod},
                                                                  {"uid", options_.pod_uid},
                                                                  {"controller", true}}},
                                             gone);
  if (!stored.ok()) log::Warn("the job's history could not be stored", {{"error", stored}});
}

std::string PodKeeper::NameOf(const PodsPlan::Launch& launch) const {
  const std::string first = StrCat(options_.job, "-", Name(options_.role), "-", launch.index);
  return launch.launch == 0 ? first : StrCat(first, "-r", launch.launch);
}

std::string PodKeeper::PodText(const PodsPlan::Launch& launch) const {
  Document pod = options_.pod_template;
  Object& metadata = MakeObjectAt(pod, {"metadata"});
  metadata["name"] = NameOf(launch);
  metadata["namespace"] = options_.ns;
  metadata["ownerReferences"] = Array{Object{{"apiVersion", "v1"},
                                             {"kind", "Pod"},
                                             {"name", options_.pod},
                                             {"uid", options_.pod_uid},
                                             {"controller", true}}};
  Object& labels = MakeObjectAt(pod, {"metadata", "labels"});
  labels[kElasticJobLabel] = options_.job;
  labels[kElasticRoleLabel] = Name(options_.role);
  labels[kElasticIndexLabel] = std::to_string(launch.index);
  labels[kElasticLaunchLabel] = std::to_string(launch.launch);
  labels[kElasticRestartsLabel] = std::to_string(launch.restarts);
  if (Array* const containers = ArrayAt(pod, {"spec", "containers"});
      containers != nullptr && !containers->empty()) {
    Document& container = containers->front();
    if (ArrayAt(container, {"env"}) == nullptr) container.get_object()["env"] = Array();
    Array& env = *ArrayAt(container, {"env"});
    env.push_back(Object{{"name", "TRAINYARD_MASTER"}, {"value", options_.address}});
    env.push_back(Object{
        {"name", options_.role == PodRole::kWorker ? "TRAINYARD_WORKER_INDEX" : "TRAINYARD_PSERVER_INDEX"},
        {"value", std::to_string(launch.index)}});
  }
  return PrintJson(pod);
}

}  // namespace trainyard::master
