#include "job/ending.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"

namespace trainyard::job {
namespace {

// What has ended stays counted when its pod is gone.
void RecountFinished(PlanBuilder& builder) {
  for (auto& [name, role] : builder.status().roles) role.active = 0;
  std::map<std::string, int> failed;
  for (const PodView& pod : builder.view().pods) {
    const auto spec = std::ranges::find(builder.view().spec.roles, pod.role, &RoleSpec::slug);
    if (spec == builder.view().spec.roles.end() || !pod.owned) continue;
    RoleStatus& known = builder.StatusOf(*spec);
    if (pod.phase == Phase::kSucceeded && !pod.deletion) known.completed.Insert(pod.index);
    if (pod.HasFailed() && EndedByItself(pod)) ++failed[spec->name];
    if (pod.IsActive() && !known.completed.Contains(pod.index)) ++known.active;
  }
  int ready = 0;
  for (auto& [name, role] : builder.status().roles) {
    role.succeeded = std::max(role.succeeded, role.completed.Count());
    role.failed = std::max(role.failed, failed[name]);
    ready += role.active + role.succeeded;
  }
  builder.status().ready = std::min(ready, builder.status().wanted);
}

}  // namespace

void PlanFinished(PlanBuilder& builder) {
  RecountFinished(builder);
  for (const PodView& pod : builder.view().pods) {
    const bool goes = builder.view().spec.clean == CleanPolicy::kAll ||
                      (builder.view().spec.clean == CleanPolicy::kRunning && !pod.IsFinished());
    if (goes || pod.deletion) builder.Delete(pod, "the job has ended");
  }
  if (builder.view().spec.clean != CleanPolicy::kNone) {
    for (const ServiceView& service : builder.view().services) builder.Delete(service, "the job has ended");
  }
  if (!builder.view().spec.ttl || !builder.status().completion_time) return;
  const absl::Time due = *builder.status().completion_time + *builder.view().spec.ttl;
  if (builder.now() < due) return builder.WakeAt(due);
  builder.plan().actions.clear();
  builder.Do(DeleteJob{.why = "ttlSecondsAfterFinished is over"});
}

void PlanSuspended(PlanBuilder& builder) {
  for (const PodView& pod : builder.view().pods) builder.Delete(pod, "the job is suspended");
  for (const ServiceView& service : builder.view().services) builder.Delete(service, "the job is suspended");
  const auto left = std::ranges::count_if(builder.view().pods, &PodView::owned);
  for (const RoleSpec& role : builder.view().spec.roles) builder.StatusOf(role).active = 0;
  for (const PodView& pod : builder.view().pods) {
    const auto spec = std::ranges::find(builder.view().spec.roles, pod.role, &RoleSpec::slug);
    if (spec == builder.view().spec.roles.end() || pod.phase != Phase::kRunning) continue;
    ++builder.StatusOf(*spec).active;
  }
  builder.status().wanted = builder.view().spec.CountPods();
  builder.status().ready = 0;
  builder.Enter(State::kSuspended, left == 0 ? "the job has no pods until spec.suspend is false"
                                             : StrCat("the job is suspended; ", left,
                                                      left == 1 ? " pod is ending" : " pods are ending"));
}

}  // namespace trainyard::job
