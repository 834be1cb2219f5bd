#include "absl/time/time.h"
#include "base/text.h"
#include "job/telling.h"

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

}  // namespace trainyard::job
