#include "operator/autoscaler.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace trainyard::ops {

Autoscaler::Autoscaler(Clock& clock, const Kind& kind, Surroundings& surroundings, AutoscalerOptions options)
    : clock_(clock), kind_(kind), surroundings_(surroundings), options_(options), alarm_(clock.NewAlarm()) {}

std::map<std::string, int> Autoscaler::FindTargets(const kube::ObjectKey& job) const {
  MutexLock lock(mu_);
  const auto found = targets_.find(job);
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

const PodRequests& Autoscaler::RequestsOf(const CompactJob& job) {
  auto& known = requests_[job.meta.uid];
  if (known.first != job.meta.generation || known.second.empty()) {
    known = {job.meta.generation, FindRequests(kind_, job)};
  }
  return known.second;
}

void Autoscaler::Pass() {
  std::vector<JobInSight> jobs;
  std::map<std::string, PodRequests> requests;
  std::map<kube::ObjectKey, std::map<std::string, int>> targets;
  for (const auto& job : controller_->ListJobs()) {
    if (!IsElastic(*job)) continue;
    requests[job->meta.uid] = RequestsOf(*job);
    jobs.push_back({.job = job, .view = controller_->Observe(*job)});
    // What was decided stays so until it is stored.
    job::JobView& view = jobs.back().view;
    for (const auto& [role, size] : FindTargets(job->meta.Key())) {
      const auto known = view.status.roles.find(role);
      if (known == view.status.roles.end() || known->second.size == size) continue;
      view.targets[role] = size;
      targets[job->meta.Key()][role] = size;
    }
  }
  std::erase_if(requests_, [&](const auto& known) { return !requests.contains(known.first); });
  const auto load = jobs.empty() ? nullptr : surroundings_.ListLoad();
  if (load != nullptr) {
    const ScalingScene scene = ObserveScaling(jobs, requests, *load, surroundings_.ListNodes());
    for (const job::scale::Change& change :
         job::scale::PlanScaling(scene.cluster, scene.roles, scene.waiting, options_.limits)) {
      const std::size_t slash = change.job.find('/');
      targets[{change.job.substr(0, slash), change.job.substr(slash + 1)}][change.role] = change.to;
      log::Info("autoscaler", {{"job", change.job},
                               {"role", change.role},
                               {"from", change.from},
                               {"to", change.to},
                               {"why", change.why}});
    }
  }
  std::vector<kube::ObjectKey> changed;
  {
    MutexLock lock(mu_);
    for (const auto& [key, wanted] : targets) {
      const auto known = targets_.find(key);
      if (known == targets_.end() || known->second != wanted) changed.push_back(key);
    }
    targets_ = std::move(targets);
  }
  for (const kube::ObjectKey& key : changed) controller_->Look(key);
}

}  // namespace trainyard::ops
