#include "operator/autoscaler.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace trainyard::ops {
namespace {

using job::scale::ElasticRole;
using job::scale::Resources;

constexpr std::string_view kPods = "pods";
constexpr std::int64_t kOne = 1000;  // in thousandths

// Storage and the like do not decide where a training pod goes.
bool Counts(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || kube::IsAccelerator(resource);
}

Resources ToResources(const std::vector<kube::ResourceAmount>& amounts) {
  Resources out;
  for (const kube::ResourceAmount& amount : amounts) {
    if (Counts(amount.name)) out.Add(std::string(amount.name.view()), amount.milli);
  }
  return out;
}

// A label that a pod wants of its node is counted as something that such nodes have and others have not.
std::string LabelName(std::string_view key, std::string_view value) {
  return StrCat(kNodeLabel, key, "=", value);
}
constexpr std::int64_t kPlenty = 1'000'000'000'000;

// A pod also takes the place of one.
Resources RequestsOf(const std::vector<kube::ResourceAmount>& amounts, const kube::TextMap& node_selector) {
  Resources out = ToResources(amounts);
  out.Add(std::string(kPods), kOne);
  for (const auto& [key, value] : node_selector.entries()) out.Add(LabelName(key.view(), value.view()), 1);
  return out;
}

bool KeepsOff(const kube::Taint& taint) {
  return taint.effect == std::string_view("NoSchedule") || taint.effect == std::string_view("NoExecute");
}

// Nothing: it takes no pods. Nodes with accelerators are often tainted by the accelerator's name, which those
// who ask for it tolerate; else empty.
std::optional<std::string> FindOnlyFor(const kube::CompactNode& node) {
  if (!node.IsReady() || node.unschedulable) return std::nullopt;
  std::string only_for;
  for (const kube::Taint& taint : node.taints) {
    if (!KeepsOff(taint)) continue;
    if (!kube::IsAccelerator(taint.key) || kube::FindAmount(node.allocatable, taint.key) == 0)
      return std::nullopt;
    only_for = taint.key;
  }
  return only_for;
}

// A job of ours begins with all of its pods or not at all; other people's pods are each their own.
std::string GroupOf(const reconcile::LoadPod& pod) {
  const auto& owner = pod.meta.controller;
  constexpr std::array<std::string_view, 3> kKinds = {"TFJob", "PyTorchJob", "AITrainingJob"};
  const bool job = owner && std::ranges::find(kKinds, owner->kind.view()) != kKinds.end();
  return StrCat(pod.meta.ns.view(), "/", job ? owner->name.view() : std::string_view(pod.meta.name));
}

class Gatherer {
 public:
  Gatherer(const std::vector<job::JobView>& jobs, const std::map<std::string, PodRequests>& requests)
      : jobs_(jobs), requests_(requests) {}

  ScalingScene Gather(const std::vector<std::shared_ptr<const reconcile::LoadPod>>& load,
                      const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
    for (const job::JobView& job : jobs_) {
      for (const job::RoleSpec& role : job.spec.roles) AddRole(job, role);
    }
    std::set<std::string> labels;  // that somebody wants
    for (const ElasticRole& role : scene_.roles) AddLabels(role.each, labels);
    for (const auto& pod : load) {
      if (pod->node.empty()) AddLabels(RequestsOf({}, pod->node_selector), labels);
    }
    for (const auto& node : nodes) {
      const auto only_for = FindOnlyFor(*node);
      if (!only_for) continue;
      Resources has = ToResources(node->allocatable);
      has.Add(std::string(kPods), kube::FindAmount(node->allocatable, kPods));
      for (const auto& [key, value] : node->meta.labels.entries()) {
        std::string label = LabelName(key.view(), value.view());
        if (labels.contains(label)) has.Add(label, kPlenty);
      }
      scene_.cluster.total.Add(has);
      by_name_.emplace(node->meta.name, scene_.cluster.nodes.size());
      scene_.cluster.nodes.push_back(
          {.name = node->meta.name, .free = std::move(has), .leaving = {}, .only_for = *only_for});
    }
    for (const auto& pod : load) {
      if (!pod->finished) AddPod(*pod);
    }
    for (auto& [job, pods] : waiting_) scene_.waiting.push_back({.job = job, .pods = std::move(pods)});
    return std::move(scene_);
  }

 private:
  void AddRole(const job::JobView& job, const job::RoleSpec& spec) {
    if (spec.size != job::SizePolicy::kAuto) return;
    const auto known = job.status.roles.find(spec.name);
    const auto requests = requests_.find(job.uid);
    if (known == job.status.roles.end() || !known->second.size || requests == requests_.end()) return;
    // One whose pods begin to end does so with those that it has.
    if (known->second.completed.Count() + known->second.given_up.Count() > 0) return;
    ElasticRole role{.job = TitleOf(job),
                     .role = spec.name,
                     .least = spec.least,
                     .most = spec.most,
                     .now = *known->second.size,
                     .each = requests->second.at(spec.name)};
    role.pods.resize(static_cast<std::size_t>(role.now));
    int running = 0;
    bool placed = false;
    for (const job::PodView& pod : job.pods) {
      placed |= !pod.node.empty();
      if (pod.role != spec.slug) continue;
      const bool leaves = pod.index >= role.now || pod.deletion;
      elastic_.emplace(pod.uid, leaves);
      role.settled &= !leaves && pod.main_runs;
      running += !leaves && pod.main_runs ? 1 : 0;
      if (!leaves) role.pods[static_cast<std::size_t>(pod.index)] = pod.node;
    }
    scene_.cluster.requested.Add(role.each, role.now);
    const auto target = job.targets.find(spec.name);
    role.settled &= running == role.now && (target == job.targets.end() || target->second == role.now);
    role.waits = !placed && !job.pods.empty();
    scene_.roles.push_back(std::move(role));
  }

  static void AddLabels(const Resources& wanted, std::set<std::string>& labels) {
    for (const auto& [name, amount] : wanted.amounts()) {
      if (name.starts_with(kNodeLabel)) labels.insert(name);
    }
  }

  void AddPod(const reconcile::LoadPod& pod) {
    const Resources takes = RequestsOf(pod.requests, pod.node_selector);
    const auto elastic = elastic_.find(pod.meta.uid);
    const bool leaves = pod.meta.deletion_time || (elastic != elastic_.end() && elastic->second);
    // Of elastic roles as many are counted as were decided.
    const bool counts = !leaves && elastic == elastic_.end();
    if (pod.node.empty()) {
      if (!counts) return;
      scene_.cluster.requested.Add(takes);
      waiting_[GroupOf(pod)].push_back(takes);
      return;
    }
    const auto found = by_name_.find(pod.node.view());
    if (found == by_name_.end()) return;  // what that node has does not count either
    job::scale::Node& node = scene_.cluster.nodes[found->second];
    node.free.Add(takes, -1);
    if (leaves) node.leaving.Add(takes);
    if (counts) scene_.cluster.requested.Add(takes);
  }

  const std::vector<job::JobView>& jobs_;
  const std::map<std::string, PodRequests>& requests_;
  ScalingScene scene_;
  std::map<std::string, bool> elastic_;                      // pods by uid, and whether they leave
  std::map<std::string, std::size_t, std::less<>> by_name_;  // of nodes
  std::map<std::string, std::vector<Resources>> waiting_;
};

}  // namespace

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

bool IsElastic(const reconcile::CompactJob& job) {
  if (!job.invalid.empty() || job.status.IsFinished() || job.status.ending || job.meta.deletion_time)
    return false;
  return std::ranges::any_of(job.spec.roles,
                             [](const job::RoleSpec& role) { return role.size == job::SizePolicy::kAuto; });
}

std::string TitleOf(const job::JobView& job) {
  const std::string title = StrCat(job.ns, "/", job.name);
  return job.spec.kind == "AITrainingJob" ? title : StrCat(title, " (", job.spec.kind, ")");
}

PodRequests FindRequests(const reconcile::Kind& kind, const reconcile::CompactJob& job) {
  PodRequests requests;
  const auto maker = kind.NewMaker(job);
  for (const job::RoleSpec& role : job.spec.roles) {
    const auto pod = kube::ParsePod(maker->MakePod({.role = role.slug}));
    if (pod.ok())
      requests[role.name] = RequestsOf(pod->requests, pod->node_selector);  // else the server will refuse it
    requests.try_emplace(role.name);
  }
  return requests;
}

ScalingScene ObserveScaling(const std::vector<job::JobView>& jobs,
                            const std::map<std::string, PodRequests>& requests,
                            const std::vector<std::shared_ptr<const reconcile::LoadPod>>& load,
                            const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
  return Gatherer(jobs, requests).Gather(load, nodes);
}

}  // namespace trainyard::ops
