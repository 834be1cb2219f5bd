#include "operator/gatekeeper.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/document.h"
#include "base/log.h"
#include "base/text.h"
#include "job/gang.h"

namespace trainyard::ops {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(500);
constexpr std::string_view kCounts = "the operator counts what is free, for which it must see all pods";
constexpr absl::Duration kVersionTime = absl::Seconds(2);  // for a server to say what it is

// All nodes with the pods that have one, or will get one at once.
placement::ClusterRoom ObserveRoom(const std::vector<placement::PodPtr>& pods,
                                   const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
  placement::ClusterRoom cluster;
  for (const auto& node : nodes) cluster[node->meta.name].node = node;
  std::vector<placement::PodPtr> pending;
  for (const placement::PodPtr& pod : pods) {
    if (pod->finished) continue;
    if (pod->Waits() && !pod->gated) pending.push_back(pod);
    if (const auto room = cluster.find(pod->node); room != cluster.end()) room->second.Put(pod);
  }
  for (const placement::Binding& binding :
       PlanTurn(std::move(pending), [](const kube::ObjectKey&) { return nullptr; }, cluster).bindings)
    cluster.find(binding.node)->second.Put(binding.pod);
  return cluster;
}

bool MayWait(const reconcile::CompactJob& job) {
  const job::Condition* current = job.status.Current();
  const bool runs = current != nullptr && current->type == job::State::kRunning;
  return job::HasGang(job.spec) && job.invalid.empty() && !runs && !job.status.IsFinished() &&
         !job.status.ending && !job.meta.deletion_time;
}

}  // namespace

std::map<std::string, job::GangView> DecideGates(
    std::vector<WaitingGang> gangs, const std::vector<placement::PodPtr>& pods,
    const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
  std::map<std::string_view, placement::PodPtr> gated;  // by uid
  for (const placement::PodPtr& pod : pods) {
    if (pod->Waits() && pod->gated) gated.emplace(pod->meta.uid, pod);
  }
  placement::ClusterRoom cluster = ObserveRoom(pods, nodes);
  std::ranges::sort(gangs, {}, [](const WaitingGang& gang) {
    return std::tuple(!gang.admitted, gang.created, std::string_view(gang.job));
  });
  std::map<std::string, job::GangView> decided;
  for (const WaitingGang& waiting : gangs) {
    placement::Gang gang{.minimum = waiting.minimum};
    for (const std::string& uid : waiting.members) {
      if (const auto pod = gated.find(uid); pod != gated.end()) gang.waiting.push_back(pod->second);
    }
    if (waiting.admitted) gang.minimum = std::min(gang.minimum, static_cast<int>(gang.waiting.size()));
    placement::GangPlacement fit = PlaceGang(gang, cluster);
    for (const placement::Binding& binding : fit.placed) cluster.find(binding.node)->second.Put(binding.pod);
    job::GangView& view = decided[waiting.job];
    view.admitted = waiting.admitted || fit.why.empty();
    if (!view.admitted) view.waits = std::move(fit.why);
  }
  return decided;
}

job::GangScheduler DefaultGangScheduler(std::string_view version) {
  const auto parsed = ParseJson(std::string(version));
  const bool embedded =
      parsed.ok() && StringAt(*parsed, {"gitVersion"}).find("+trainyard") != std::string_view::npos;
  return embedded ? job::GangScheduler::kCoscheduling : job::GangScheduler::kGates;
}

job::GangScheduler FindGangScheduler(kube::Transport& transport, Clock& clock) {
  kube::Api api(transport, clock, IdSource::Random(), {.attempts = 1});
  const auto version =
      api.Do(kube::Operation{.request = {.method = "GET", .target = "/version", .timeout = kVersionTime}});
  return DefaultGangScheduler(version.value_or(""));
}

Gatekeeper::Gatekeeper(kube::Api& api, Clock& clock, IdSource ids, reconcile::Surroundings& surroundings)
    : api_(api), clock_(clock), ids_(std::move(ids)), surroundings_(surroundings), alarm_(clock.NewAlarm()) {}

job::GangView Gatekeeper::FindGang(const std::string& uid) const {
  MutexLock lock(mu_);
  const auto found = gangs_.find(uid);
  return found == gangs_.end() ? job::GangView() : found->second;
}

void Gatekeeper::Start() {
  {
    MutexLock lock(mu_);
    stopping_ = false;
  }
  threaded_ = true;
  thread_ = std::thread([this] { Run(); });
}

void Gatekeeper::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  if (thread_.joinable()) thread_.join();
  pods_.reset();
  admitted_.clear();
  MutexLock lock(mu_);
  gangs_.clear();  // another operator decides from now on
}

void Gatekeeper::Run() {
  for (;;) {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    Pass();
    alarm_->WaitUntil(clock_.Steady() + kPeriod);
  }
}

std::unique_ptr<std::vector<placement::PodPtr>> Gatekeeper::ListPods() {
  if (pods_ == nullptr) {
    pods_ = std::make_unique<kube::Informer<placement::PodDemand>>(
        api_, clock_, IdSource(ids_.Next()), kube::WatcherOptions{.resource = kube::Resource::Pods()},
        placement::ParseDemand);
    if (threaded_) pods_->Start();
  }
  while (!threaded_ && pods_->StepNow()) {
  }
  if (!pods_->HasSynced()) return nullptr;
  return std::make_unique<std::vector<placement::PodPtr>>(pods_->cache().List());
}

void Gatekeeper::Pass() {
  std::vector<WaitingGang> waiting;
  std::map<std::string, std::pair<reconcile::Controller*, kube::ObjectKey>> jobs;  // by uid
  for (reconcile::Controller* controller : controllers_) {
    for (const auto& job : controller->ListJobs()) {
      if (!MayWait(*job)) continue;
      const job::JobView view = controller->Observe(*job);
      WaitingGang gang{
          .job = view.uid, .created = job->meta.created, .minimum = job::GangMinimum(view.spec, view.status)};
      for (const job::PodView* pod : job::GangMembers(view)) gang.members.push_back(pod->uid);
      if (gang.members.empty()) continue;
      std::ranges::sort(gang.members);
      gang.admitted = job::IsGangOpen(view) || std::ranges::includes(admitted_[view.uid], gang.members);
      jobs[view.uid] = {controller, job->meta.Key()};
      waiting.push_back(std::move(gang));
    }
  }
  std::erase_if(admitted_, [&](const auto& known) { return !jobs.contains(known.first); });
  const auto pods = waiting.empty() ? nullptr : ListPods();
  std::map<std::string, job::GangView> decided;
  if (pods != nullptr) {
    decided = DecideGates(waiting, *pods, surroundings_.ListNodes());
  } else {
    for (const WaitingGang& gang : waiting)
      decided[gang.job] = {.admitted = gang.admitted, .waits = gang.admitted ? "" : std::string(kCounts)};
  }
  for (WaitingGang& gang : waiting) {
    const auto found = decided.find(gang.job);
    if (found != decided.end() && found->second.admitted) admitted_[gang.job] = std::move(gang.members);
  }
  std::vector<std::string> changed;
  {
    MutexLock lock(mu_);
    for (const auto& [uid, view] : decided) {
      const auto known = gangs_.find(uid);
      if (known == gangs_.end() || !(known->second == view)) changed.push_back(uid);
    }
    gangs_ = std::move(decided);
  }
  for (const std::string& uid : changed) {
    const auto& [controller, key] = jobs.at(uid);
    log::Info("gang",
              {{"job", key.Str()}, {"admitted", FindGang(uid).admitted}, {"waits", FindGang(uid).waits}});
    controller->Look(key);
  }
}

}  // namespace trainyard::ops
