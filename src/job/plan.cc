#include "job/plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "job/end_policy.h"
#include "job/ending.h"
#include "job/names.h"
#include "job/plan_builder.h"
#include "job/restart_policy.h"
#include "job/seats.h"
#include "job/tally.h"

namespace trainyard::job {
namespace {

class Planner : private PlanBuilder {
 public:
  Planner(const JobView& view, absl::Time now) : PlanBuilder(view, now), seats_(FindSeats(view)) {}

  JobPlan Plan() {
    if (view().leaving) return std::move(plan());  // the garbage collector ends what is ours
    status().observed_generation = view().generation;
    if (status().IsFinished()) {
      PlanFinished(*this);
    } else if (!view().invalid.empty()) {
      Finish(State::kFailed, "InvalidSpec", view().invalid);
    } else {
      PlanLive();
    }
    return std::move(plan());
  }

 private:
  // ---- a job that has not ended

  void PlanLive() {
    if (!status().start_time) status().start_time = WholeSecond(now());
    DropIndexesOfThePast();
    FindCompletions();
    CountRestartsOfContainers();
    if (const auto who = FindSuccess(view().spec, status())) {
      return Finish(State::kSucceeded, Reason("Succeeded"), StrCat(*who, " ended with 0"));
    }
    if (CheckRestartLimit()) return;
    if (view().spec.suspend) return PlanSuspended(*this);
    const Condition* current = status().Current();
    if (current != nullptr && current->type == State::kSuspended) {
      status().start_time = WholeSecond(now());
      status().Set(State::kSuspended, false, Reason("Resumed"), "the job goes on", now());
      Tell(false, Reason("Resumed"), "the job goes on");
    }
    if (CheckDeadline()) return;
    JudgeSeats();
    if (failure_) return Finish(State::kFailed, failure_reason_, *failure_);
    Recount();
    Describe();
    if (raised_) {  // what was raised is stored before anything is done under it
      plan().actions.clear();
      Wake(absl::ZeroDuration());
    }
  }

  void DropIndexesOfThePast() {
    for (const RoleSpec& role : view().spec.roles) {
      RoleStatus& known = StatusOf(role);
      known.completed.Truncate(role.replicas);
      known.attempts.erase(known.attempts.lower_bound(role.replicas), known.attempts.end());
    }
  }

  void FindCompletions() {
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      if (seat.pod == nullptr || !seat.pod->owned || WasDisrupted(*seat.pod)) return;
      // One that was told to go may have ended with 0 for that alone.
      const bool by_itself = !seat.pod->deletion || seat.pod->main_succeeded;
      const bool done = (seat.pod->phase == Phase::kSucceeded && by_itself) ||
                        (seat.pod->main_succeeded && Decides(role, index));
      if (done) StatusOf(role).completed.Insert(index);
    });
    for (const RoleSpec& role : view().spec.roles) {
      StatusOf(role).succeeded = StatusOf(role).completed.Count();
    }
  }

  // Whatever its program made of being told to go.
  static bool WasDisrupted(const PodView& pod) {
    return pod.phase == Phase::kFailed && ClassifyFailure(pod).cause == FailureCause::kDisruption;
  }

  bool CheckDeadline() {
    if (!view().spec.deadline) return false;
    const absl::Time due = *status().start_time + *view().spec.deadline;
    if (now() < due) {
      WakeAt(due);
      return false;
    }
    Finish(State::kFailed, "DeadlineExceeded",
           StrCat("the job was active for longer than activeDeadlineSeconds: ",
                  absl::ToInt64Seconds(*view().spec.deadline)));
    return true;
  }

  bool NoRestartIsLeft() const {
    return view().spec.restart_limit && status().CountRestarts() >= *view().spec.restart_limit;
  }
  std::string PrintLimit(const std::string& cause) const {
    return StrCat(cause, "; no restart is left: backoffLimit is ", *view().spec.restart_limit);
  }

  // The kubelet does not ask before it starts a container again.
  bool CheckRestartLimit() {
    const auto limit = view().spec.restart_limit;
    if (!limit || status().CountRestarts() <= *limit) return false;
    const std::string cause =
        last_cause_.empty() ? StrCat("restarted ", status().CountRestarts(), " times") : last_cause_;
    Finish(State::kFailed, "BackoffLimitExceeded", PrintLimit(cause));
    return true;
  }

  // ---- seats

  template <typename F>
  void ForEachSeat(F&& f) {
    for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
      for (std::size_t index = 0; index < seats_.roles[i].size(); ++index) {
        f(view().spec.roles[i], static_cast<int>(index), seats_.roles[i][index]);
      }
    }
  }

  void JudgeSeats() {
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      tally_.Add(role, index, seat.pod, Judge(role, index, seat.pod));
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
      Do(CreatePod{.role = role.slug,
                   .index = index,
                   .attempt = attempt,
                   .why = attempt > 0 ? "it is made again" : "it is missing"});
      return attempt > 0 ? Fate::kRestarts : Fate::kMissing;
    }
    if (!pod->owned) {  // how it has done is judged when it is ours
      Do(AdoptPod{.name = pod->name, .uid = pod->uid});
      return pod->main_runs ? Fate::kRuns : Fate::kStarts;
    }
    if (pod->attempt < attempt) return JudgeStale(role, *pod);
    if (pod->HasFailed() && EndedByItself(*pod)) return JudgeFailed(role, *pod, ClassifyFailure(*pod));
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
    if (pod.HasFailed() && !pod.deletion) {
      const absl::Time due =
          FailedAt(pod) + DecideRestart(role.restart, ClassifyFailure(pod), pod.attempt).wait;
      if (now() < due) {
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
    if (pod.HasFailed()) ++known.failed;
    if (decision.verdict == RestartVerdict::kFailJob) {
      return Fail(Reason("Failed"), StrCat(cause, "; not restarted: ", decision.why));
    }
    if (decision.counts && NoRestartIsLeft()) return Fail("BackoffLimitExceeded", PrintLimit(cause));
    if (pod.attempt >= kMostAttempts) {
      return Fail("BackoffLimitExceeded", StrCat(cause, "; it was made again too often"));
    }
    known.attempts[pod.index] = pod.attempt + 1;
    known.settled += pod.restarts + (decision.counts ? 1 : 0);
    known.restarts += decision.counts ? 1 : 0;
    known.disruptions += decision.counts ? 0 : 1;
    raised_ = true;
    plan().restarts.push_back({.role = role.name, .cause = std::string(Print(failure.cause))});
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
    known.last_time = WholeSecond(now());
    last_cause_ = cause;
    last_counts_ = counts;
  }

  // The kubelet's restarts are known only as numbers of present pods; what they were when a pod went away is
  // kept, so that the sum never falls.
  void CountRestartsOfContainers() {
    for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
      const RoleSpec& role = view().spec.roles[i];
      RoleStatus& known = StatusOf(role);
      std::int64_t present = 0;
      const PodView* last = nullptr;  // that was started again
      for (const Seat& seat : seats_.roles[i]) {
        const PodView* pod = seat.pod;
        if (pod == nullptr || pod->restarts == 0) continue;
        if (pod->attempt < known.AttemptOf(pod->index)) continue;
        // What a pod does that has completed and was started again does not matter.
        const bool again = known.completed.Contains(pod->index) && pod->phase != Phase::kSucceeded;
        if (again && (WasCompleted(role, pod->index) || !pod->end)) continue;
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
      plan().restarts.push_back({.role = role.name, .cause = "Container"});
    }
  }
  bool WasCompleted(const RoleSpec& role, int index) const {
    const auto before = view().status.roles.find(role.name);
    return before != view().status.roles.end() && before->second.completed.Contains(index);
  }
  static absl::Time LastEnd(const PodView& pod) { return pod.end ? pod.end->at : absl::InfinitePast(); }

  void PlanService(const RoleSpec& role, int index, const ServiceView* service) {
    if (service == nullptr) {
      tally_.AddMissingService();
      Do(CreateService{.role = role.slug, .index = index, .why = "it is missing"});
    } else if (service->leaving) {
      tally_.AddMissingService();
    } else if (!service->owned) {
      Do(AdoptService{.name = service->name, .uid = service->uid});
    }
  }

  // ---- what is told

  void Recount() {
    if (!view().invalid.empty()) return;                        // it has no roles to count by
    for (auto& [name, role] : status().roles) role.active = 0;  // also those that the spec no longer has
    int ready = 0;
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      RoleStatus& known = StatusOf(role);
      const bool completed = known.completed.Contains(index);
      ready += completed || (seat.pod != nullptr && seat.pod->main_runs) ? 1 : 0;
      if (seat.pod == nullptr || completed) return;
      known.active += seat.pod->IsActive() ? 1 : 0;
    });
    status().wanted = view().spec.CountPods();
    status().ready = ready;
  }

  std::string PrintRestart() const {
    if (!last_counts_) return StrCat(last_cause_, "; it is made again and does not count");
    std::string text = StrCat(last_cause_, "; restart ", status().CountRestarts());
    if (view().spec.restart_limit) StrAppend(text, " of ", *view().spec.restart_limit);
    return text;
  }

  void Describe() {
    if (raised_ || restarted_by_kubelet_) Tell(true, Reason("Restarting"), PrintRestart());
    const bool missing = tally_.Count(Fate::kMissing) > 0 || tally_.missing_services() > 0;
    const bool restarting = tally_.Count(Fate::kRestarts) > 0 || tally_.Count(Fate::kLeaves) > 0;
    const Condition* current = status().Current();
    if (raised_) return Enter(State::kRestarting, PrintRestart());
    if (current == nullptr && (missing || (restarting && !restarted_by_kubelet_))) {
      return DescribeCreation();
    }
    if (missing || restarting) return DescribeRestarting();
    if (restarted_by_kubelet_) {  // it runs again already, but it was so
      status().Set(State::kRestarting, false, Reason("Restarting"), PrintRestart(), now());
    }
    if (tally_.Count(Fate::kStarts) > 0) {
      return Enter(State::kCreated, StrCat(PrintAllExist(), "; waiting for ", tally_.PrintWaitingFor()));
    }
    const Condition* created = status().Find(State::kCreated);
    if (created != nullptr &&
        created->reason == Reason("Creating")) {  // nobody looked while they did not run yet
      status().Set(State::kCreated, false, Reason("Created"), PrintAllExist(), now());
    }
    const int completed = tally_.Count(Fate::kCompleted);
    const std::string all =
        tally_.wanted() == 1 ? "its pod runs" : StrCat("all ", tally_.wanted(), " pods run");
    Enter(State::kRunning, completed == 0
                               ? all
                               : StrCat(tally_.Count(Fate::kRuns), " of ", tally_.wanted(), " pods run, ",
                                        completed, completed == 1 ? " has completed" : " have completed"));
  }

  std::string PrintAllExist() const {
    return tally_.wanted() == 1 ? "its pod and service exist"
                                : StrCat("all ", tally_.wanted(), " pods and services exist");
  }

  // Not all of it is there yet, for the first time or after it was suspended.
  void DescribeCreation() {
    const int there = tally_.wanted() - tally_.Count(Fate::kMissing);
    std::string message =
        StrCat(there, " of ", tally_.wanted(), " pods and ", tally_.wanted() - tally_.missing_services(),
               " of ", tally_.wanted(), " services exist");
    if (!view().trouble.empty()) StrAppend(message, "; ", view().trouble);
    status().Set(State::kCreated, false, view().trouble.empty() ? Reason("Creating") : "FailedCreate",
                 message, now());
  }

  void DescribeRestarting() {
    if (!view().trouble.empty()) return Enter(State::kRestarting, view().trouble);
    // What it was made again for stays to be read until it runs.
    const Condition* known = status().Find(State::kRestarting);
    const bool told = known != nullptr && known->is_true;
    if (restarted_by_kubelet_) return Enter(State::kRestarting, PrintRestart());
    if (told && tally_.Count(Fate::kRestarts) > 0) return;
    if (tally_.waiting_fate() == Fate::kRestarts && !StatusOf(*tally_.waiting_role()).last_cause.empty()) {
      return Enter(State::kRestarting, StatusOf(*tally_.waiting_role()).last_cause);
    }
    if (tally_.waiting_role() == nullptr)
      return Enter(State::kRestarting, "services are missing and are made again");
    const std::string_view are = tally_.others() > 0 ? " are" : " is";
    switch (tally_.waiting_fate()) {
      case Fate::kLeaves:
        return Enter(State::kRestarting,
                     StrCat(tally_.PrintWaitingFor(), are, " being deleted and", are, " made again"));
      case Fate::kMissing:
        return Enter(State::kRestarting, StrCat(tally_.PrintWaitingFor(), are, " missing and", are, " made"));
      case Fate::kCompleted:
      case Fate::kRuns:
      case Fate::kStarts:
      case Fate::kRestarts:
        return Enter(State::kRestarting, StrCat("waiting for ", tally_.PrintWaitingFor()));
    }
  }

  // ---- ends

  // The end is stored first; what it leaves to be done is done under it.
  void Finish(State state, std::string reason, const std::string& message) {
    plan().actions.clear();
    Recount();
    status().completion_time = WholeSecond(now());
    if (!status().start_time) status().start_time = WholeSecond(now());
    Tell(state == State::kFailed, reason, message);
    status().Set(state, true, std::move(reason), message, now());
    Wake(absl::ZeroDuration());
  }

  const Seats seats_;
  Tally tally_;
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
