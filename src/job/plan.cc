#include "job/plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/text.h"
#include "job/end_policy.h"
#include "job/gang.h"
#include "job/members.h"
#include "job/names.h"
#include "job/plan_builder.h"
#include "job/restart_policy.h"
#include "job/seat_judge.h"
#include "job/seats.h"
#include "job/size.h"
#include "job/telling.h"

namespace trainyard::job {
namespace {

class Planner : private PlanBuilder {
 public:
  // `wanted` is the spec as it was written; the view's has the sizes that are stored.
  Planner(const JobView& view, const JobSpec& wanted, absl::Time now)
      : PlanBuilder(view, now), wanted_(wanted) {
    account_.seats = FindSeats(view);
  }

  JobPlan Plan() {
    if (view().leaving) return Build();  // the garbage collector ends what is ours
    status().observed_generation = view().generation;
    if (status().IsFinished()) {
      PlanFinished(*this);
    } else if (status().ending) {
      PlanEnding(*this);
    } else if (view().invalid.empty()) {
      PlanLive();
    } else if (status().start_time) {
      // Its valid spec is not known any more: its pods are left as they are until the edit is corrected.
      NoteEdit(view().invalid);
    } else {
      Finish(State::kFailed, "InvalidSpec", view().invalid);
    }
    return Build();
  }

 private:
  // ---- a job that has not ended

  void PlanLive() {
    if (!status().start_time) status().start_time = WholeSecond(now());
    if (view().spec.asked) return FinishAsAsked(*view().spec.asked);
    NoteEdit(view().edit_problem);
    DecideSizes();
    DropIndexesOfThePast();
    if (raised()) return;  // who belongs to it now is looked at again
    FindCompletions();
    CountRestartsOfContainers();
    const JobVerdict reached = JudgeJob(view().spec, status());
    if (reached.verdict == Verdict::kSucceeded) {
      return Finish(State::kSucceeded, Reason(NameOf(State::kSucceeded)), reached.why);
    }
    if (CheckRestartLimit()) return;
    if (view().spec.suspend) return PlanSuspended(*this);
    const Condition* current = status().Current();
    if (current != nullptr && current->type == State::kSuspended) {
      status().start_time = WholeSecond(now());
      status().Set(State::kSuspended, false, Reason("Resumed"), "the job goes on", now());
      Tell(false, Reason("Resumed"), "the job goes on");
    }
    if (CheckDeadline() || CheckTimeLimit()) return;
    PlanConfig();
    judge_.JudgeAll();
    if (CheckFailure()) return;
    const std::string gang = PlanGang(*this);
    if (!account_.failure.message.empty()) Tell(true, Reason("PodFailed"), account_.failure.message);
    Recount();
    if (!gang.empty()) {
      TellWaiting(gang);
    } else if (view().spec.telling == Telling::kByPhase) {
      TellPhases(*this, account_, ignored_);
      PlanMembers();
    } else {
      TellStates(*this, account_);
    }
  }

  // ---- edits

  // The spec that the job goes on under is stored before anything is done under it: an operator that starts
  // later would not know it.
  void NoteEdit(const std::string& problem) {
    std::optional<SpecProblem>& known = status().spec_problem;
    if (problem.empty()) {
      if (known) Tell(false, Reason("SpecCorrected"), "the spec is valid again");
      known.reset();
      return;
    }
    const std::string message =
        StrCat(problem, view().invalid.empty()
                            ? "; the job continues with its last valid spec"
                            : "; the last valid spec is not known, so the job's pods are left as they are");
    if (known && known->message == message) return;
    known = SpecProblem{.message = message, .since = WholeSecond(now()), .last_valid = view().last_valid};
    Tell(true, "SpecInvalid", message);
    MarkRaised();
  }

  // ---- sizes

  void DecideSizes() {
    if (!view().spec.sized) return;
    for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
      const RoleSpec& role = view().spec.roles[i];
      RoleStatus& known = StatusOf(role);
      const auto target = view().targets.find(role.name);
      const SizeDecision decision =
          DecideSize(wanted_.roles[i], known.size,
                     target == view().targets.end() ? std::nullopt : std::optional(target->second));
      if (!known.size) {
        known.size = role.replicas;  // by which its first pods are made
      } else if (*known.size != decision.size) {
        Resize(role, known, decision.size);
      }
      StrAppend(ignored_, decision.ignored.empty() ? "" : "; ", decision.ignored);
    }
  }

  void Resize(const RoleSpec& role, RoleStatus& known, int size) {
    const std::string change = StrCat(role.slug, " goes from ", *known.size, " to ", size, " pods");
    known.size = size;
    MarkRaised();
    if (view().spec.fault_tolerant) return Tell(false, Reason("Scaling"), change);
    // Those that know of the others only what they were told when they were made are all made again.
    judge_.RaiseRole(role, RestartScope::kRole);
    known.last_cause = change;
    known.last_time = WholeSecond(now());
    status().restarting_role = role.name;
    const std::string message = StrCat(change, "; all of them are made again");
    Tell(false, Reason("Scaling"), message);
    Enter(State::kTerminating, message);
  }

  void DropIndexesOfThePast() {
    for (const RoleSpec& role : view().spec.roles) {
      RoleStatus& known = StatusOf(role);
      const int replicas = known.size.value_or(role.replicas);
      known.completed.Truncate(replicas);
      known.given_up.Truncate(replicas);
      known.attempts.erase(known.attempts.lower_bound(replicas), known.attempts.end());
      known.stuck.erase(known.stuck.lower_bound(replicas), known.stuck.end());
      known.seen.erase(known.seen.lower_bound(replicas), known.seen.end());
    }
  }

  // ---- ends

  void FinishAsAsked(const AskedEnd& asked) {
    const std::string what = StrCat("the annotation ", Print(asked.state), " was set");
    Finish(asked.state, Reason(NameOf(asked.state)),
           asked.message.empty() ? what : StrCat(what, ": ", asked.message));
  }

  void FindCompletions() {
    ForEachSeat([&](const RoleSpec& role, int index, const Seat& seat) {
      if (seat.pod == nullptr || !seat.pod->owned || WasDisrupted(*seat.pod)) return;
      RoleStatus& known = StatusOf(role);
      // What has been done before all begin anew is done again.
      if (known.barrier != RestartScope::kPod && seat.pod->attempt < known.AttemptOf(index)) return;
      // One that was told to go may have ended with 0 for that alone.
      const bool by_itself = !seat.pod->deletion || seat.pod->main_succeeded;
      const bool done = (seat.pod->phase == Phase::kSucceeded && by_itself) ||
                        (seat.pod->main_succeeded && (role.main_alone || Decides(role, index)));
      if (done && !known.given_up.Contains(index)) known.completed.Insert(index);
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

  bool CheckTimeLimit() {
    if (!view().spec.time_limit || !status().run_time) return false;
    const absl::Time due = *status().run_time + *view().spec.time_limit;
    if (now() < due) {
      WakeAt(due);
      return false;
    }
    Finish(State::kTimeout, Reason(NameOf(State::kTimeout)),
           StrCat("the job ran for longer than timeLimit: ", absl::ToInt64Seconds(*view().spec.time_limit)));
    return true;
  }

  // Those that have failed for good may be what the job fails by, or all that was waited for.
  bool CheckFailure() {
    const JobVerdict verdict = JudgeJob(view().spec, status());
    switch (verdict.verdict) {
      case Verdict::kOpen:
        return false;
      case Verdict::kSucceeded:
        Finish(State::kSucceeded, Reason(NameOf(State::kSucceeded)), verdict.why);
        return true;
      case Verdict::kFailed:
        break;
    }
    const bool phases = view().spec.telling == Telling::kByPhase;
    const State state = phases && verdict.node ? State::kNodeFail : State::kFailed;
    std::string message = account_.failure.message;
    if (phases) StrAppend(message, message.empty() ? "" : "; ", verdict.why);
    Finish(state, account_.failure.reason.empty() ? Reason(NameOf(state)) : account_.failure.reason, message);
    return true;
  }

  void Finish(State state, std::string reason, const std::string& message) {
    Recount();
    if (!status().start_time) status().start_time = WholeSecond(now());
    Conclude(*this, {.state = state, .reason = std::move(reason), .message = message});
  }

  std::string_view NameOf(State state) const { return StateName(view().spec.telling, state); }

  // ---- limits

  std::string PrintLimit(const std::string& cause) const {
    return StrCat(cause, "; no restart is left: backoffLimit is ", *view().spec.restart_limit);
  }

  // The kubelet does not ask before it starts a container again.
  bool CheckRestartLimit() {
    const auto limit = view().spec.restart_limit;
    if (!limit || status().CountRestarts() <= *limit) return false;
    const std::string cause = account_.blame.cause.empty()
                                  ? StrCat("restarted ", status().CountRestarts(), " times")
                                  : account_.blame.cause;
    Finish(State::kFailed, "BackoffLimitExceeded", PrintLimit(cause));
    return true;
  }

  // ---- seats

  template <typename F>
  void ForEachSeat(F&& f) {
    for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
      for (std::size_t index = 0; index < account_.seats.roles[i].size(); ++index) {
        f(view().spec.roles[i], static_cast<int>(index), account_.seats.roles[i][index]);
      }
    }
  }

  // The kubelet's restarts are known only as numbers of present pods; how many of them were looked at is
  // kept, so that each counts once. A restart after an end with 0 does not count: nothing has failed.
  void CountRestartsOfContainers() {
    for (std::size_t i = 0; i < view().spec.roles.size(); ++i) {
      const RoleSpec& role = view().spec.roles[i];
      RoleStatus& known = StatusOf(role);
      const PodView* last = nullptr;  // that was started again
      for (std::size_t index = 0; index < account_.seats.roles[i].size(); ++index) {
        const PodView* pod = account_.seats.roles[i][index].pod;
        const int place = static_cast<int>(index);
        if (pod == nullptr || pod->restarts == 0 || pod->attempt < known.AttemptOf(place)) {
          known.seen.erase(place);
          continue;
        }
        // What a pod does that has completed and was started again does not matter.
        const bool again = known.completed.Contains(place) && pod->phase != Phase::kSucceeded;
        if (again && (WasCompleted(role, place) || !pod->end)) continue;
        const int restarts = static_cast<int>(std::min<std::int64_t>(pod->restarts, kMostAttempts));
        const int before = std::exchange(known.seen[place], restarts);
        const int news = restarts < before ? restarts : restarts - before;  // fewer: it is another pod
        if (news == 0) continue;
        if (!pod->restarted_after_success) known.restarts += news;
        if (last == nullptr || LastEnd(*last) < LastEnd(*pod)) last = pod;
      }
      if (last != nullptr) TellRestartOfContainer(role, *last);
    }
  }
  void TellRestartOfContainer(const RoleSpec& role, const PodView& pod) {
    const std::string how = pod.end && !pod.restarted_after_success
                                ? DescribeFailure(pod, {.cause = FailureCause::kProgram})
                                : "ended with 0 and was started again";
    judge_.Blame(role, StrCat(ShortName(role.slug, pod.index), " ", how), !pod.restarted_after_success);
    account_.blame.in_place = true;
    account_.restarted_by_kubelet = true;
    NoteRestart({.role = role.name, .cause = "Container"});
  }
  bool WasCompleted(const RoleSpec& role, int index) const {
    const auto before = view().status.roles.find(role.name);
    return before != view().status.roles.end() && before->second.completed.Contains(index);
  }
  static absl::Time LastEnd(const PodView& pod) { return pod.end ? pod.end->at : absl::InfinitePast(); }

  // ---- what is told

  void Recount() {
    if (!view().invalid.empty()) return;  // it has no roles to count by
    if (view().spec.telling == Telling::kByState) return CountByState(*this, account_);
    if (!account_.fates.empty()) CountByPhase(*this, account_);
  }

  // Of a job whose gang has no pods for now.
  void TellWaiting(const std::string& why) {
    const bool restarts = status().run_time || status().Find(State::kRunning) != nullptr;
    if (restarts) return Enter(State::kRestarting, why);
    if (view().spec.telling == Telling::kByPhase) return Enter(State::kPending, why);
    status().Set(State::kCreated, false, Reason("Creating"), why, now());
  }

  // Pods mount it, so it is there before any of them is made.
  void PlanConfig() {
    const std::optional<ConfigMapView>& config = view().config;
    if (view().wanted_config.empty()) return;
    if (config && !config->leaving && config->text == view().wanted_config) return;
    HoldCreates();
    if (!config || !config->leaving) Do(WriteConfig{.version = config ? config->version : ""});
  }

  // The members are made known under an epoch that is stored first, so that no epoch ever means two things.
  void PlanMembers() {
    if (!view().spec.fault_tolerant || raised()) return;
    const std::string members = PrintMembers(view(), account_);
    const std::string fingerprint = Fingerprint(members);
    if (status().members.epoch == 0 || status().members.fingerprint != fingerprint) {
      status().members = {.epoch = status().members.epoch + 1, .fingerprint = fingerprint};
      return Wake(absl::ZeroDuration());
    }
    const std::string text = PrintMembersFile(status().members.epoch, members);
    if (!view().members) {
      Do(WriteMembers{.epoch = status().members.epoch, .text = text});
    } else if (!view().members->leaving && view().members->text != text) {
      Do(WriteMembers{.epoch = status().members.epoch, .text = text, .version = view().members->version});
    }
  }

  const JobSpec& wanted_;
  Account account_;
  SeatJudge judge_{*this, account_};
  std::string ignored_;  // what the spec says of sizes and is not so
};

}  // namespace

const std::vector<Action>& JobPlan::actions() const {
  static const auto* const none = new std::vector<Action>;
  const Act* const act = std::get_if<Act>(&decision);
  return act == nullptr ? *none : act->actions;
}

JobPlan PlanJob(const JobView& view, absl::Time now) {
  if (!view.spec.sized || HasStoredSizes(view)) return Planner(view, view.spec, now).Plan();
  const JobView sized = WithStoredSizes(view);
  return Planner(sized, view.spec, now).Plan();
}

}  // namespace trainyard::job
