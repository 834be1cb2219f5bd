#include "kube/election.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::kube {

absl::Status Validate(const ElectionOptions& options) {
  if (options.identity.empty()) return absl::InvalidArgumentError("leader election needs an identity");
  if (options.lease_duration > options.renew_deadline && options.renew_deadline > options.retry_period &&
      options.retry_period > absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("leader election: the lease duration (", absl::FormatDuration(options.lease_duration),
             ") must be longer than the renew deadline (", absl::FormatDuration(options.renew_deadline),
             "), and that longer than the retry period (", absl::FormatDuration(options.retry_period), ")"));
}

Election::Election(ElectionOptions options, IdSource random)
    : options_(std::move(options)), random_(std::move(random)) {
  TY_CHECK(Validate(options_).ok(), "election options are validated before they are used");
}

// ---- calls

std::optional<LeaseCall> Election::NextCall(SteadyTime now, absl::Time wall) {
  if (resigned_ || flight_ || now < next_time_) return std::nullopt;
  if (read_first_) {
    flight_ = Flight{.sent = now};
    return ReadLease{};
  }
  if (!MayTake(now)) {
    TryAgain(now + Pause(), /*read_first=*/true);
    return std::nullopt;
  }
  flight_ = Flight{.sent = now, .claims = true};
  return Claim(wall);
}

bool Election::MayTake(SteadyTime now) const {
  if (IsOurs() || (seen_ && seen_->record.holder.empty())) return true;
  return now >= taken_by_others_;
}

LeaseCall Election::Claim(absl::Time wall) const {
  LeaseRecord record{
      .holder = options_.identity, .duration = options_.lease_duration, .acquired = wall, .renewed = wall};
  if (!seen_) return CreateLease{record};
  record.transitions = seen_->record.transitions;
  if (IsOurs()) {
    record.acquired = seen_->record.acquired;
  } else {
    ++record.transitions;
  }
  return UpdateLease{.record = record, .version = seen_->version};
}

SteadyTime Election::NextTime() const { return resigned_ || flight_ ? SteadyTime::Never() : next_time_; }

// ---- answers

void Election::Answered(const absl::StatusOr<SeenLease>& answer, SteadyTime now) {
  TY_CHECK(flight_.has_value(), "an answer without a call");
  const Flight flight = *std::exchange(flight_, std::nullopt);
  if (answer.ok()) {
    See(*answer, now);
    if (flight.claims && IsOurs()) {
      Lead(flight.sent, now);
    } else {
      TryAgain(now, /*read_first=*/false);
    }
    return;
  }
  const bool creates = flight.claims && !seen_;  // and then it is the namespace that is not there
  if (kube::IsNotFound(answer.status()) && !creates) {
    // Whoever has not seen it may make it anew at once. We may too, unless another's time still runs.
    const bool was_read = !flight.claims;
    seen_.reset();
    leading_until_ = SteadyTime();
    TryAgain(now, /*read_first=*/!was_read);
    return;
  }
  const bool lost_race = kube::IsConflict(answer.status()) || kube::IsAlreadyExists(answer.status());
  TryAgain(lost_race ? now : now + Pause(), /*read_first=*/true);
}

void Election::See(const SeenLease& lease, SteadyTime now) {
  const bool is_new = !seen_ || seen_->version != lease.version;
  seen_ = lease;
  if (IsOurs() || lease.record.holder.empty()) {
    taken_by_others_ = SteadyTime();
  } else if (is_new) {
    taken_by_others_ = now + std::max(lease.record.duration, options_.lease_duration);
  }
  if (!IsOurs()) leading_until_ = SteadyTime();
}

void Election::Lead(SteadyTime sent, SteadyTime now) {
  const SteadyTime until = sent + options_.renew_deadline;
  if (!resigned_ && now < until) {
    if (!IsLeading(now)) ++term_;
    leading_until_ = until;
  }
  TryAgain(sent + options_.retry_period, /*read_first=*/false);
}

void Election::TryAgain(SteadyTime at, bool read_first) {
  next_time_ = at;
  read_first_ = read_first;
}

// Candidates that lost a race come back at different times.
absl::Duration Election::Pause() {
  constexpr std::uint64_t kSteps = 1000;
  return options_.retry_period * (1 + static_cast<double>(random_.Below(kSteps)) / (2 * kSteps));
}

const std::string& Election::holder() const {
  static const std::string nobody;
  return seen_ ? seen_->record.holder : nobody;
}

// ---- the end

void Election::Resign(SteadyTime now) {
  resigned_ = true;
  leading_until_ = std::min(leading_until_, now);
}

std::optional<UpdateLease> Election::ReleaseCall(absl::Time wall) const {
  if (!resigned_ || !IsOurs()) return std::nullopt;
  LeaseRecord record = seen_->record;
  record.holder.clear();
  record.duration = absl::Seconds(1);
  record.renewed = wall;
  return UpdateLease{.record = record, .version = seen_->version};
}

}  // namespace trainyard::kube
