#include "job/seat_judge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {
namespace {

absl::Time FailedAt(const PodView& pod) { return pod.end ? pod.end->at : pod.since; }

void Count(RoleStatus& known, bool counts) {
  known.settled += counts ? 1 : 0;
  known.restarts += counts ? 1 : 0;
  known.disruptions += counts ? 0 : 1;
}

}  // namespace

void SeatJudge::JudgeAll() {
  LiftBarriers();
  for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
    const RoleSpec& role = view().spec.roles[i];
    std::vector<Fate>& fates = account_.fates.emplace_back();
    for (const Seat& seat : account_.seats.roles[i]) {
      const int index = static_cast<int>(fates.size());
      fates.push_back(Judge(role, index, seat.pod));
      account_.tally.Add(role, index, seat.pod, fates.back());
      PlanService(role, index, seat.service);
    }
  }
  for (const PodView* pod : account_.seats.surplus_pods)
    builder_.Delete(*pod, "no index of the job is its own");
  for (const ServiceView* service : account_.seats.surplus_services)
    builder_.Delete(*service, "no index of the job is its own");
}

bool SeatJudge::IsStale(const RoleSpec& role, const PodView& pod) {
  return pod.owned && pod.attempt < StatusOf(role).AttemptOf(pod.index);
}

// A barrier holds until nothing of the past is left behind it; also a pod that is no longer wanted is.
void SeatJudge::LiftBarriers() {
  std::vector<bool> held(view().spec.roles.size(), false);
  bool any_of_job = false;
  for (const PodView& pod : view().pods) {
    const auto role = std::ranges::find(view().spec.roles, pod.role, &RoleSpec::slug);
    if (role == view().spec.roles.end() || !pod.owned) continue;
    if (pod.index < role->replicas && !IsStale(*role, pod)) continue;
    held[static_cast<std::size_t>(role - view().spec.roles.begin())] = true;
    any_of_job |= StatusOf(*role).barrier == RestartScope::kJob;
  }
  for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
    RoleStatus& known = StatusOf(view().spec.roles[i]);
    const bool stays = known.barrier == RestartScope::kJob ? any_of_job : held[i];
    if (!stays) known.barrier = RestartScope::kPod;
  }
}

Fate SeatJudge::Judge(const RoleSpec& role, int index, const PodView* pod) {
  RoleStatus& known = StatusOf(role);
  const int attempt = known.AttemptOf(index);
  if (pod == nullptr || pod->creation_error.empty()) known.stuck.erase(index);
  if (known.completed.Contains(index)) {
    if (pod != nullptr && pod->deletion) builder_.Delete(*pod, "");
    return Fate::kCompleted;
  }
  if (known.given_up.Contains(index)) {
    if (pod != nullptr) builder_.Stop(*pod, "it has failed for good");
    return Fate::kGivenUp;
  }
  if (pod == nullptr) return JudgeMissing(role, index);
  if (!pod->owned) {  // how it has done is judged when it is ours
    builder_.Do(AdoptPod{.name = pod->name, .uid = pod->uid});
    return pod->main_runs ? Fate::kRuns : Fate::kStarts;
  }
  if (pod->attempt < attempt) return JudgeStale(role, *pod);
  if (pod->HasFailed() && EndedByItself(*pod)) return JudgeFailed(role, *pod, ClassifyFailure(*pod));
  if (!pod->IsFinished() && builder_.IsLost(*pod)) {
    return JudgeFailed(role, *pod, {.cause = FailureCause::kNodeLost});
  }
  if (!pod->IsFinished() && !pod->deletion && !pod->accelerator_trouble.empty()) {
    return JudgeFailed(role, *pod, {.cause = FailureCause::kAccelerator});
  }
  if (pod->deletion) {
    builder_.Delete(*pod, "");
    return Fate::kLeaves;
  }
  if (pod->main_runs) return Fate::kRuns;
  if (!pod->creation_error.empty() && IsStuck(role, *pod)) {
    return JudgeFailed(role, *pod, {.cause = FailureCause::kCreation});
  }
  // Its other containers go on.
  if (pod->main_succeeded && role.restart.in_place != InPlace::kEverything) return Fate::kRuns;
  const bool again = pod->restarts > 0 || attempt > 0 || pod->end || pod->main_succeeded;
  return again ? Fate::kRestarts : Fate::kStarts;
}

Fate SeatJudge::JudgeMissing(const RoleSpec& role, int index) {
  const RoleStatus& known = StatusOf(role);
  const int attempt = known.AttemptOf(index);
  if (known.barrier == RestartScope::kPod) {
    builder_.Do(CreatePod{.role = role.slug,
                          .index = index,
                          .attempt = attempt,
                          .avoid = role.accelerated ? view().avoid_nodes : std::vector<std::string>(),
                          .why = attempt > 0 ? "it is made again" : "it is missing"});
  }
  return attempt > 0 ? Fate::kRestarts : Fate::kMissing;
}

// Its failure is counted and stored; it goes when its wait is over, and stays until then for whoever wants
// to read its logs.
Fate SeatJudge::JudgeStale(const RoleSpec& role, const PodView& pod) {
  if (pod.HasFailed() && !pod.deletion) {
    const absl::Time due =
        FailedAt(pod) + DecideRestart(role.restart, ClassifyFailure(pod), pod.attempt).wait;
    if (builder_.now() < due) {
      builder_.WakeAt(due);
      return Fate::kStale;
    }
  }
  builder_.Delete(pod, pod.HasFailed() ? "it has failed and is made again" : "it is made again");
  return Fate::kStale;
}

// Whether its containers could not be made for longer than anybody wants to wait.
bool SeatJudge::IsStuck(const RoleSpec& role, const PodView& pod) {
  const absl::Time since =
      StatusOf(role).stuck.try_emplace(pod.index, WholeSecond(builder_.now())).first->second;
  const absl::Time due = since + view().policies.creation_patience;
  if (builder_.now() < due) {
    builder_.WakeAt(due);
    return false;
  }
  // Where it may not fail the job, it waits on when no restart is left.
  return view().policies.creation_fails || FindLimit(role, StatusOf(role), true).empty();
}

// Why no restart is left; empty: one is.
std::string SeatJudge::FindLimit(const RoleSpec& role, const RoleStatus& known, bool counts) const {
  if (!counts) return "";
  if (role.restart_limit && known.restarts >= *role.restart_limit) {
    return StrCat("restartLimit of ", role.name, " is ", *role.restart_limit);
  }
  const auto limit = view().spec.restart_limit;
  return limit && builder_.status().CountRestarts() >= *limit ? StrCat("backoffLimit is ", *limit) : "";
}

Fate SeatJudge::JudgeFailed(const RoleSpec& role, const PodView& pod, const PodFailure& failure) {
  RoleStatus& known = StatusOf(role);
  const RestartDecision decision = DecideRestart(role.restart, failure, pod.attempt);
  const std::string cause = StrCat(ShortName(role.slug, pod.index), " ", DescribeFailure(pod, failure));
  if (pod.HasFailed()) ++known.failed;
  if (decision.verdict == RestartVerdict::kGiveUp) {
    return GiveUp(role, pod, failure, {.message = StrCat(cause, "; not restarted: ", decision.why)});
  }
  if (const std::string limit = FindLimit(role, known, decision.counts); !limit.empty()) {
    return GiveUp(role, pod, failure,
                  {.reason = role.restart_limit ? "" : "BackoffLimitExceeded",
                   .message = StrCat(cause, "; no restart is left: ", limit)});
  }
  if (pod.attempt >= kMostAttempts) {
    return GiveUp(
        role, pod, failure,
        {.reason = "BackoffLimitExceeded", .message = StrCat(cause, "; it was made again too often")});
  }
  known.settled += pod.restarts;
  Raise(role, pod, decision.counts);
  builder_.plan().restarts.push_back({.role = role.name, .cause = std::string(Print(failure.cause))});
  Blame(role, cause, decision.counts);
  account_.raised = true;
  return Fate::kStale;
}

void SeatJudge::Raise(const RoleSpec& role, const PodView& pod, bool counts) {
  switch (role.scope) {
    case RestartScope::kPod:
      StatusOf(role).attempts[pod.index] = pod.attempt + 1;
      StatusOf(role).stuck.erase(pod.index);
      Count(StatusOf(role), counts);
      return;
    case RestartScope::kRole:
      RaiseRole(role, RestartScope::kRole);
      Count(StatusOf(role), counts);
      return;
    case RestartScope::kJob:
      for (const RoleSpec& other : view().spec.roles) {
        RaiseRole(other, RestartScope::kJob);
        Count(StatusOf(other), counts);
      }
      return;
  }
}

void SeatJudge::RaiseRole(const RoleSpec& role, RestartScope barrier) {
  RoleStatus& known = StatusOf(role);
  const std::size_t at = static_cast<std::size_t>(&role - view().spec.roles.data());
  const std::vector<Seat>& seats = account_.seats.roles[at];
  const int size = known.size.value_or(role.replicas);
  for (int index = 0; index < size; ++index) {
    const auto seat = static_cast<std::size_t>(index);
    const PodView* pod = seat < seats.size() ? seats[seat].pod : nullptr;
    const int made = pod != nullptr && pod->owned ? pod->attempt : 0;
    known.attempts[index] = std::min(std::max(known.AttemptOf(index), made) + 1, kMostAttempts);
  }
  known.completed = known.given_up = IndexSet();
  known.node_failed = false;
  known.stuck.clear();
  if (known.barrier != RestartScope::kJob) known.barrier = barrier;
}

Fate SeatJudge::GiveUp(const RoleSpec& role, const PodView& pod, const PodFailure& failure, Failure told) {
  RoleStatus& known = StatusOf(role);
  known.given_up.Insert(pod.index);
  known.node_failed |= IsNodeFailure(failure.cause);
  known.last_cause = told.message;
  known.last_time = WholeSecond(builder_.now());
  account_.raised = true;
  if (account_.failure.message.empty()) account_.failure = std::move(told);  // the first one is told
  return Fate::kGivenUp;
}

void SeatJudge::Blame(const RoleSpec& role, const std::string& cause, bool counts) {
  RoleStatus& known = StatusOf(role);
  known.last_cause = cause;
  known.last_time = WholeSecond(builder_.now());
  account_.blame = {.cause = cause,
                    .role = role.name,
                    .counts = counts,
                    .limit = view().spec.restart_limit ? view().spec.restart_limit : role.restart_limit,
                    .restarts = view().spec.telling == Telling::kByPhase ? known.restarts
                                                                         : builder_.status().CountRestarts()};
}

void SeatJudge::PlanService(const RoleSpec& role, int index, const ServiceView* service) {
  if (service == nullptr) {
    account_.tally.AddMissingService();
    builder_.Do(CreateService{.role = role.slug, .index = index, .why = "it is missing"});
  } else if (service->leaving) {
    account_.tally.AddMissingService();
  } else if (!service->owned) {
    builder_.Do(AdoptService{.name = service->name, .uid = service->uid});
  }
}

}  // namespace trainyard::job
