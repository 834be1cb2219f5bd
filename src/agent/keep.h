// The parent of one program in a pod. It passes signals on, reaps what the program leaves behind, and exits
// as the program does: with its exit code, or with 128 and the number of the signal that ended it. It
// restarts a program that was killed, or that asks for it by its exit code, in place: within milliseconds and
// without a new pod, --restarts times at most. After an end other than with 0 the pod's termination message
// has the cause and the last lines of the output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/options.h"
#include "agent/status.h"

namespace trainyard::agent {

// Exit codes with which a program asks to be started again: after it did some work, or before that.
inline constexpr int kStartAgain = 75;
inline constexpr int kStartAgainEarly = 76;
// Tells the program how often in a row it has ended with kStartAgainEarly before.
inline constexpr const char* kEarlyEndsVariable = "TRAINYARD_EARLY_ENDS";
// Tells a program that was started again how the process before it ended: "was killed by signal 9 (SIGKILL)".
inline constexpr const char* kLastEndVariable = "TRAINYARD_LAST_END";

// What was counted so far.
struct KeepCounts {
  int restarts = 0;
  int quick = 0;  // kills in a row before the program had run for a moment
  int early = 0;  // ends in a row with kStartAgainEarly
};

struct KeepDecision {
  bool again = false;
  std::uint64_t wait_millis = 0;  // before it is started again
  int exit_code = 0;              // if it is not
  bool operator==(const KeepDecision&) const = default;
};

// What follows the end of a program that ran for that time. Pure. After `most` restarts, or when the program
// is killed five times before it had run for a moment, the pod ends, and the keeper of the pod decides.
KeepDecision DecideKeep(const ScriptExit& end, std::uint64_t ran_millis, std::optional<std::uint64_t> most,
                        KeepCounts& counts);

// The cause of an end in one line, and below it the last whole lines of what the program printed. Pure.
std::string PrintMessage(const ScriptExit& end, std::string_view output);

// Runs options.command in this environment until it ends for good, and returns its exit code. It does
// not restart a program that it was asked to end, by a signal other than SIGUSR1 and SIGUSR2.
int Keep(const Options& options, std::vector<std::string> environment);

}  // namespace trainyard::agent
