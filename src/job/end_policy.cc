#include "job/end_policy.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {
namespace {

// One role and all that matters of it.
struct Group {
  const RoleSpec* spec = nullptr;
  int completed = 0;
  int given_up = 0;
  bool rank0_completed = false;
  bool rank0_given_up = false;
  bool node_failed = false;
  Verdict verdict = Verdict::kOpen;

  bool AllEnded() const { return completed + given_up >= spec->replicas; }
  bool Decides() const { return spec->complete != EndPolicy::kNone; }
};

Group Sum(const RoleSpec& role, const RoleStatus& status) {
  return {.spec = &role,
          .completed = status.completed.Count(),
          .given_up = status.given_up.Count(),
          .rank0_completed = status.completed.Contains(0),
          .rank0_given_up = status.given_up.Contains(0),
          .node_failed = status.node_failed};
}

bool IsComplete(const Group& group) {
  switch (group.spec->complete) {
    case EndPolicy::kAny:
      return group.completed > 0;
    case EndPolicy::kRank0:
      return group.rank0_completed;
    case EndPolicy::kAll:
      return group.completed >= group.spec->replicas;
    case EndPolicy::kNone:
      return false;
  }
  return false;
}

bool HasFailed(const Group& group) {
  switch (group.spec->fail) {
    case EndPolicy::kAny:
      return group.given_up > 0;
    case EndPolicy::kRank0:
      return group.rank0_given_up;
    case EndPolicy::kAll:
      return group.given_up >= group.spec->replicas;
    case EndPolicy::kNone:
      return false;
  }
  return false;
}

// Nobody is left who could bring it to its success.
bool IsHopeless(const Group& group) {
  switch (group.spec->complete) {
    case EndPolicy::kAny:
    case EndPolicy::kAll:
      return group.given_up >= group.spec->replicas;
    case EndPolicy::kRank0:
      return group.rank0_given_up;
    case EndPolicy::kNone:
      return false;
  }
  return false;
}

Verdict Judge(const Group& group) {
  if (group.spec->replicas == 0) return Verdict::kOpen;
  if (IsComplete(group)) return Verdict::kSucceeded;
  if (HasFailed(group) || IsHopeless(group)) return Verdict::kFailed;
  return group.spec->complete == EndPolicy::kAll && group.AllEnded() ? Verdict::kSucceeded : Verdict::kOpen;
}

std::string NameRank0(const std::vector<Group>& groups) {
  std::string who;
  for (const Group& group : groups) {
    if (group.rank0_completed) StrAppend(who, who.empty() ? "" : " and ", ShortName(group.spec->slug, 0));
  }
  return who;
}

// Who of the role has brought its success about.
std::string NameSuccess(const Group& group) {
  const RoleSpec& role = *group.spec;
  switch (role.complete) {
    case EndPolicy::kAny:
      return StrCat("a ", role.slug);
    case EndPolicy::kRank0:
      return ShortName(role.slug, 0);
    case EndPolicy::kAll:
      if (role.replicas == 1) return ShortName(role.slug, 0);
      if (group.completed == role.replicas) return StrCat("all ", role.replicas, " of ", role.slug);
      return StrCat(group.completed, " of ", role.replicas, " of ", role.slug);
    case EndPolicy::kNone:
      break;
  }
  return role.slug;
}

class Court {
 public:
  Court(const JobSpec& spec, const JobStatus& status) : spec_(spec) {
    for (const RoleSpec& role : spec.roles) {
      if (role.replicas == 0) continue;
      static const RoleStatus kNothing;
      const auto known = status.roles.find(role.name);
      Group group = Sum(role, known == status.roles.end() ? kNothing : known->second);
      group.verdict = Judge(group);
      groups_.push_back(group);
      if (group.Decides()) deciders_.push_back(group);
    }
  }

  JobVerdict Decide() const {
    if (IsComplete()) return Success(NameDeciders(Verdict::kSucceeded));
    if (HasFailed()) return Failure(NameFailure());
    if (!IsClosed()) return {};
    const bool rank0 = spec_.complete == EndPolicy::kRank0 && !deciders_.empty();
    const bool some =
        rank0 ? std::ranges::any_of(deciders_, &Group::rank0_completed)
              : std::ranges::any_of(groups_, [](const Group& group) { return group.completed > 0; });
    if (!some) return Failure("nobody is left who could end it well");
    const std::string who = NameDeciders(Verdict::kSucceeded);
    return Success(who.empty() ? "all that could" : who);
  }

 private:
  static bool AllOf(const std::vector<Group>& groups, bool (*is)(const Group&)) {
    return !groups.empty() && std::ranges::all_of(groups, is);
  }

  bool IsComplete() const {
    constexpr auto kSucceeded = [](const Group& group) { return group.verdict == Verdict::kSucceeded; };
    switch (spec_.complete) {
      case EndPolicy::kAny:
        return std::ranges::any_of(deciders_, kSucceeded);
      case EndPolicy::kAll:
        return AllOf(deciders_, kSucceeded);
      case EndPolicy::kRank0:
        return AllOf(deciders_, [](const Group& group) { return group.rank0_completed; });
      case EndPolicy::kNone:
        return false;
    }
    return false;
  }

  bool HasFailed() const {
    constexpr auto kFailed = [](const Group& group) { return group.verdict == Verdict::kFailed; };
    switch (spec_.fail) {
      case EndPolicy::kAny:
        return std::ranges::any_of(groups_, kFailed);
      case EndPolicy::kAll: {
        // A role that cannot fail does not stand in the way of all that can.
        std::vector<Group> able = groups_;
        std::erase_if(able, [](const Group& group) {
          return group.spec->fail == EndPolicy::kNone && group.verdict != Verdict::kFailed;
        });
        return AllOf(able, kFailed);
      }
      case EndPolicy::kRank0:
        return std::ranges::any_of(groups_, &Group::rank0_given_up);
      case EndPolicy::kNone:
        return false;
    }
    return false;
  }

  // Nothing that can still happen would decide it.
  bool IsClosed() const {
    if (groups_.empty()) return false;
    if (deciders_.empty() || spec_.complete == EndPolicy::kNone) {
      return std::ranges::all_of(groups_, &Group::AllEnded);
    }
    if (spec_.complete == EndPolicy::kRank0) {
      return std::ranges::all_of(
          deciders_, [](const Group& group) { return group.rank0_completed || group.rank0_given_up; });
    }
    return std::ranges::all_of(deciders_, [](const Group& group) { return group.verdict != Verdict::kOpen; });
  }

  static JobVerdict Success(const std::string& who) {
    return {.verdict = Verdict::kSucceeded, .why = StrCat(who, " ended with 0")};
  }
  JobVerdict Failure(std::string why) const {
    const bool node = std::ranges::any_of(groups_, [this](const Group& group) {
      const bool blamed =
          group.verdict == Verdict::kFailed || (spec_.fail == EndPolicy::kRank0 && group.rank0_given_up);
      return group.node_failed && blamed;
    });
    return {.verdict = Verdict::kFailed, .node = node, .why = std::move(why)};
  }

  std::string NameDeciders(Verdict verdict) const {
    if (spec_.complete == EndPolicy::kRank0) return NameRank0(deciders_);
    std::string who;
    for (const Group& group : deciders_) {
      if (group.verdict != verdict) continue;
      StrAppend(who, who.empty() ? "" : " and ", NameSuccess(group));
    }
    return who;
  }

  std::string NameFailure() const {
    if (spec_.fail == EndPolicy::kRank0) return "failPolicy of the job is Rank0";
    if (spec_.fail == EndPolicy::kAll && groups_.size() > 1)
      return "failPolicy of the job is All, and all have failed";
    for (const Group& group : groups_) {
      if (group.verdict != Verdict::kFailed) continue;
      if (!job::HasFailed(group)) {
        return StrCat("completePolicy ", Print(group.spec->complete), " of ", group.spec->name,
                      " can no longer be met");
      }
      return StrCat("failPolicy of ", group.spec->name, " is ", Print(group.spec->fail));
    }
    return "";
  }

  const JobSpec& spec_;
  std::vector<Group> groups_;    // roles that have pods
  std::vector<Group> deciders_;  // those of them whose success is waited for
};

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

std::string_view Print(EndPolicy policy) {
  switch (policy) {
    case EndPolicy::kAny:
      return "Any";
    case EndPolicy::kRank0:
      return "Rank0";
    case EndPolicy::kAll:
      return "All";
    case EndPolicy::kNone:
      return "None";
  }
  return "";
}

bool Decides(const RoleSpec& role, int index) {
  switch (role.complete) {
    case EndPolicy::kAny:
    case EndPolicy::kAll:
      return true;
    case EndPolicy::kRank0:
      return index == 0;
    case EndPolicy::kNone:
      return false;
  }
  return false;
}

Verdict JudgeRole(const RoleSpec& role, const RoleStatus& status) { return Judge(Sum(role, status)); }

JobVerdict JudgeJob(const JobSpec& spec, const JobStatus& status) { return Court(spec, status).Decide(); }

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
