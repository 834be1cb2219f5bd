#include "job/seat_judge.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "job/end_policy.h"
#include "job/names.h"

namespace trainyard::job {
namespace {

constexpr absl::Duration kLookAfterNodes = absl::Seconds(10);

absl::Time FailedAt(const PodView& pod) { return pod.end ? pod.end->at : pod.since; }

std::string PrintCause(const RoleSpec& role, const PodView& pod, const PodFailure& failure) {
  return StrCat(ShortName(role.slug, pod.index), " ", DescribeFailure(pod, failure));
}

void Count(RoleStatus& known, bool counts) {
  known.restarts += counts ? 1 : 0;
  known.disruptions += counts ? 0 : 1;
}

}  // namespace

void SeatJudge::JudgeAll() {
  LiftBarriers();
  GiveUpFirst();
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
  if (const auto failure = FindFailure(role, *pod)) return JudgeFailed(role, *pod, *failure);
  if (pod->deletion) {
    builder_.Delete(*pod, "");
    return Fate::kLeaves;
  }
  if (pod->mislabelled) {
    builder_.Do(RelabelPod{.name = pod->name, .uid = pod->uid, .role = role.slug, .index = index});
  }
  if (pod->main_runs) return Fate::kRuns;
  if (pod->resumes) NoteWait(*pod->resumes);
  if (AvoidsTheWell(*pod)) {
    builder_.Delete(*pod, "a node that it avoids is well again");
    return Fate::kLeaves;
  }
  // Its other containers go on.
  if (pod->main_succeeded && role.restart.in_place != InPlace::kEverything) return Fate::kRuns;
  const bool again = pod->restarts > 0 || attempt > 0 || pod->end || pod->main_succeeded;
  return again ? Fate::kRestarts : Fate::kStarts;
}

// Whether it waits for a node and is kept off one that it could have. That a node is well is not told to
// those who have no pod there, so it is looked after.
bool SeatJudge::AvoidsTheWell(const PodView& pod) {
  if (pod.avoids.empty() || !pod.node.empty()) return false;
  builder_.WakeAt(builder_.now() + kLookAfterNodes);
  return std::ranges::any_of(pod.avoids, [&](const std::string& node) {
    return std::ranges::find(view().avoid_nodes, node) == view().avoid_nodes.end();
  });
}

// Of a pod of ours that is not of the past.
std::optional<PodFailure> SeatJudge::FindFailure(const RoleSpec& role, const PodView& pod) {
  if (pod.HasFailed() && EndedByItself(pod)) return ClassifyFailure(pod);
  if (!pod.IsFinished() && builder_.IsLost(pod)) return PodFailure{.cause = FailureCause::kNodeLost};
  if (pod.IsFinished() || pod.deletion) return std::nullopt;
  if (role.accelerated && HasLostAccelerator(pod)) return PodFailure{.cause = FailureCause::kAccelerator};
  if (pod.main_runs || pod.creation_error.empty() || !role.restart.creation) return std::nullopt;
  return IsStuck(role, pod) ? std::optional(PodFailure{.cause = FailureCause::kCreation}) : std::nullopt;
}

// A node that has fewer than it has given may only be starting, or be seen late.
bool SeatJudge::HasLostAccelerator(const PodView& pod) {
  if (pod.accelerator_trouble.empty()) return false;
  if (!pod.accelerator_since) return true;
  const absl::Time due = *pod.accelerator_since + std::max(view().policies.node_grace, kLackGrace);
  if (builder_.now() < due) builder_.WakeAt(due);
  return builder_.now() >= due;
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
    // Numbers rise also when the role's size changes, and that is no failure.
    const RoleStatus& known = StatusOf(role);
    const std::int64_t failures = std::max<std::int64_t>(known.restarts + known.disruptions - 1, 0);
    const int before = static_cast<int>(std::min<std::int64_t>(pod.attempt, failures));
    const absl::Time due = FailedAt(pod) + DecideRestart(role.restart, ClassifyFailure(pod), before).wait;
    if (builder_.now() < due) {
      builder_.WakeAt(due);
      NoteWait(due);
      return Fate::kStale;
    }
  }
  builder_.Delete(pod, pod.HasFailed() ? "it has failed and is made again" : "it is made again");
  return Fate::kStale;
}

void SeatJudge::NoteWait(absl::Time due) { account_.resumes = std::min(account_.resumes.value_or(due), due); }

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

// Why the pod is not made again; nothing: it is.
std::optional<Failure> SeatJudge::FindFinal(const RoleSpec& role, const PodView& pod,
                                            const PodFailure& failure) {
  const RestartDecision decision = DecideRestart(role.restart, failure, pod.attempt);
  const std::string cause = PrintCause(role, pod, failure);
  if (decision.verdict == RestartVerdict::kGiveUp) {
    return Failure{.message = StrCat(cause, "; not restarted: ", decision.why)};
  }
  if (const std::string limit = FindLimit(role, StatusOf(role), decision.counts); !limit.empty()) {
    return Failure{.reason = role.restart_limit ? "" : "BackoffLimitExceeded",
                   .message = StrCat(cause, "; no restart is left: ", limit)};
  }
  if (pod.attempt < kMostAttempts) return std::nullopt;
  return Failure{.reason = "BackoffLimitExceeded", .message = StrCat(cause, "; it was made again too often")};
}

// What is final may be the job's end, which comes before the restarts that others ask for at the same time:
// these would make it good again.
void SeatJudge::GiveUpFirst() {
  bool any = false;
  for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
    const RoleSpec& role = view().spec.roles[i];
    const RoleStatus& known = StatusOf(role);
    for (const Seat& seat : account_.seats.roles[i]) {
      if (seat.pod == nullptr || !seat.pod->owned || IsStale(role, *seat.pod)) continue;
      if (known.completed.Contains(seat.pod->index) || known.given_up.Contains(seat.pod->index)) continue;
      const auto failure = FindFailure(role, *seat.pod);
      if (!failure) continue;
      auto final = FindFinal(role, *seat.pod, *failure);
      if (!final) continue;
      GiveUp(role, *seat.pod, *failure, *std::move(final));
      any = true;
    }
  }
  over_ = any && JudgeJob(view().spec, builder_.status()).verdict == Verdict::kFailed;
}

Fate SeatJudge::JudgeFailed(const RoleSpec& role, const PodView& pod, const PodFailure& failure) {
  RoleStatus& known = StatusOf(role);
  if (auto final = FindFinal(role, pod, failure)) {
    GiveUp(role, pod, failure, *std::move(final));
    return Fate::kGivenUp;
  }
  if (pod.HasFailed()) ++known.failed;
  if (over_) return Fate::kStale;  // the job ends before it is made again
  const RestartDecision decision = DecideRestart(role.restart, failure, pod.attempt);
  Raise(role, pod, decision.counts);
  builder_.NoteRestart({.role = role.name, .cause = std::string(Print(failure.cause))});
  Blame(role, PrintCause(role, pod, failure), decision.counts);
  builder_.MarkRaised();
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
  // Also those that have no seat may still be there, when the role has become smaller and grows again.
  std::map<int, int> made;
  for (const PodView& pod : view().pods) {
    if (pod.owned && pod.role == role.slug) made[pod.index] = std::max(made[pod.index], pod.attempt);
  }
  const int size = known.size.value_or(role.replicas);
  for (int index = 0; index < size; ++index) {
    const auto pod = made.find(index);
    const int before = std::max(known.AttemptOf(index), pod == made.end() ? 0 : pod->second);
    known.attempts[index] = std::min(before + 1, kMostAttempts);
  }
  known.completed = known.given_up = IndexSet();
  known.node_failed = false;
  known.stuck.clear();
  if (known.barrier != RestartScope::kJob) known.barrier = barrier;
}

void SeatJudge::GiveUp(const RoleSpec& role, const PodView& pod, const PodFailure& failure, Failure told) {
  RoleStatus& known = StatusOf(role);
  if (pod.HasFailed()) ++known.failed;
  known.given_up.Insert(pod.index);
  known.node_failed |= IsNodeFailure(failure.cause);
  known.last_cause = told.message;
  known.last_time = WholeSecond(builder_.now());
  builder_.MarkRaised();
  if (account_.failure.message.empty()) account_.failure = std::move(told);  // the first one is told
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
  } else if (service->altered) {
    builder_.Do(RepairService{.name = service->name, .uid = service->uid, .role = role.slug, .index = index});
  }
}

}  // namespace trainyard::job
