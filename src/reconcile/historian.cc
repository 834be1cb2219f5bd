#include "reconcile/historian.h"

#include <map>
#include <utility>
#include <variant>

#include "base/letters.h"
#include "base/log.h"
#include "base/text.h"

namespace trainyard::reconcile {
namespace {

std::string MainContainer(const Kind& kind, const kube::CompactPod& pod) {
  for (const kube::ContainerStatus& container : pod.containers) {
    if (kind.IsMain(container.name.view())) return std::string(container.name.view());
  }
  return "";
}

}  // namespace

Historian::Historian(kube::Api& api, Clock& clock, const Kind& kind)
    : kind_(kind), history_(api.transport(), clock) {}

std::vector<kube::GonePod> Historian::Collect(const job::JobView& view, const job::JobPlan& plan,
                                              const Caches& caches, absl::Time now) {
  if (view.leaving) return {};
  std::map<std::string_view, const job::DeletePod*> removed;  // by uid
  for (const job::Action& action : plan.actions()) {
    const auto* const remove = std::get_if<job::DeletePod>(&action);
    if (remove != nullptr) removed.emplace(remove->uid, remove);
  }
  std::vector<std::shared_ptr<const kube::CompactPod>> pods;
  std::vector<kube::Leaving> leaving;
  for (const job::PodView& seen : view.pods) {
    const auto found = removed.find(seen.uid);
    const job::DeletePod* const remove = found == removed.end() ? nullptr : found->second;
    if (!seen.owned || (remove == nullptr && !seen.deletion)) continue;
    const auto pod = caches.FindPod({view.ns, seen.name});
    if (pod == nullptr || pod->meta.uid != seen.uid) continue;
    pods.push_back(pod);
    const bool gone = seen.node_health == job::NodeHealth::kGone;
    const bool away =
        gone || seen.node_health == job::NodeHealth::kNotReady || (remove != nullptr && remove->force);
    const absl::Time lost_at = seen.node_since.value_or(now) + view.policies.node_grace;
    const bool lost = !seen.IsFinished() && away && (gone || now >= lost_at);
    leaving.push_back({.pod = pod.get(),
                       .member = StrCat(seen.role, "-", seen.index),
                       .container = MainContainer(kind_, *pod),
                       .why = lost                ? StrCat("was lost with ", seen.node)
                              : remove == nullptr ? ""
                                                  : remove->why,
                       .lost = away});
  }
  return leaving.empty() ? std::vector<kube::GonePod>() : history_.Collect(leaving);
}

void Historian::Store(const CompactJob& job, const std::vector<kube::GonePod>& gone) {
  if (gone.empty()) return;
  const absl::Status stored = history_.Store({.ns = std::string(job.meta.ns.view()),
                                              .kind = LowerCase(kind_.resource().kind),
                                              .job = job.meta.name,
                                              .reference = OwnerReference(kind_.resource(), job.meta)},
                                             gone);
  if (!stored.ok())
    log::Warn("a job's history could not be stored", {{"job", job.meta.Key().Str()}, {"error", stored}});
}

}  // namespace trainyard::reconcile
