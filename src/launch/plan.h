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
// What must survive is stored before it is acted on: a plan either changes attempts, launches or who is
// present (`store` says so), or acts under those that are stored, never both. An agent runs a script once for
// each attempt, so that acting twice is harmless.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "launch/environment.h"
#include "launch/task.h"

namespace trainyard::launch {

// A member's pod, as the API server has it.
struct SeenPod {
  std::string name;
  std::string uid;
  int launch = 0;
  std::string ip;
  std::string node;
  bool running = false;
  bool ended = false;       // or is gone, or on its way out
  std::string cause;        // how: "was killed by signal 9 (SIGKILL) on node-1"
  bool deleting = false;    // it is on its way out
  std::string unscheduled;  // why no node has it yet
  std::string waiting;      // why its container does not begin: "ImagePullBackOff: ..."
  bool operator==(const SeenPod&) const = default;
};

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
  std::optional<SeenPod> pod;             // the one of the member's present launch; none: it is not there
  std::optional<SeenAgent> agent;         // none: it has not answered yet
  std::optional<absl::Time> asked_since;  // then: since when it is asked
  bool operator==(const SeenMember&) const = default;
};

struct TaskView {
  TaskSpec spec;
  TaskStatus status;
  std::map<MemberId, SeenMember> members;
  std::vector<SeenPod> old_pods;  // that live, of launches before the present ones
};

// Where others find a member. With parameter servers one that is lost comes back alone, and the others must
// find it under the name that they know; where all begin anew, addresses are as good and need nobody to look
// them up.
std::string HostOf(const TaskSpec& spec, const MemberId& member, const std::string& ip);

struct CreatePod {
  MemberId member;
  int launch = 0;
  bool operator==(const CreatePod&) const = default;
};
struct DeletePod {
  std::string name;
  bool operator==(const DeletePod&) const = default;
};
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
// Its agent ends, and its pod with it.
struct End {
  MemberId member;
  bool operator==(const End&) const = default;
};
using Action = std::variant<CreatePod, DeletePod, Configure, Run, Stop, End>;
std::string Print(const Action& action);  // "run worker-1 (2)"

struct TaskPlan {
  TaskStatus status;
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

}  // namespace trainyard::launch
