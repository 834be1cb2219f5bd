// What is known of a job, as it is stored with it: all that must survive a crash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "job/restart_rules.h"

namespace trainyard::job {

// Sets of indexes of pods, as status fields keep them: "0,2-5".
class IndexSet {
 public:
  IndexSet() = default;
  // Nothing: the text is no such set. An empty text is the empty set.
  static std::optional<IndexSet> Parse(std::string_view text);
  std::string Print() const;

  void Insert(int index);
  // Removes all indexes from `end` on.
  void Truncate(int end);
  bool Contains(int index) const;
  int Count() const;
  bool operator==(const IndexSet&) const = default;

 private:
  std::vector<std::pair<int, int>> ranges_;  // both ends included; in order, and never touching each other
};

// Where a job stands. One is the current state. A TFJob that has not got all its pods yet has none:
//
//                     all exist           all run
//   (none) ──────────▶ Created ─────────▶ Running ──────────┐
//                        │  ▲               │  ▲            │ those that decide have succeeded
//        one failed, was │  │               ▼  │ all run    ├──────────────────────────▶ Succeeded
//        lost or is gone └──┴─────────▶ Restarting ─────────┤
//                                                           └──────────────────────────▶ Failed
//   any but the last two ◀────▶ Suspended                     one failed for good, too many restarts,
//                                                             the deadline, or a spec that is none
//
// An AITrainingJob has phases:
//
//   Pending ──▶ Creating ──▶ Running ──────────────────┐ an end is decided: by a policy, an annotation
//      ▲ not all     │ ▲ not all  │  ▲ all run         │ or the time limit
//      │ have nodes  │ │ run      │  │                 ▼
//      └─────────────┴─┴──────────┤ Restarting ◀──── Terminating ────▶ Succeed, Failed, Timeout,
//                      a restart  │               gone │  ▲    gone    Preempted or NodeFail
//                      is decided └────────────────────┴──┘
enum class State : std::uint8_t {
  kPending,
  kCreating,
  kCreated,
  kRunning,
  kRestarting,
  kTerminating,
  kSuspended,
  kSucceeded,
  kFailed,
  kTimeout,
  kPreempted,
  kNodeFail,
};
inline constexpr std::array kStates = {State::kPending,   State::kCreating,   State::kCreated,
                                       State::kRunning,   State::kRestarting, State::kTerminating,
                                       State::kSuspended, State::kSucceeded,  State::kFailed,
                                       State::kTimeout,   State::kPreempted,  State::kNodeFail};
std::string_view Print(State state);  // "Created", ...
// The job has ended, and nothing follows.
bool IsEnd(State state);

struct Condition {
  State type = State::kCreated;
  bool is_true = false;  // it is the current state
  std::string reason;    // CamelCase
  std::string message;
  absl::Time updated;
  absl::Time changed;  // when is_true changed
  bool operator==(const Condition&) const = default;
};

struct RoleStatus {
  int pending = 0;           // pods without a node, or none yet
  int scheduled = 0;         // pods that have a node and do not run yet
  int restarting = 0;        // pods that are made again and do not run yet
  int active = 0;            // pods that run and have not completed
  int succeeded = 0;         // indexes that have completed
  int failed = 0;            // of a TFJob: pods that have failed since the job began; else indexes given up
  IndexSet completed;        // indexes that need no pod any more
  IndexSet given_up;         // indexes whose pod has failed and is not made again
  bool node_failed = false;  // one of those, because of its node
  std::optional<int> size;   // pods of the role, where that is stored
  // All pods of the role, or of all roles that have it so, are made again: none before the last one of the
  // past is gone. kPod: no such thing is under way.
  RestartScope barrier = RestartScope::kPod;
  std::map<int, absl::Time> stuck;  // indexes whose containers cannot be made, and since when
  // How often the pod of an index was made again. A pod carries the number that it was made under, so that
  // one with a lower number is known to be of the past.
  std::map<int, int> attempts;
  std::int64_t restarts = 0;     // of containers and pods, as far as they count
  std::map<int, int> seen;       // restarts of the containers of an index's present pod that were looked at
  std::int64_t disruptions = 0;  // pods made again through no fault of their own; these do not count
  std::string last_cause;
  std::optional<absl::Time> last_time;
  bool operator==(const RoleStatus&) const = default;

  int AttemptOf(int index) const {
    const auto found = attempts.find(index);
    return found == attempts.end() ? 0 : found->second;
  }
};

// More than any job can have come to; a pod or a status that says so was not written by us.
inline constexpr int kMostAttempts = 1'000'000;
// More than any role can have pods.
inline constexpr int kMostIndex = 1'000'000;

// "0-9:1,12:2": of indexes in a row that have the same number the first and the last stand. Nothing: the text
// is no such map.
std::string PrintAttempts(const std::map<int, int>& attempts);
std::optional<std::map<int, int>> ParseAttempts(std::string_view text);

// How a job ends, while its pods still do.
struct Ending {
  State state = State::kFailed;
  std::string reason;
  std::string message;
  bool operator==(const Ending&) const = default;
};

// An edit of the spec that is not valid. The job goes on under the spec that was valid before it.
struct SpecProblem {
  std::string message;  // the field, its value and what is allowed
  absl::Time since;
  std::string last_valid;  // the spec that the job goes on under, as JSON; empty: it is not known
  bool operator==(const SpecProblem&) const = default;
};

// Who is a member now, as it was last made known.
struct Membership {
  std::int64_t epoch = 0;   // rises on every change; 0: nothing was made known yet
  std::string fingerprint;  // of the members
  bool operator==(const Membership&) const = default;
};

struct JobStatus {
  std::int64_t observed_generation = 0;
  int ready = 0;   // pods that run or have completed
  int wanted = 0;  // of so many
  std::map<std::string, RoleStatus> roles;
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> run_time;  // when all its pods ran for the first time
  std::optional<absl::Time> completion_time;
  std::optional<absl::Time> last_reconcile_time;
  std::optional<Ending> ending;
  std::optional<SpecProblem> spec_problem;
  Membership members;
  // A gang that got only a part of its nodes has given them back so often, and does not try again before.
  int gang_returns = 0;
  std::optional<absl::Time> gang_retry;
  std::string restarting_role;        // whose restart is waited for; empty: none
  std::vector<Condition> conditions;  // at most one of a type; the one that changed last stands last
  // What the job reports about its own work, as JSON; empty: nothing. Its master or launcher writes this, and
  // the operator keeps it.
  std::string progress;
  bool operator==(const JobStatus&) const = default;

  // The current state; null: none.
  const Condition* Current() const;
  const Condition* Find(State type) const;
  bool Is(State type) const;  // the current state
  bool IsFinished() const;
  std::int64_t CountRestarts() const;

  // Makes it the current state, or with is_true false records it without changing the current one. What is
  // so already is not touched. Nothing leaves an end.
  void Set(State type, bool is_true, std::string reason, std::string_view message, absl::Time now);
};

}  // namespace trainyard::job
