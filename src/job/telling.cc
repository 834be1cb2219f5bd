#include "job/telling.h"

#include <algorithm>

#include "absl/time/time.h"
#include "base/text.h"

namespace trainyard::job {
namespace {

class PhaseTeller {
 public:
  PhaseTeller(PlanBuilder& builder, const Account& account, std::string_view note)
      : builder_(builder), account_(account), tally_(account.tally), note_(note) {}

  void Tell() {
    TellWhoRestarts();
    if (builder_.raised()) {
      if (account_.blame.cause.empty()) return;  // told by whoever raised it
      const std::string message = PrintRestart(account_.blame);
      builder_.Tell(true, builder_.Reason("Restarting"), message);
      return builder_.Enter(State::kTerminating, message);
    }
    if (!builder_.view().trouble.empty()) {
      return builder_.Enter(Restarts() ? State::kRestarting : State::kPending,
                            StrCat(tally_.PrintExisting(), "; ", builder_.view().trouble));
    }
    if (tally_.Count(Fate::kStale) > 0) return Keep(State::kTerminating);
    if (tally_.wanted() == 0)
      return builder_.Enter(State::kPending, "there is no pod to run: all have 0 replicas");
    if (tally_.waiting_role() == nullptr && tally_.missing_services() == 0) return TellRunning();
    if (Restarts()) return Keep(State::kRestarting);
    if (tally_.Count(Fate::kMissing) + tally_.Count(Fate::kLeaves) > 0 || tally_.missing_services() > 0) {
      return builder_.Enter(State::kPending, PrintPending());
    }
    builder_.Enter(tally_.unscheduled() > 0 ? State::kPending : State::kCreating, PrintPending());
  }

 private:
  JobStatus& status() { return builder_.status(); }
  bool IsIn(State state) {
    const Condition* current = status().Current();
    return current != nullptr && current->type == state;
  }

  // Once it restarts, it does so until all run again.
  bool Restarts() {
    return tally_.CountRestarting() > 0 || IsIn(State::kRestarting) || IsIn(State::kTerminating);
  }

  void TellRunning() {
    if (!status().run_time) status().run_time = WholeSecond(builder_.now());
    builder_.Enter(State::kRunning, StrCat(tally_.PrintRunning(), note_));
  }

  std::string PrintPending() const {
    const int scheduled = tally_.wanted() - tally_.unscheduled();
    if (tally_.waiting_role() == nullptr) return "services are missing and are made";
    const std::string waits = tally_.waiting_fate() == Fate::kStarts
                                  ? StrCat("waiting for ", tally_.PrintWaitingFor())
                                  : tally_.PrintWaiting();
    return StrCat(scheduled, " of ", tally_.wanted(), " pods are scheduled; ", waits);
  }

  // What it restarts for stays to be read until it runs, with what is waited for behind it.
  void Keep(State state) {
    const std::string cause = FindCause();
    std::string waits = tally_.waiting_role() == nullptr ? "services are missing"
                                                         : StrCat("waiting for ", tally_.PrintWaitingFor());
    if (account_.resumes) StrAppend(waits, " until ", PrintClock(*account_.resumes));
    builder_.Enter(state, cause.empty() ? waits : StrCat(cause, "; ", waits));
  }

  std::string FindCause() {
    const RoleSpec* blamed = tally_.waiting_role();
    for (const RoleSpec& role : builder_.view().spec.roles) {
      if (role.name == status().restarting_role) blamed = &role;
    }
    if (blamed == nullptr) return "";
    const std::string cause = builder_.StatusOf(*blamed).last_cause;
    // It was told once with the number of the restart.
    const Condition* told = status().Find(State::kTerminating);
    if (told == nullptr || cause.empty() || !told->message.starts_with(cause)) return cause;
    return told->message.substr(0, told->message.find("; waiting for"));
  }

  void TellWhoRestarts() {
    if (!account_.blame.role.empty()) {
      status().restarting_role = account_.blame.role;
    } else if (tally_.waiting_role() == nullptr) {
      status().restarting_role.clear();
    }
  }

  PlanBuilder& builder_;
  const Account& account_;
  const Tally& tally_;
  const std::string_view note_;
};

constexpr std::string_view kUntil = "; waiting until ";

class StateTeller {
 public:
  StateTeller(PlanBuilder& builder, const Account& account)
      : builder_(builder), account_(account), tally_(account.tally) {}

  void Tell() {
    const bool raised =
        builder_.raised() && !account_.blame.cause.empty();  // else its cause was told already
    const bool happened = raised || account_.restarted_by_kubelet;
    if (happened) builder_.Tell(true, builder_.Reason("Restarting"), PrintRestart(account_.blame));
    const bool missing = tally_.Count(Fate::kMissing) > 0 || tally_.missing_services() > 0;
    const bool restarting = tally_.CountRestarting() > 0 || tally_.Count(Fate::kLeaves) > 0;
    const Condition* current = status().Current();
    if (raised) return builder_.Enter(State::kRestarting, PrintRestart(account_.blame));
    if (builder_.raised()) return;
    if (RunsWithoutAll()) {
      return builder_.Enter(State::kRunning, StrCat(tally_.Count(Fate::kRuns), " of ", tally_.wanted(),
                                                    " pods run; waiting for ", tally_.PrintWaitingFor()));
    }
    if (current == nullptr && (missing || (restarting && !account_.restarted_by_kubelet))) {
      return TellCreation();
    }
    if (missing || restarting) return TellRestarting();
    if (account_.restarted_by_kubelet) {  // it runs again already, but it was so
      status().Set(State::kRestarting, false, builder_.Reason("Restarting"), PrintRestart(account_.blame),
                   builder_.now());
    }
    if (tally_.Count(Fate::kStarts) > 0) {
      return builder_.Enter(State::kCreated,
                            StrCat(PrintAllExist(), "; waiting for ", tally_.PrintWaitingFor()));
    }
    const Condition* created = status().Find(State::kCreated);
    if (created != nullptr && created->reason == builder_.Reason("Creating")) {
      // Nobody looked while they did not run yet.
      status().Set(State::kCreated, false, builder_.Reason("Created"), PrintAllExist(), builder_.now());
    }
    builder_.Enter(State::kRunning, tally_.PrintRunning());
  }

 private:
  JobStatus& status() { return builder_.status(); }

  // Members may join and leave, nothing has failed, and those that run are enough.
  bool RunsWithoutAll() const {
    const JobSpec& spec = builder_.view().spec;
    if (!spec.fault_tolerant || tally_.waiting_role() == nullptr || tally_.CountRestarting() > 0)
      return false;
    for (std::size_t i = 0; i < spec.roles.size(); ++i) {
      const RoleSpec& role = spec.roles[i];
      const bool elastic = role.size == SizePolicy::kAuto || role.size == SizePolicy::kManual;
      const auto there = std::ranges::count_if(
          account_.fates[i], [](Fate fate) { return fate == Fate::kRuns || fate == Fate::kCompleted; });
      if (there < (elastic ? std::max(role.least, 1) : role.replicas)) return false;
    }
    return true;
  }

  std::string PrintAllExist() const {
    return tally_.wanted() == 1 ? "its pod and service exist"
                                : StrCat("all ", tally_.wanted(), " pods and services exist");
  }

  // Not all of it is there yet, for the first time or after it was suspended.
  void TellCreation() {
    const std::string& trouble = builder_.view().trouble;
    std::string message = tally_.PrintExisting();
    if (!trouble.empty()) StrAppend(message, "; ", trouble);
    status().Set(State::kCreated, false, trouble.empty() ? builder_.Reason("Creating") : "FailedCreate",
                 message, builder_.now());
  }

  void TellRestarting() {
    if (!builder_.view().trouble.empty()) return builder_.Enter(State::kRestarting, builder_.view().trouble);
    // What it was made again for stays to be read until it runs.
    const Condition* known = status().Find(State::kRestarting);
    const bool told = known != nullptr && known->is_true;
    std::string why = account_.restarted_by_kubelet ? PrintRestart(account_.blame)
                      : told && tally_.CountRestarting() > 0
                          ? known->message.substr(0, known->message.find(kUntil))
                          : PrintWhyItRestarts();
    if (account_.resumes && *account_.resumes > builder_.now())
      StrAppend(why, kUntil, PrintClock(*account_.resumes));
    builder_.Enter(State::kRestarting, why);
  }

  std::string PrintWhyItRestarts() {
    const RoleSpec* role = tally_.waiting_role();
    if (role == nullptr) return "services are missing and are made again";
    const bool restarts = tally_.waiting_fate() == Fate::kRestarts || tally_.waiting_fate() == Fate::kStale;
    if (restarts && !builder_.StatusOf(*role).last_cause.empty()) return builder_.StatusOf(*role).last_cause;
    return tally_.PrintWaiting();
  }

  PlanBuilder& builder_;
  const Account& account_;
  const Tally& tally_;
};

}  // namespace

std::string PrintClock(absl::Time time) {
  return absl::FormatTime("%H:%M:%S UTC", time + absl::Seconds(1), absl::UTCTimeZone());  // not too early
}

void CountByPhase(PlanBuilder& builder, const Account& account) {
  for (auto& [name, role] : builder.status().roles) {
    role.pending = role.scheduled = role.restarting = role.active = role.succeeded = role.failed = 0;
  }
  int ready = 0;
  const std::vector<RoleSpec>& roles = builder.view().spec.roles;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    RoleStatus& known = builder.StatusOf(roles[i]);
    for (std::size_t index = 0; index < account.fates[i].size(); ++index) {
      const PodView* pod = account.seats.roles[i][index].pod;
      switch (account.fates[i][index]) {
        case Fate::kCompleted:
          ++known.succeeded;
          break;
        case Fate::kGivenUp:
          ++known.failed;
          break;
        case Fate::kRuns:
          ++known.active;
          break;
        case Fate::kRestarts:
        case Fate::kStale:
          ++known.restarting;
          break;
        case Fate::kStarts:
        case Fate::kMissing:
        case Fate::kLeaves:
          ++(pod == nullptr || pod->node.empty() ? known.pending : known.scheduled);
          break;
      }
    }
    ready += known.active + known.succeeded;
  }
  builder.status().wanted = builder.view().spec.CountPods();
  builder.status().ready = ready;
}

void TellPhases(PlanBuilder& builder, const Account& account, std::string_view note) {
  PhaseTeller(builder, account, note).Tell();
}

std::string_view StateName(Telling telling, State state) {
  return telling == Telling::kByPhase && state == State::kSucceeded ? "Succeed" : Print(state);
}

std::optional<State> ParseStateName(Telling telling, std::string_view name) {
  for (const State state : kStates) {
    if (StateName(telling, state) == name) return state;
  }
  return std::nullopt;
}

std::vector<State> StatesOf(Telling telling) {
  using enum State;
  if (telling == Telling::kByState) return {kCreated, kRunning, kRestarting, kSuspended, kSucceeded, kFailed};
  return {kPending,   kCreating, kRunning, kRestarting, kTerminating,
          kSucceeded, kFailed,   kTimeout, kPreempted,  kNodeFail};
}

std::string PrintRestart(const Blame& blame) {
  if (!blame.counts)
    return StrCat(blame.cause,
                  blame.in_place ? "; that does not count" : "; it is made again and does not count");
  std::string text = StrCat(blame.cause, "; restart ", blame.restarts);
  if (blame.limit) StrAppend(text, " of ", *blame.limit);
  return text;
}

void CountByState(PlanBuilder& builder, const Account& account) {
  for (auto& [name, role] : builder.status().roles)
    role.active = 0;  // also those that the spec does not have
  int ready = 0;
  const std::vector<RoleSpec>& roles = builder.view().spec.roles;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    RoleStatus& known = builder.StatusOf(roles[i]);
    for (std::size_t index = 0; index < account.seats.roles[i].size(); ++index) {
      const PodView* pod = account.seats.roles[i][index].pod;
      const bool completed = known.completed.Contains(static_cast<int>(index));
      ready += completed || (pod != nullptr && pod->main_runs) ? 1 : 0;
      known.active += pod != nullptr && !completed && pod->IsActive() ? 1 : 0;
    }
  }
  builder.status().wanted = builder.view().spec.CountPods();
  builder.status().ready = ready;
}

void TellStates(PlanBuilder& builder, const Account& account) { StateTeller(builder, account).Tell(); }

}  // namespace trainyard::job
