#include "job/ending.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"

namespace trainyard::job {
namespace {

// Of a job that has, or had, phases: what its pods come to when they are told to end says nothing.
void RecountEnding(PlanBuilder& builder) {
  for (auto& [name, role] : builder.status().roles) {
    role.pending = role.scheduled = role.restarting = role.active = 0;
  }
  for (const PodView& pod : builder.view().pods) {
    const auto spec = std::ranges::find(builder.view().spec.roles, pod.role, &RoleSpec::slug);
    if (spec == builder.view().spec.roles.end() || !pod.owned) continue;
    RoleStatus& known = builder.StatusOf(*spec);
    if (pod.IsActive() && !known.completed.Contains(pod.index)) ++known.active;
  }
  int ready = 0;
  for (const auto& [name, role] : builder.status().roles) ready += role.active + role.succeeded;
  builder.status().ready = std::min(ready, builder.status().wanted);
}

// What has ended stays counted when its pod is gone.
void RecountFinished(PlanBuilder& builder) {
  if (builder.view().spec.telling == Telling::kByPhase) return RecountEnding(builder);
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

// Whatever the job's pods come to when it is over.
void CleanUp(PlanBuilder& builder, const std::string& why) {
  const JobSpec& spec = builder.view().spec;
  for (const PodView& pod : builder.view().pods) {
    if (spec.clean == CleanPolicy::kNone && spec.telling == Telling::kByPhase) {
      builder.Stop(pod, why);
      continue;
    }
    const bool goes =
        spec.clean == CleanPolicy::kAll || (spec.clean == CleanPolicy::kRunning && !pod.IsFinished());
    if (goes || pod.deletion) builder.Delete(pod, why);
  }
  if (spec.clean == CleanPolicy::kNone) return;
  for (const ServiceView& service : builder.view().services) builder.Delete(service, why);
  for (const auto& config_map : {builder.view().members, builder.view().config}) {
    if (config_map && config_map->owned && !config_map->leaving)
      builder.Do(DeleteConfigMap{.name = config_map->name, .uid = config_map->uid, .why = why});
  }
}

// Pods that have not come to what they are to come to.
int CountUnended(PlanBuilder& builder) {
  const bool kept = builder.view().spec.clean == CleanPolicy::kNone;
  int count = 0;
  for (const PodView& pod : builder.view().pods) {
    const bool ended = kept && !pod.deletion && builder.IsOver(pod);
    count += pod.owned && !ended ? 1 : 0;
  }
  return count;
}

void Complete(PlanBuilder& builder, const Ending& ending) {
  builder.status().completion_time = WholeSecond(builder.now());
  builder.status().Set(ending.state, true, ending.reason, ending.message, builder.now());
}

}  // namespace

void Conclude(PlanBuilder& builder, Ending ending) {
  builder.MarkEnded();
  builder.Tell(ending.state != State::kSucceeded, ending.reason, ending.message);
  if (builder.view().spec.telling == Telling::kByState) return Complete(builder, ending);
  RecountEnding(builder);
  builder.status().restarting_role.clear();
  if (CountUnended(builder) == 0) return Complete(builder, ending);
  builder.Enter(State::kTerminating, ending.message);
  builder.status().ending = std::move(ending);
}

void PlanEnding(PlanBuilder& builder) {
  const Ending ending = *builder.status().ending;
  RecountEnding(builder);
  const int left = CountUnended(builder);
  if (left == 0) {
    builder.status().ending.reset();
    builder.MarkEnded();
    return Complete(builder, ending);
  }
  CleanUp(builder, "the job ends");
  builder.Enter(State::kTerminating,
                StrCat(ending.message, "; ", left, left == 1 ? " pod is" : " pods are", " ending"));
}

void PlanFinished(PlanBuilder& builder) {
  RecountFinished(builder);
  if (builder.view().spec.ttl && builder.status().completion_time) {
    const absl::Time due = *builder.status().completion_time + *builder.view().spec.ttl;
    if (builder.now() >= due) return builder.Do(DeleteJob{.why = "ttlSecondsAfterFinished is over"});
    builder.WakeAt(due);
  }
  if (builder.view().invalid.empty()) CleanUp(builder, "the job has ended");  // or which pods go is not known
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
  builder.Enter(State::kSuspended, left == 0 ? "the job has no pods until suspend is false"
                                             : StrCat("the job is suspended; ", left,
                                                      left == 1 ? " pod is ending" : " pods are ending"));
}

}  // namespace trainyard::job
