#include "reconcile/urgency.h"

#include <algorithm>
#include <initializer_list>

namespace trainyard::reconcile {
namespace {

// Whether something happened that must not be lost: a restart, a completion, an end.
bool IsToBeKept(const job::JobStatus& before, const job::JobStatus& after) {
  if (before.completion_time != after.completion_time) return true;
  for (const auto& [name, role] : after.roles) {
    static const job::RoleStatus kNone;
    const auto found = before.roles.find(name);
    const job::RoleStatus& known = found == before.roles.end() ? kNone : found->second;
    if (known.attempts != role.attempts || known.restarts != role.restarts ||
        known.completed != role.completed || known.given_up != role.given_up || known.size != role.size ||
        known.barrier != role.barrier) {
      return true;
    }
  }
  return before.ending != after.ending || before.spec_problem != after.spec_problem ||
         before.run_time != after.run_time || before.members != after.members;
}

bool IsOneOf(const job::Condition* state, std::initializer_list<job::State> states) {
  return state == nullptr || std::ranges::find(states, state->type) != states.end();
}

}  // namespace

Urgency UrgencyOf(const job::JobStatus& before, const job::JobStatus& after) {
  if (IsToBeKept(before, after)) return Urgency::kNow;
  const job::Condition* state = before.Current();
  const job::Condition* next = after.Current();
  using enum job::State;
  const bool well = IsOneOf(state, {kCreated, kPending, kCreating}) &&
                    IsOneOf(next, {kCreated, kPending, kCreating, kRunning});
  if (!before.start_time) return well ? Urgency::kGoodNews : Urgency::kNow;
  if (before.start_time != after.start_time || before.observed_generation != after.observed_generation ||
      before.roles.size() != after.roles.size()) {
    return Urgency::kNow;
  }
  if (state != nullptr && next != nullptr && state->type == next->type) return Urgency::kProgress;
  if (!well || (state != nullptr && next == nullptr)) return Urgency::kNow;
  // That all is made is soon followed by that all runs.
  return next != nullptr && next->type == job::State::kRunning ? Urgency::kGoodNews : Urgency::kProgress;
}

}  // namespace trainyard::reconcile
