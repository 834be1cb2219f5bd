#include "job/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "job/names.h"
#include "job/restart_policy.h"
#include "job/seats.h"

namespace trainyard::job {
namespace {

// How the pod of one seat stands.
enum class Fate : std::uint8_t {
  kCompleted,  // it has done its work
  kRuns,
  kStarts,    // it exists and does not run yet
  kMissing,   // there is none
  kRestarts,  // it failed, or was lost, and is made or started again
  kLeaves,    // it is being deleted, and another is made once it is gone
};

// As stored times are: whole seconds.
absl::Time WholeSecond(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time)); }

class Planner {
 public:
  Planner(const JobView& view, absl::Time now) : view_(view), now_(now), seats_(FindSeats(view)) {
    plan_.status = view.status;
  }

  JobPlan Plan() {
    if (view_.leaving) return std::move(plan_);  // the garbage collector ends what is ours
    status().observed_generation = view_.generation;
    if (status().IsFinished()) {
      PlanFinished();
    } else if (!view_.invalid.empty()) {
      Finish(State::kFailed, "InvalidSpec", view_.invalid);
    } else {
      PlanLive();
    }
    return std::move(plan_);
  }

 private:
  JobStatus& status() { return plan_.status; }
  RoleStatus& StatusOf(const RoleSpec& role) { return status().roles[role.name]; }
  std::string Reason(std::string_view what) const { return StrCat(view_.spec.kind, what); }

  // ---- a job that has not ended

  void PlanLive() {
    if (!status().start_time) status().start_time = WholeSecond(now_);
    DropIndexesOfThePast();
    FindCompletions();
    if (TrySucceed()) return;
    if (view_.spec.suspend) return PlanSuspended();
    const Condition* current = status().Current();
    if (current != nullptr && current->type == State::kSuspended) {
      status().start_time = WholeSecond(now_);
      status().Set(State::kSuspended, false, Reason("Resumed"), "the job goes on", now_);
      Tell(false, Reason("Resumed"), "the job goes on");
    }
    if (CheckDeadline()) return;
    CountRestartsOfContainers();
    if (CheckRestartLimit()) return;
    JudgeSeats();
    if (failure_) return Finish(State::kFailed, failure_reason_, *failure_);
    Recount();
    Describe();
    if (raised_) {  // what was raised is stored before anything is done under it
      plan_.actions.clear();
      Wake(absl::ZeroDuration());
    }
  }

  void DropIndexesOfThePast() {
    for (const RoleSpec& role : view_.spec.roles) {
      RoleStatus& known = StatusOf(role);
      known.completed.Truncate(role.replicas);
      known.attempts.erase(known.attempts.lower_bound(role.replicas), known.attempts.end());
    }
  }

  // Whether the success of this index is waited for; then its main container alone counts, and counts even if
  // it has been started again since.
  static bool Decides(const RoleSpec& role, int index) {
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

  // One that ended after it was told to go has done nothing of its own.
  static bool EndedByItself(const PodView& pod) {
    return !pod.deletion || (pod.end && pod.end->at < pod.deletion->asked);
  }

  void FindCompletions() {
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      if (seat.pod == nullptr || !seat.pod->owned) return;
      // One that was told to go may have ended with 0 for that alone.
      const bool by_itself = !seat.pod->deletion || seat.pod->main_succeeded;
      const bool done = (seat.pod->phase == Phase::kSucceeded && by_itself) ||
                        (seat.pod->main_succeeded && Decides(role, index));
      if (done) StatusOf(role).completed.Insert(index);
    });
    for (const RoleSpec& role : view_.spec.roles) {
      StatusOf(role).succeeded = StatusOf(role).completed.Count();
    }
  }

  bool TrySucceed() {
    std::string message;
    for (const RoleSpec& role : view_.spec.roles) {
      const IndexSet& completed = StatusOf(role).completed;
      bool done = true;
      std::string who;
      switch (role.complete) {
        case EndPolicy::kNone:
          continue;
        case EndPolicy::kAny:
          done = completed.Count() > 0;
          who = StrCat("a ", role.slug);
          break;
        case EndPolicy::kRank0:
          done = completed.Contains(0);
          who = ShortName(role.slug, 0);
          break;
        case EndPolicy::kAll:
          done = completed.Count() == role.replicas;
          who =
              role.replicas == 1 ? ShortName(role.slug, 0) : StrCat("all ", role.replicas, " of ", role.slug);
          break;
      }
      if (!done) return false;
      StrAppend(message, message.empty() ? "" : " and ", who);
    }
    if (message.empty()) return false;
    Finish(State::kSucceeded, Reason("Succeeded"), StrCat(message, " ended with 0"));
    return true;
  }

  bool CheckDeadline() {
    if (!view_.spec.deadline) return false;
    const absl::Time due = *status().start_time + *view_.spec.deadline;
    if (now_ < due) {
      WakeAt(due);
      return false;
    }
    Finish(State::kFailed, "DeadlineExceeded",
           StrCat("the job was active for longer than activeDeadlineSeconds: ",
                  absl::ToInt64Seconds(*view_.spec.deadline)));
    return true;
  }

  bool NoRestartIsLeft() const {
    return view_.spec.restart_limit && plan_.status.CountRestarts() >= *view_.spec.restart_limit;
  }
  std::string PrintLimit(const std::string& cause) const {
    return StrCat(cause, "; no restart is left: backoffLimit is ", *view_.spec.restart_limit);
  }

  // The kubelet does not ask before it starts a container again.
  bool CheckRestartLimit() {
    const auto limit = view_.spec.restart_limit;
    if (!limit || status().CountRestarts() <= *limit) return false;
    Finish(State::kFailed, "BackoffLimitExceeded", PrintLimit(last_cause_));
    return true;
  }

  // ---- seats

  template <typename F>
  void ForEachSeat(F&& f) {
    for (std::size_t i = 0; i < view_.spec.roles.size(); ++i) {
      for (std::size_t index = 0; index < seats_.roles[i].size(); ++index) {
        f(view_.spec.roles[i], static_cast<int>(index), seats_.roles[i][index]);
      }
    }
  }

  void JudgeSeats() {
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      Note(role, index, seat, Judge(role, index, seat.pod));
      PlanService(role, index, seat.service);
    });
    for (const PodView* pod : seats_.surplus_pods) Delete(*pod, "no index of the job is its own");
    for (const ServiceView* service : seats_.surplus_services)
      Delete(*service, "no index of the job is its own");
  }

  Fate Judge(const RoleSpec& role, int index, const PodView* pod) {
    RoleStatus& known = StatusOf(role);
    const int attempt = known.AttemptOf(index);
    if (known.completed.Contains(index)) {
      if (pod != nullptr && pod->deletion) Delete(*pod, "");
      return Fate::kCompleted;
    }
    if (pod == nullptr) {
      plan_.actions.push_back(CreatePod{.role = role.slug,
                                        .index = index,
                                        .attempt = attempt,
                                        .why = attempt > 0 ? "it is made again" : "it is missing"});
      return attempt > 0 ? Fate::kRestarts : Fate::kMissing;
    }
    if (!pod->owned) plan_.actions.push_back(AdoptPod{.name = pod->name, .uid = pod->uid});
    if (pod->attempt < attempt) return JudgeStale(role, *pod);
    if (pod->phase == Phase::kFailed && EndedByItself(*pod))
      return JudgeFailed(role, *pod, ClassifyFailure(*pod));
    if (!pod->IsFinished() && IsLost(*pod)) {
      return JudgeFailed(role, *pod, {.cause = FailureCause::kNodeLost});
    }
    if (pod->deletion) {
      Delete(*pod, "");
      return Fate::kLeaves;
    }
    if (pod->main_runs) return Fate::kRuns;
    // Its other containers go on.
    if (pod->main_succeeded && role.restart != RestartPolicy::kAlways) return Fate::kRuns;
    const bool again = pod->restarts > 0 || attempt > 0 || pod->end || pod->main_succeeded;
    return again ? Fate::kRestarts : Fate::kStarts;
  }

  // Its failure is counted and stored; it goes when its wait is over, and stays until then for whoever wants
  // to read its logs.
  Fate JudgeStale(const RoleSpec& role, const PodView& pod) {
    if (pod.phase == Phase::kFailed && !pod.deletion) {
      const absl::Time due =
          FailedAt(pod) + DecideRestart(role.restart, ClassifyFailure(pod), pod.attempt).wait;
      if (now_ < due) {
        WakeAt(due);
        return Fate::kRestarts;
      }
    }
    Delete(pod, "it has failed and is made again");
    return Fate::kRestarts;
  }

  static absl::Time FailedAt(const PodView& pod) { return pod.end ? pod.end->at : pod.since; }

  Fate JudgeFailed(const RoleSpec& role, const PodView& pod, const PodFailure& failure) {
    RoleStatus& known = StatusOf(role);
    const RestartDecision decision = DecideRestart(role.restart, failure, pod.attempt);
    const std::string cause = StrCat(ShortName(role.slug, pod.index), " ", DescribeFailure(pod, failure));
    if (pod.phase == Phase::kFailed) ++known.failed;
    if (decision.verdict == RestartVerdict::kFailJob) {
      return Fail(Reason("Failed"), StrCat(cause, "; not restarted: ", decision.why));
    }
    if (decision.counts && NoRestartIsLeft()) return Fail("BackoffLimitExceeded", PrintLimit(cause));
    known.attempts[pod.index] = pod.attempt + 1;
    known.settled += pod.restarts + (decision.counts ? 1 : 0);
    known.restarts += decision.counts ? 1 : 0;
    known.disruptions += decision.counts ? 0 : 1;
    raised_ = true;
    plan_.restarts.push_back({.role = role.name, .cause = std::string(Print(failure.cause))});
    Blame(known, cause, decision.counts);
    return Fate::kRestarts;
  }

  // The first one is the job's end.
  Fate Fail(std::string reason, std::string message) {
    if (!failure_) {
      failure_reason_ = std::move(reason);
      failure_ = std::move(message);
    }
    return Fate::kRestarts;
  }

  void Blame(RoleStatus& known, const std::string& cause, bool counts) {
    known.last_cause = cause;
    known.last_time = WholeSecond(now_);
    last_cause_ = cause;
    last_counts_ = counts;
  }

  // The kubelet's restarts are known only as numbers of present pods; what they were when a pod went away is
  // kept, so that the sum never falls.
  void CountRestartsOfContainers() {
    for (std::size_t i = 0; i < view_.spec.roles.size(); ++i) {
      const RoleSpec& role = view_.spec.roles[i];
      RoleStatus& known = StatusOf(role);
      std::int64_t present = 0;
      const PodView* last = nullptr;  // that was started again
      for (const Seat& seat : seats_.roles[i]) {
        const PodView* pod = seat.pod;
        if (pod == nullptr || pod->restarts == 0) continue;
        if (pod->attempt < known.AttemptOf(pod->index) || known.completed.Contains(pod->index)) continue;
        present += pod->restarts;
        if (last == nullptr || LastEnd(*last) < LastEnd(*pod)) last = pod;
      }
      const std::int64_t before = known.restarts;
      known.settled = std::max(known.settled, known.restarts - present);
      known.restarts = known.settled + present;
      if (known.restarts == before || last == nullptr) continue;
      const std::string how = last->end ? DescribeFailure(*last, {.cause = FailureCause::kProgram})
                                        : "ended with 0 and was started again";
      Blame(known, StrCat(ShortName(role.slug, last->index), " ", how), true);
      restarted_by_kubelet_ = true;
      plan_.restarts.push_back({.role = role.name, .cause = "Container"});
    }
  }
  static absl::Time LastEnd(const PodView& pod) { return pod.end ? pod.end->at : absl::InfinitePast(); }

  void Note(const RoleSpec& role, int index, const Seat& seat, Fate fate) {
    ++counts_[static_cast<std::size_t>(fate)];
    ++wanted_;
    if (fate == Fate::kCompleted || fate == Fate::kRuns) return;
    if (waiting_role_ != nullptr && fate <= waiting_fate_) {
      ++others_;
      return;
    }
    others_ += waiting_role_ == nullptr ? 0 : 1;
    waiting_fate_ = fate;
    waiting_role_ = &role;
    waiting_for_ = ShortName(role.slug, index);
    waiting_why_ = seat.pod == nullptr ? "" : seat.pod->waits;
  }

  void PlanService(const RoleSpec& role, int index, const ServiceView* service) {
    if (service == nullptr) {
      ++missing_services_;
      plan_.actions.push_back(CreateService{.role = role.slug, .index = index, .why = "it is missing"});
    } else if (service->leaving) {
      ++missing_services_;
    } else if (!service->owned) {
      plan_.actions.push_back(AdoptService{.name = service->name, .uid = service->uid});
    }
  }

  // ---- nodes

  // Unknown is not dead.
  bool IsLost(const PodView& pod) {
    switch (pod.node_health) {
      case NodeHealth::kUnknown:
      case NodeHealth::kReady:
        return false;
      case NodeHealth::kGone:
        return true;
      case NodeHealth::kNotReady:
        break;
    }
    const absl::Time due = pod.node_since.value_or(now_) + view_.node_grace;
    if (now_ >= due) return true;
    WakeAt(due);
    return false;
  }

  void Delete(const PodView& pod, std::string why) {
    if (!pod.owned) return;
    if (!pod.deletion) {
      plan_.actions.push_back(DeletePod{.name = pod.name, .uid = pod.uid, .why = std::move(why)});
      return;
    }
    // Its node would confirm that it has ended; of a lost one nobody would.
    if (!IsLost(pod)) return;
    if (now_ < pod.deletion->due) return WakeAt(pod.deletion->due);
    plan_.actions.push_back(DeletePod{.name = pod.name,
                                      .uid = pod.uid,
                                      .force = true,
                                      .why = StrCat(pod.node, " is lost and cannot say that it has ended")});
  }

  void Delete(const ServiceView& service, std::string why) {
    if (!service.owned || service.leaving) return;
    plan_.actions.push_back(DeleteService{.name = service.name, .uid = service.uid, .why = std::move(why)});
  }

  // ---- what is told

  int Count(Fate fate) const { return counts_[static_cast<std::size_t>(fate)]; }

  void Recount() {
    if (!view_.invalid.empty()) return;  // it has no roles to count by
    for (const RoleSpec& role : view_.spec.roles) StatusOf(role).active = 0;
    int ready = 0;
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      RoleStatus& known = StatusOf(role);
      const bool completed = known.completed.Contains(index);
      ready += completed || (seat.pod != nullptr && seat.pod->main_runs) ? 1 : 0;
      if (seat.pod == nullptr || completed) return;
      known.active += seat.pod->phase == Phase::kRunning ? 1 : 0;
    });
    status().wanted = view_.spec.CountPods();
    status().ready = ready;
  }

  std::string PrintWaitingFor() const {
    std::string text = waiting_for_;
    if (!waiting_why_.empty()) StrAppend(text, " (", waiting_why_, ")");
    if (others_ > 0) StrAppend(text, " and ", others_, others_ == 1 ? " other" : " others");
    return text;
  }

  std::string PrintRestart() const {
    if (!last_counts_) return StrCat(last_cause_, "; it is made again and does not count");
    std::string text = StrCat(last_cause_, "; restart ", plan_.status.CountRestarts());
    if (view_.spec.restart_limit) StrAppend(text, " of ", *view_.spec.restart_limit);
    return text;
  }

  void Describe() {
    if (raised_ || restarted_by_kubelet_) Tell(true, Reason("Restarting"), PrintRestart());
    const bool missing = Count(Fate::kMissing) > 0 || missing_services_ > 0;
    const bool restarting = Count(Fate::kRestarts) > 0 || Count(Fate::kLeaves) > 0;
    const Condition* current = status().Current();
    if (raised_) return Enter(State::kRestarting, PrintRestart());
    if (current == nullptr && (missing || (restarting && !restarted_by_kubelet_))) {
      return DescribeCreation();
    }
    if (missing || restarting) return DescribeRestarting();
    if (restarted_by_kubelet_) {  // it runs again already, but it was so
      status().Set(State::kRestarting, false, Reason("Restarting"), PrintRestart(), now_);
    }
    if (Count(Fate::kStarts) > 0) {
      return Enter(State::kCreated,
                   StrCat("all ", wanted_, " pods and services exist; waiting for ", PrintWaitingFor()));
    }
    const Condition* created = status().Find(State::kCreated);
    if (created != nullptr &&
        created->reason == Reason("Creating")) {  // nobody looked while they did not run yet
      status().Set(State::kCreated, false, Reason("Created"),
                   StrCat("all ", wanted_, " pods and services exist"), now_);
    }
    const int completed = Count(Fate::kCompleted);
    Enter(State::kRunning, completed == 0
                               ? StrCat("all ", wanted_, " pods run")
                               : StrCat(Count(Fate::kRuns), " of ", wanted_, " pods run, ", completed,
                                        completed == 1 ? " has completed" : " have completed"));
  }

  // Not all of it is there yet, for the first time or after it was suspended.
  void DescribeCreation() {
    const int there = wanted_ - Count(Fate::kMissing);
    std::string message = StrCat(there, " of ", wanted_, " pods and ", wanted_ - missing_services_, " of ",
                                 wanted_, " services exist");
    if (!view_.trouble.empty()) StrAppend(message, "; ", view_.trouble);
    status().Set(State::kCreated, false, view_.trouble.empty() ? Reason("Creating") : "FailedCreate",
                 std::move(message), now_);
  }

  void DescribeRestarting() {
    if (!view_.trouble.empty()) return Enter(State::kRestarting, view_.trouble);
    // What it was made again for stays to be read until it runs.
    const Condition* known = status().Find(State::kRestarting);
    const bool told = known != nullptr && known->is_true;
    if (restarted_by_kubelet_) return Enter(State::kRestarting, PrintRestart());
    if (told && Count(Fate::kRestarts) > 0) return;
    if (waiting_fate_ == Fate::kRestarts && !StatusOf(*waiting_role_).last_cause.empty()) {
      return Enter(State::kRestarting, StatusOf(*waiting_role_).last_cause);
    }
    if (waiting_role_ == nullptr) return Enter(State::kRestarting, "services are missing and are made again");
    switch (waiting_fate_) {
      case Fate::kLeaves:
        return Enter(State::kRestarting, StrCat(PrintWaitingFor(), " is being deleted and is made again"));
      case Fate::kMissing:
        return Enter(State::kRestarting, StrCat(PrintWaitingFor(), " is missing and is made"));
      case Fate::kCompleted:
      case Fate::kRuns:
      case Fate::kStarts:
      case Fate::kRestarts:
        return Enter(State::kRestarting, StrCat("waiting for ", PrintWaitingFor()));
    }
  }

  void Enter(State state, std::string message) {
    const Condition* current = status().Current();
    const bool changes = current == nullptr || current->type != state;
    // That pods were made is told by whoever makes them, and restarts with their cause.
    if (changes && state == State::kSuspended) Tell(false, Reason(Print(state)), message);
    status().Set(state, true, Reason(Print(state)), std::move(message), now_);
  }

  void Tell(bool warning, std::string reason, std::string message) {
    plan_.events.push_back({.warning = warning, .reason = std::move(reason), .message = std::move(message)});
  }

  // ---- ends

  // The end is stored first; what it leaves to be done is done under it.
  void Finish(State state, std::string reason, const std::string& message) {
    plan_.actions.clear();
    Recount();
    status().completion_time = WholeSecond(now_);
    if (!status().start_time) status().start_time = WholeSecond(now_);
    Tell(state == State::kFailed, reason, message);
    status().Set(state, true, std::move(reason), message, now_);
    Wake(absl::ZeroDuration());
  }

  void PlanFinished() {
    RecountFinished();
    for (const PodView& pod : view_.pods) {
      const bool goes = view_.spec.clean == CleanPolicy::kAll ||
                        (view_.spec.clean == CleanPolicy::kRunning && !pod.IsFinished());
      if (goes || pod.deletion) Delete(pod, "the job has ended");
    }
    if (view_.spec.clean != CleanPolicy::kNone) {
      for (const ServiceView& service : view_.services) Delete(service, "the job has ended");
    }
    if (!view_.spec.ttl || !status().completion_time) return;
    const absl::Time due = *status().completion_time + *view_.spec.ttl;
    if (now_ < due) return WakeAt(due);
    plan_.actions.clear();
    plan_.actions.push_back(DeleteJob{.why = "ttlSecondsAfterFinished is over"});
  }

  // What has ended stays counted when its pod is gone.
  void RecountFinished() {
    for (auto& [name, role] : status().roles) role.active = 0;
    std::map<std::string, int> failed;
    for (const PodView& pod : view_.pods) {
      const auto spec = std::ranges::find(view_.spec.roles, pod.role, &RoleSpec::slug);
      if (spec == view_.spec.roles.end() || !pod.owned) continue;
      RoleStatus& known = StatusOf(*spec);
      if (pod.phase == Phase::kSucceeded && !pod.deletion) known.completed.Insert(pod.index);
      if (pod.phase == Phase::kFailed && EndedByItself(pod)) ++failed[spec->name];
      if (pod.phase == Phase::kRunning && !known.completed.Contains(pod.index)) ++known.active;
    }
    int ready = 0;
    for (auto& [name, role] : status().roles) {
      role.succeeded = std::max(role.succeeded, role.completed.Count());
      role.failed = std::max(role.failed, failed[name]);
      ready += role.active + role.succeeded;
    }
    status().ready = std::min(ready, status().wanted);
  }

  void PlanSuspended() {
    for (const PodView& pod : view_.pods) Delete(pod, "the job is suspended");
    for (const ServiceView& service : view_.services) Delete(service, "the job is suspended");
    const auto left = std::ranges::count_if(view_.pods, &PodView::owned);
    for (const RoleSpec& role : view_.spec.roles) StatusOf(role).active = 0;
    for (const PodView& pod : view_.pods) {
      const auto spec = std::ranges::find(view_.spec.roles, pod.role, &RoleSpec::slug);
      if (spec == view_.spec.roles.end() || pod.phase != Phase::kRunning) continue;
      ++StatusOf(*spec).active;
    }
    status().wanted = view_.spec.CountPods();
    status().ready = 0;
    Enter(State::kSuspended, left == 0 ? "the job has no pods until spec.suspend is false"
                                       : StrCat("the job is suspended; ", left, " pods are ending"));
  }

  // ---- when to look again

  void Wake(absl::Duration after) {
    plan_.wake_after = plan_.wake_after ? std::min(*plan_.wake_after, after) : after;
  }
  void WakeAt(absl::Time time) { Wake(std::max(time - now_, absl::ZeroDuration())); }

  const JobView& view_;
  const absl::Time now_;
  const Seats seats_;
  JobPlan plan_;
  std::array<int, 6> counts_{};
  int wanted_ = 0;
  int missing_services_ = 0;
  // Whom the job waits for, the worst first.
  const RoleSpec* waiting_role_ = nullptr;
  std::string waiting_for_;
  std::string waiting_why_;
  Fate waiting_fate_ = Fate::kRuns;
  int others_ = 0;
  // Of what happened since the last plan.
  bool raised_ = false;
  bool restarted_by_kubelet_ = false;
  std::string last_cause_;
  bool last_counts_ = true;
  std::string failure_reason_;
  std::optional<std::string> failure_;
};

}  // namespace

JobPlan PlanJob(const JobView& view, absl::Time now) { return Planner(view, now).Plan(); }

}  // namespace trainyard::job
