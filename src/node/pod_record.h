// What the node knows of a pod's processes: what was asked of its shim and what has been seen. A value: the
// plan takes one and returns the next, and what is observed in between changes it through the functions here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "node/pod_spec.h"
#include "node/pod_status.h"

namespace trainyard::node {

// Wall time is shown, steady time is measured by.
struct PlanTime {
  absl::Time wall;
  SteadyTime steady;
};

// How a run of a container ended.
struct RunEnd {
  absl::Time at;
  SteadyTime seen;
  int code = 0;  // as a shell counts: 128+n for signal n
  int signal = 0;
  std::string reason;  // "Completed", "Error", "OOMKilled", "StartError", "ContainerStatusUnknown"
  std::string message;
  bool operator==(const RunEnd&) const = default;
};

struct Run {
  int attempt = -1;  // 0 is the first; -1: there was none
  absl::Time started_at;
  SteadyTime started;
  std::optional<RunEnd> end;
  bool operator==(const Run&) const = default;
};

enum class ProbeKind : std::uint8_t { kStartup, kLiveness, kReadiness };
std::string_view PrintProbeKind(ProbeKind kind);  // "Startup", ...
const std::optional<ProbeSpec>& ProbeOf(const ContainerSpec& container, ProbeKind kind);

struct ProbeRecord {
  enum class Verdict : std::uint8_t { kUnknown, kSuccess, kFailure };
  Verdict verdict = Verdict::kUnknown;  // kept until the threshold for another is reached
  bool running = false;
  std::optional<SteadyTime> last;  // when it began last
  int in_a_row = 0;                // results alike
  bool last_ok = false;
  int made = 0;
  bool ever_ok = false;
  bool operator==(const ProbeRecord&) const = default;
};

enum class HookKind : std::uint8_t { kPostStart, kPreStop };
enum class HookState : std::uint8_t { kNone, kRunning, kDone, kFailed };

// A container that is to end: its hook, SIGTERM, and SIGKILL when the grace is over.
struct Stop {
  SteadyTime since;
  absl::Duration grace;
  std::optional<SteadyTime> asked;  // SIGTERM
  bool killed = false;              // SIGKILL
  bool operator==(const Stop&) const = default;
};

//   kNone ──▶ kStarting ──▶ kRunning ──▶ kEnded
//                 ▲ └──────────────────────▲ │     (it could not be started)
//                 └──────────────────────────┘     (it is started again, as another attempt)
enum class RunState : std::uint8_t { kNone, kStarting, kRunning, kEnded };

struct ContainerRecord {
  RunState state = RunState::kNone;
  Run run;
  std::optional<Run> previous;
  // Runs in a row that were shorter than what resets the back-off.
  int short_runs = 0;
  std::array<ProbeRecord, 3> probes;  // by ProbeKind
  HookState post_start = HookState::kNone;
  HookState pre_stop = HookState::kNone;
  std::optional<Stop> stop;
  int announced = -1;  // the last attempt whose start was told
  std::string told;    // the last event about why it waits, so that it is not told again
  bool operator==(const ContainerRecord&) const = default;

  ProbeRecord& probe(ProbeKind kind) { return probes[static_cast<std::size_t>(kind)]; }
  const ProbeRecord& probe(ProbeKind kind) const { return probes[static_cast<std::size_t>(kind)]; }
  bool active() const { return state == RunState::kStarting || state == RunState::kRunning; }
};

// The shim.
//   kNone ──▶ kStarting ──▶ kReady ──▶ kStopping ──▶ kStopped
//     ▲           └─▶ kFailed ─┘(again)    (killed: kNone, and all runs ended)
enum class SandboxState : std::uint8_t { kNone, kStarting, kReady, kFailed, kStopping, kStopped };

struct SandboxRecord {
  SandboxState state = SandboxState::kNone;
  int failures = 0;
  SteadyTime failed;
  std::string error;
  bool operator==(const SandboxRecord&) const = default;
};

struct PodRecord {
  SandboxRecord sandbox;
  std::vector<ContainerRecord> init_containers;  // in the spec's order
  std::vector<ContainerRecord> containers;
  std::optional<absl::Time> start_time;
  SteadyTime started;
  std::optional<SteadyTime> deletion_seen;
  // Why the pod as a whole failed: DeadlineExceeded, what the node refused, or the cluster's end.
  std::string failure_reason;  // as kRefused
  std::string failure_message;
  std::string told;
  bool finished = false;  // the node is done with it
  bool operator==(const PodRecord&) const = default;

  ContainerRecord* Find(const PodSpec& spec, std::string_view container);
};

// ---- what is observed. Word of an attempt that is not the present one is passed over.

void NoteStarted(ContainerRecord& container, int attempt, absl::Time at, PlanTime now);
// `reset`: a run this long starts the back-off anew.
void NoteEnded(ContainerRecord& container, int attempt, RunEnd end, absl::Duration reset);
void NoteProbe(ContainerRecord& container, ProbeKind kind, const ProbeSpec& spec, bool ok);
void NoteHook(ContainerRecord& container, HookKind hook, bool ok);
void NoteSandboxReady(PodRecord& pod);
void NoteSandboxFailed(PodRecord& pod, std::string error, PlanTime now);
// The shim is gone, whether asked or not: what ran, runs no more.
void NoteSandboxGone(PodRecord& pod, PlanTime now, absl::Duration reset);

// The end of a process, in the words of a kubelet.
RunEnd EndOfExit(int code, absl::Time at, SteadyTime seen);
RunEnd EndOfSignal(int signal, bool oom, absl::Time at, SteadyTime seen);
RunEnd EndOfFailedStart(std::string error, absl::Time at, SteadyTime seen);
RunEnd EndUnknown(absl::Time at, SteadyTime seen);

// ---- a run's name in the shim: "main.0"

// Why a pod has failed that this node cannot run at all.
inline constexpr std::string_view kRefused = "UnsupportedPod";
// As a kubelet calls it whose node is shut down.
inline constexpr std::string_view kEndedWithCluster = "Terminated";

std::string RunId(std::string_view container, int attempt);
struct RunName {
  std::string_view container;
  int attempt = 0;
};
std::optional<RunName> ParseRunId(std::string_view id);

// An empty record with room for the spec's containers.
PodRecord NewRecord(const PodSpec& spec);
// After a restart of the node: takes over from the API server's status what the state file does not have
// (start time, restart counts and ends of runs that are forgotten, what the probes had found).
void TakeOverStatus(PodRecord& record, const PodSpec& spec, const PodStatus& status, PlanTime now);

}  // namespace trainyard::node
