// What the agent tells about its script, as JSON and as an exit code. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::agent {

//   idle ──▶ configured ──▶ running ──▶ exited
//               ▲ │            │  ▲ a repeat changes nothing
//               │ └▶ failed    ▼  │
//               │     │     stopping ──▶ exited
//               └─────┴── a higher attempt ──┘
enum class State : std::uint8_t { kIdle, kConfigured, kRunning, kStopping, kExited, kFailed };

// How a process ended: one of the two.
struct ScriptExit {
  std::optional<int> code;
  std::optional<int> signal;

  static ScriptExit FromWait(int wait_status);
  bool operator==(const ScriptExit&) const = default;
};

// "exited 3", "was killed by signal 9 (SIGKILL)".
std::string PrintExit(const ScriptExit& exit);

struct Status {
  std::string incarnation;
  std::uint64_t version = 1;
  State state = State::kIdle;
  std::optional<std::int64_t> attempt;
  std::optional<int> pid;
  ScriptExit exit;
  std::string reason = "waits for a configuration";
  std::optional<std::uint64_t> started_millis;  // wall time
  std::optional<std::uint64_t> ended_millis;
  std::uint64_t log_bytes = 0;     // all that the attempt has printed
  std::uint64_t log_dropped = 0;   // of them, how many of the first cannot be read any more
  std::uint64_t copy_dropped = 0;  // bytes that the agent's own output did not take
  bool logs_on_disk = true;
};

std::string PrintStatus(const Status& status);

// What the agent exits with: the script's code, 128 and its signal, 127 if it could not be started, 0 if
// nothing was ever run.
int ExitCodeOf(const Status& status);

}  // namespace trainyard::agent
