// A task of the launcher: a training script that runs in several members under a framework's own runtime, and
// where it stands. Pure values, stored as JSON: the spec in an annotation of the task's AITrainingJob, the
// status as its .status.progress.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"

namespace trainyard::launch {

enum class Strategy : std::uint8_t { kAllReduce, kParameterServer };
std::string_view Name(Strategy strategy);  // "AllReduce", "ParameterServer"
std::optional<Strategy> ParseStrategy(std::string_view text);

// In the order in which they are started and listed.
enum class Role : std::uint8_t { kPs, kChief, kWorker, kEvaluator };
std::string_view Name(Role role);  // "ps", "chief", "worker", "evaluator": as TF_CONFIG calls them

// One member: "worker-2".
struct MemberId {
  Role role = Role::kWorker;
  int index = 0;
  auto operator<=>(const MemberId&) const = default;
};
std::string Print(const MemberId& member);
std::optional<MemberId> ParseMember(std::string_view text);

// What a user asks for.
struct TaskSpec {
  std::string name;
  Strategy strategy = Strategy::kAllReduce;
  int workers = 1;
  int ps = 0;
  bool chief = false;      // a member that coordinates, beside the workers
  bool evaluator = false;  // likewise one that evaluates
  int min_workers = 0;     // AllReduce: it may run with so few; 0: as many as `workers`
  int max_workers = 0;     // and with so many; 0: as many as `workers`
  std::string image;
  std::string script = "exec.py";
  std::vector<std::string> command;  // instead of the script
  std::string working_dir;           // "": the image's
  std::map<std::string, std::string> env;
  std::string cpu;
  std::string memory;
  std::string gpu;
  int max_restarts = 3;
  absl::Duration grace = absl::Seconds(10);          // between SIGTERM and SIGKILL
  absl::Duration agent_timeout = absl::Seconds(60);  // an agent that does not answer for so long is lost

  bool IsElastic() const { return LeastWorkers() < MostWorkers(); }
  int LeastWorkers() const { return min_workers > 0 ? min_workers : workers; }
  int MostWorkers() const { return max_workers > 0 ? max_workers : workers; }
  bool operator==(const TaskSpec&) const = default;
};

enum class Phase : std::uint8_t {
  kPending,
  kStarting,
  kRunning,
  kRestarting,
  kCancelling,
  kSucceeded,
  kFailed,
  kCancelled
};
std::string_view Name(Phase phase);  // "Pending", ...
bool IsOver(Phase phase);

// Of one member, what must survive.
struct MemberStatus {
  std::string pod;    // the uid of the pod that it is in; "": of none yet
  std::string lost;   // the uid of the pod that it lost last
  int attempt = 0;    // which run of the script it is to be in; 0: none yet
  int done = 0;       // the attempt in which its script exited 0; 0: none
  std::string state;  // for people: "running on node-1", "exited 3"
  bool operator==(const MemberStatus&) const = default;
};

// Why a task, or one member, was started again.
struct Restart {
  absl::Time time;
  int attempt = 0;  // that it led to
  std::string member;
  std::string cause;
  bool operator==(const Restart&) const = default;
};

struct TaskStatus {
  Phase phase = Phase::kPending;
  std::string reason;  // one sentence: what it waits for, or how it ended
  int attempt = 1;     // of the whole task
  int restarts = 0;    // that count against max_restarts
  int running = 0;     // members whose script runs or has exited 0
  std::map<MemberId, MemberStatus> members;
  std::vector<MemberId> present;         // who is in this attempt; empty: that is not decided yet
  absl::Time since = absl::UnixEpoch();  // when this attempt began to be prepared
  std::optional<absl::Time> started;     // when all ran first
  std::optional<absl::Time> ended;
  std::vector<Restart> history;  // the newest ones, oldest first
  bool operator==(const TaskStatus&) const = default;
};
inline constexpr std::size_t kMostHistory = 20;

// What can be known to be wrong by looking at the spec: one sentence, and what to do.
absl::Status Validate(const TaskSpec& spec);
// Whether the task has succeeded only when the scripts of that role have.
bool Decides(const TaskSpec& spec, Role role);
// All members that a valid task may have, in their order; workers up to MostWorkers().
std::vector<MemberId> MembersOf(const TaskSpec& spec);

// Of a task that was just created.
TaskStatus NewStatus(const TaskSpec& spec, absl::Time created);

std::string Print(const TaskSpec& spec);
Document StatusDocument(const TaskStatus& status);
// InvalidArgument: which field is wrong.
absl::StatusOr<TaskSpec> ParseTaskSpec(std::string_view json);
// What cannot be understood is left out.
TaskStatus ParseTaskStatus(const Document& document);

}  // namespace trainyard::launch
