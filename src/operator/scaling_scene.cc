#include "operator/scaling_scene.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
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

// A pod also takes the place of one.
Resources RequestsOf(const std::vector<kube::ResourceAmount>& amounts) {
  Resources out = ToResources(amounts);
  out.Add(std::string(kPods), kOne);
  return out;
}

bool TakesPods(const kube::CompactNode& node) {
  return node.IsReady() && !node.unschedulable &&
         std::ranges::all_of(node.taints, [](const kube::Taint& taint) {
           return taint.effect != std::string_view("NoSchedule") &&
                  taint.effect != std::string_view("NoExecute");
         });
}

// A job of ours begins with all of its pods or not at all; other people's pods are each their own.
std::string GroupOf(const LoadPod& pod) {
  const auto& owner = pod.meta.controller;
  const bool job =
      owner && (owner->kind == std::string_view("TFJob") || owner->kind == std::string_view("AITrainingJob"));
  return StrCat(pod.meta.ns.view(), "/", job ? owner->name.view() : std::string_view(pod.meta.name));
}

class Gatherer {
 public:
  Gatherer(const std::vector<JobInSight>& jobs, const std::map<std::string, PodRequests>& requests)
      : jobs_(jobs), requests_(requests) {}

  ScalingScene Gather(const std::vector<std::shared_ptr<const LoadPod>>& load,
                      const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
    for (const JobInSight& job : jobs_) {
      for (std::size_t i = 0; i < job.view.spec.roles.size(); ++i) AddRole(job, job.view.spec.roles[i]);
    }
    for (const auto& node : nodes) {
      if (!TakesPods(*node)) continue;
      Resources has = ToResources(node->allocatable);
      has.Add(std::string(kPods), kube::FindAmount(node->allocatable, kPods));
      scene_.cluster.total.Add(has);
      scene_.cluster.nodes.push_back({.name = node->meta.name, .free = std::move(has)});
    }
    for (const auto& pod : load) {
      if (!pod->finished) AddPod(*pod);
    }
    for (auto& [job, pods] : waiting_) scene_.waiting.push_back({.job = job, .pods = std::move(pods)});
    return std::move(scene_);
  }

 private:
  void AddRole(const JobInSight& job, const job::RoleSpec& spec) {
    if (spec.size != job::SizePolicy::kAuto) return;
    const auto known = job.view.status.roles.find(spec.name);
    const auto requests = requests_.find(job.view.uid);
    if (known == job.view.status.roles.end() || !known->second.size || requests == requests_.end()) return;
    // One whose pods begin to end does so with those that it has.
    if (known->second.completed.Count() + known->second.given_up.Count() > 0) return;
    ElasticRole role{.job = StrCat(job.view.ns, "/", job.view.name),
                     .role = spec.name,
                     .least = spec.least,
                     .most = spec.most,
                     .now = *known->second.size,
                     .each = requests->second.at(spec.name)};
    role.pods.resize(static_cast<std::size_t>(role.now));
    int running = 0;
    bool placed = false;
    for (const job::PodView& pod : job.view.pods) {
      placed |= !pod.node.empty();
      if (pod.role != spec.slug) continue;
      elastic_.insert(pod.uid);
      if (pod.index >= role.now || pod.deletion || !pod.main_runs) {
        role.settled = false;
      } else {
        ++running;
      }
      if (pod.index < role.now) role.pods[static_cast<std::size_t>(pod.index)] = pod.node;
    }
    const auto target = job.view.targets.find(spec.name);
    role.settled &= running == role.now && (target == job.view.targets.end() || target->second == role.now);
    role.waits = !placed && !job.view.pods.empty();
    scene_.roles.push_back(std::move(role));
  }

  void AddPod(const LoadPod& pod) {
    const Resources takes = RequestsOf(pod.requests);
    if (pod.node.empty()) {
      scene_.cluster.requested.Add(takes);
      if (!elastic_.contains(pod.meta.uid) && !pod.meta.deletion_time)
        waiting_[GroupOf(pod)].push_back(takes);
      return;
    }
    const auto node = std::ranges::find(scene_.cluster.nodes, pod.node.view(), &job::scale::Node::name);
    if (node == scene_.cluster.nodes.end()) return;  // what that node has does not count either
    node->free.Add(takes, -1);
    scene_.cluster.requested.Add(takes);
  }

  const std::vector<JobInSight>& jobs_;
  const std::map<std::string, PodRequests>& requests_;
  ScalingScene scene_;
  std::set<std::string> elastic_;  // uids of pods
  std::map<std::string, std::vector<Resources>> waiting_;
};

}  // namespace

bool IsElastic(const CompactJob& job) {
  if (!job.invalid.empty() || job.status.IsFinished() || job.status.ending || job.meta.deletion_time)
    return false;
  return std::ranges::any_of(job.spec.roles,
                             [](const job::RoleSpec& role) { return role.size == job::SizePolicy::kAuto; });
}

PodRequests FindRequests(const Kind& kind, const CompactJob& job) {
  PodRequests requests;
  const auto maker = kind.NewMaker(job);
  for (const job::RoleSpec& role : job.spec.roles) {
    const auto pod = kube::ParsePod(maker->MakePod({.role = role.slug}));
    if (pod.ok()) requests[role.name] = RequestsOf(pod->requests);  // else the server will refuse it
    requests.try_emplace(role.name);
  }
  return requests;
}

ScalingScene ObserveScaling(const std::vector<JobInSight>& jobs,
                            const std::map<std::string, PodRequests>& requests,
                            const std::vector<std::shared_ptr<const LoadPod>>& load,
                            const std::vector<std::shared_ptr<const kube::CompactNode>>& nodes) {
  return Gatherer(jobs, requests).Gather(load, nodes);
}

}  // namespace trainyard::ops
