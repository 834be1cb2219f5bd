#include "reconcile/pacing.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>

namespace trainyard::reconcile {
namespace {

// Double checks that are recorded in a job's status, per second.
constexpr double kMostRecords = 5;
// How often the progress of a job is stored at most, or the pods of a large job would be a write each.
constexpr absl::Duration kProgressPeriod = absl::Seconds(1);
// While objects of other jobs are created, which comes first, even that a job has begun or runs may wait this
// long.
constexpr absl::Duration kBusyPeriod = absl::Seconds(2);
constexpr absl::Duration kBusyPause = absl::Milliseconds(50);  // until it is asked again

// A thousand jobs that were created at once are not all checked at once.
absl::Duration Spread(const kube::ObjectKey& job, absl::Duration period) {
  return period * (0.8 + 0.2 * static_cast<double>(std::hash<std::string>()(job.Str()) % 1000) / 1000);
}

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

absl::Duration Pacing::Hold(const kube::ObjectKey& job, Urgency urgency, absl::Time now) {
  if (urgency == Urgency::kNow) return absl::ZeroDuration();
  MutexLock lock(mu_);
  const bool busy = creating_ > 0;
  if (urgency == Urgency::kGoodNews && !busy) return absl::ZeroDuration();
  const auto round = rounds_.try_emplace(job, Round{.stored = now}).first;
  const absl::Duration left = round->second.stored + (busy ? kBusyPeriod : kProgressPeriod) - now;
  return busy ? std::min(left, kBusyPause) : left;
}

void Pacing::NoteStored(const kube::ObjectKey& job, absl::Time now) {
  MutexLock lock(mu_);
  rounds_[job].stored = now;
}

void Pacing::BeginCreating() {
  MutexLock lock(mu_);
  ++creating_;
}

void Pacing::EndCreating() {
  MutexLock lock(mu_);
  --creating_;
}

bool Pacing::TakeRecord(const kube::ObjectKey& job, absl::Time now) {
  MutexLock lock(mu_);
  const auto round = rounds_.find(job);
  if (round == rounds_.end() || now < round->second.due) return false;
  records_ = std::min(records_ + absl::ToDoubleSeconds(now - recorded_) * kMostRecords, kMostRecords);
  recorded_ = now;
  if (records_ < 1) return false;
  records_ -= 1;
  return true;
}

absl::Duration Pacing::NextRound(const kube::ObjectKey& job, absl::Time now, bool changed) {
  MutexLock lock(mu_);
  Round& round = rounds_[job];
  if (changed || round.period == absl::ZeroDuration()) {
    round.period = options_.first_period;
    round.due = now + Spread(job, round.period);
  } else if (now >= round.due) {
    round.period = std::min(round.period * 2, options_.longest_period);
    round.due = now + Spread(job, round.period);
  }
  return round.due - now;
}

void Pacing::Forget(const kube::ObjectKey& job) {
  MutexLock lock(mu_);
  rounds_.erase(job);
}

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
