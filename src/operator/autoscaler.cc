#include "operator/autoscaler.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace trainyard::ops {

Autoscaler::Autoscaler(Clock& clock, reconcile::Surroundings& surroundings, AutoscalerOptions options)
    : clock_(clock), surroundings_(surroundings), options_(options), alarm_(clock.NewAlarm()) {}

std::map<std::string, int> Autoscaler::FindTargets(const std::string& uid) const {
  MutexLock lock(mu_);
  const auto found = targets_.find(uid);
  return found == targets_.end() ? std::map<std::string, int>() : found->second;
}

void Autoscaler::Start() {
  {
    MutexLock lock(mu_);
    stopping_ = false;
  }
  thread_ = std::thread([this] { Run(); });
}

void Autoscaler::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mu_);
  targets_.clear();  // somebody else decides from now on
}

void Autoscaler::Run() {
  for (;;) {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    Pass();
    alarm_->WaitUntil(clock_.Steady() + options_.period);
  }
}

const PodRequests& Autoscaler::RequestsOf(const reconcile::Kind& kind, const reconcile::CompactJob& job) {
  auto& known = requests_[job.meta.uid];
  if (known.first != job.meta.generation || known.second.empty()) {
    known = {job.meta.generation, FindRequests(kind, job)};
  }
  return known.second;
}

std::map<std::string, int> Autoscaler::PendingTargets(const job::JobView& view) const {
  std::map<std::string, int> pending;
  for (const auto& [role, size] : FindTargets(view.uid)) {
    const auto known = view.status.roles.find(role);
    const auto spec = std::ranges::find(view.spec.roles, role, &job::RoleSpec::name);
    if (known == view.status.roles.end() || known->second.size == size) continue;
    if (spec == view.spec.roles.end() || size < spec->least || size > spec->most) continue;
    pending[role] = size;
  }
  return pending;
}

void Autoscaler::Pass() {
  std::vector<job::JobView> jobs;
  std::map<std::string, PodRequests> requests;
  std::map<std::string, std::map<std::string, int>> targets;
  struct Named {
    std::string uid;
    kube::ObjectKey key;
    reconcile::Controller* controller;
  };
  std::map<std::string, Named> names;  // by title
  for (const auto& [kind, controller] : watched_) {
    for (const auto& job : controller->ListJobs()) {
      if (!IsElastic(*job)) continue;
      requests[job->meta.uid] = RequestsOf(*kind, *job);
      job::JobView& view = jobs.emplace_back(controller->Observe(*job));
      names[TitleOf(view)] = {view.uid, job->meta.Key(), controller};
      // What was decided stays so until it is stored.
      view.targets = PendingTargets(view);
      if (!view.targets.empty()) targets[view.uid] = view.targets;
    }
  }
  std::erase_if(requests_, [&](const auto& known) { return !requests.contains(known.first); });
  std::vector<const Named*> changed;
  const auto load = jobs.empty() ? nullptr : surroundings_.ListLoad();
  if (load != nullptr) {
    const ScalingScene scene = ObserveScaling(jobs, requests, *load, surroundings_.ListNodes());
    for (const job::scale::Change& change :
         job::scale::PlanScaling(scene.cluster, scene.roles, scene.waiting, options_.limits)) {
      const Named& named = names.at(change.job);
      targets[named.uid][change.role] = change.to;
      changed.push_back(&named);
      log::Info("autoscaler", {{"job", change.job},
                               {"role", change.role},
                               {"from", change.from},
                               {"to", change.to},
                               {"why", change.why}});
    }
  }
  {
    MutexLock lock(mu_);
    targets_ = std::move(targets);
  }
  for (const Named* named : changed) named->controller->Look(named->key);
}

}  // namespace trainyard::ops
