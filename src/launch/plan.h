// What is to be done for a task now. Pure: what is stored and seen goes in, what is to be done and to be
// stored comes out.
//
//   Pending ──all agents answer──▶ Starting ──all run──▶ Running ──all that matter exited 0──▶ Succeeded
//      ▲                                                   │
//      │      attempt + 1: stop all, configure, run        │ a member is lost or fails
//      └───────────── Restarting ◀────────────────────────┤
//                                                          └── too often ──▶ Failed
//   any ── cancel ──▶ Cancelling ──nothing runs──▶ Cancelled
//
// The task's pods are those of its AITrainingJob: the operator creates, replaces and ends them. What is
// decided here is which script runs in which of them.
//
// What must survive is stored before it is acted on: a plan either changes attempts, the pods that members
// are in or who is present (`store` says so), or acts under those that are stored, never both. An agent runs
// a script once for each attempt, so that acting twice is harmless.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "kube/pod.h"
#include "launch/task.h"

namespace trainyard::launch {

enum class AgentState : std::uint8_t { kIdle, kConfigured, kRunning, kStopping, kExited, kFailed };

// What a pod's agent said last.
struct SeenAgent {
  AgentState state = AgentState::kIdle;
  int attempt = 0;
  std::optional<int> exit_code;
  std::string reason;                      // "exited 3"
  std::optional<absl::Time> ended;         // when it did
  std::optional<absl::Time> silent_since;  // it does not answer
  bool operator==(const SeenAgent&) const = default;
};

struct SeenMember {
  std::shared_ptr<const kube::CompactPod> pod;  // null: it has none
  std::optional<SeenAgent> agent;               // none: it has not answered yet
  std::optional<absl::Time> asked_since;        // then: since when it is asked
};

// What the task's AITrainingJob says.
struct SeenJob {
  bool taken_up = false;   // by an operator
  bool asked = false;      // its annotation asks for its failure
  bool ends = false;       // it has ended, or its pods are being ended
  bool over = false;       // it has ended
  bool succeeded = false;  // well
  std::string message;     // how it stands, or why it ends
  int workers = 0;         // the size of that group
  bool operator==(const SeenJob&) const = default;
};

struct TaskView {
  TaskSpec spec;
  Progress status;
  absl::Time created;
  bool cancel = false;  // a user wants it to end
  SeenJob job;
  std::map<MemberId, SeenMember> members;
};

// Where others find a member. With parameter servers one that is lost comes back alone, and the others must
// find it under the name that they know, which is that of its service; where all begin again, addresses are
// as good and need no lookup.
std::string HostOf(const TaskSpec& spec, const MemberId& member, const std::string& ip);

struct Configure {
  MemberId member;
  int attempt = 0;
  std::map<std::string, std::string> env;
  bool operator==(const Configure&) const = default;
};
struct Run {
  MemberId member;
  int attempt = 0;
  bool operator==(const Run&) const = default;
};
struct Stop {
  MemberId member;
  int attempt = 0;
  bool operator==(const Stop&) const = default;
};
// Its agent ends, and its pod with it: with 0 if the task has succeeded, else as its script did.
struct End {
  MemberId member;
  bool succeeded = false;
  bool operator==(const End&) const = default;
};
// Asks for another pod: the agent of this one does not answer, which the operator cannot know.
struct Replace {
  MemberId member;
  bool operator==(const Replace&) const = default;
};
// The size of the group of workers.
struct Resize {
  int workers = 0;
  bool operator==(const Resize&) const = default;
};
// Ends the job as failed.
struct Fail {
  std::string why;
  bool operator==(const Fail&) const = default;
};
using Action = std::variant<Configure, Run, Stop, End, Replace, Resize, Fail>;
std::string Print(const Action& action);  // "run worker-1 (2)"

struct TaskPlan {
  Progress status;
  bool store = false;  // the status must be stored before anything is done; there are no actions then
  std::vector<Action> actions;
  absl::Duration wake_after = absl::InfiniteDuration();
};

// Total: every view has a plan.
TaskPlan PlanTask(const TaskView& view, absl::Time now);

// When one script fails others often fail because of it, a moment later: so long the first is waited for,
// should it have been heard of last.
inline constexpr absl::Duration kGather = absl::Milliseconds(30);

// How long members of an elastic task that find no room are waited for.
inline constexpr absl::Duration kRoomPatience = absl::Seconds(3);

// A job that no operator has taken up for so long has none.
inline constexpr absl::Duration kOperatorPatience = absl::Seconds(5);

}  // namespace trainyard::launch
