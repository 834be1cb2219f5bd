// The rules of leader election on a lease, without threads, clocks or network: time and answers go in, calls
// to make come out.
//
//                      a write of ours was answered
//   [following] ────────────────────────────────────▶ [leading until t] ─┐ renewed: a later t
//        ▲                                                  │    ▲       │
//        │   t came, or another holds it, or it is gone,    │    └───────┘
//        └──────────────── or we give it up ────────────────┘
//
// Why there are never two leaders. Who leads does so until the moment at which it SENT its last answered
// write, and the renew deadline. Who wants to take over waits for the lease's duration, which is longer, from
// the moment at which it GOT the record that it judges by, which was after that write; and it takes over
// with that record's version as precondition, so that a write it has not seen makes it fail. Both moments are
// of one's own steady clock, and no clock is compared with another's: clocks may differ by any time, and in
// speed by as much as duration and deadline do. A call that hangs changes nothing: t comes all the same.
//
// It does not hold against a third party that deletes the lease or writes into its record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "kube/lease.h"

namespace trainyard::kube {

struct ElectionOptions {
  std::string identity;  // of this process alone, and never used again
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
};

// InvalidArgument: the durations are not each longer than the next, or there is no identity.
absl::Status Validate(const ElectionOptions& options);

// What is to be asked of the server.
struct ReadLease {
  bool operator==(const ReadLease&) const = default;
};
struct CreateLease {
  LeaseRecord record;
  bool operator==(const CreateLease&) const = default;
};
struct UpdateLease {
  LeaseRecord record;
  std::string version;  // the precondition
  bool operator==(const UpdateLease&) const = default;
};
using LeaseCall = std::variant<ReadLease, CreateLease, UpdateLease>;

// The record and its version, as a server has them.
struct SeenLease {
  LeaseRecord record;
  std::string version;
};

// Used by one thread at a time. `now` never goes back.
class Election {
 public:
  Election(ElectionOptions options, IdSource random);

  // The call to make now; nothing if one is under way or its time has not come. `wall` is only shown.
  std::optional<LeaseCall> NextCall(SteadyTime now, absl::Time wall);
  // What came of it: the lease as it is after it, or why there is none. An error may mean that it was done.
  void Answered(const absl::StatusOr<SeenLease>& answer, SteadyTime now);
  // When NextCall() is worth asking; Never() while one is under way.
  SteadyTime NextTime() const;

  bool IsLeading(SteadyTime now) const { return now < leading_until_; }
  SteadyTime leading_until() const { return leading_until_; }
  // Counts the times that it began to lead; 0 before the first.
  std::int64_t term() const { return term_; }
  // Who holds the lease as far as is known; empty: nobody.
  const std::string& holder() const;

  // Stops leading, for good; NextCall() returns nothing from now on.
  void Resign(SteadyTime now);
  // After that, the call that gives the lease away, if it is ours as far as is known. To be made once nothing
  // is done as leader any more.
  std::optional<UpdateLease> ReleaseCall(absl::Time wall) const;
  // The lease as it was just read, without a call of NextCall()'s.
  void See(const SeenLease& lease, SteadyTime now);

 private:
  struct Flight {
    SteadyTime sent;
    bool claims = false;  // it makes us leader if it is answered well
  };

  bool IsOurs() const { return seen_ && seen_->record.holder == options_.identity; }
  bool MayTake(SteadyTime now) const;
  LeaseCall Claim(absl::Time wall) const;
  void Lead(SteadyTime sent, SteadyTime now);
  void TryAgain(SteadyTime at, bool read_first);
  absl::Duration Pause();

  const ElectionOptions options_;
  IdSource random_;
  std::optional<SeenLease> seen_;  // null: not read yet, or there is none
  SteadyTime taken_by_others_;     // nobody may have the lease before; unless it is ours or nobody's
  SteadyTime leading_until_;
  std::int64_t term_ = 0;
  std::optional<Flight> flight_;
  SteadyTime next_time_;
  bool read_first_ = true;
  bool resigned_ = false;
};

}  // namespace trainyard::kube
