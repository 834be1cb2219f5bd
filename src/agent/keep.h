// Keeping one program running in a pod. A process that is killed, or that asks for it by its exit code, is
// started again in place, within milliseconds and without a new pod.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/status.h"

namespace trainyard::agent {

// Exit codes with which a program asks to be started again: after it did some work, or before that.
inline constexpr int kStartAgain = 75;
inline constexpr int kStartAgainEarly = 76;
// Tells the program how often in a row it has ended with kStartAgainEarly before.
inline constexpr const char* kEarlyEndsVariable = "TRAINYARD_EARLY_ENDS";

// What was counted so far.
struct KeepCounts {
  int quick = 0;  // kills in a row before the program had run for a moment
  int early = 0;  // ends in a row with kStartAgainEarly
};

struct KeepDecision {
  bool again = false;
  std::uint64_t wait_millis = 0;  // before it is started again
  int exit_code = 0;              // if it is not
  bool operator==(const KeepDecision&) const = default;
};

// What follows an end after so long. Pure. A program that is killed five times before it had run for a moment
// is given back to whoever keeps the pod.
KeepDecision DecideKeep(const ScriptExit& end, std::uint64_t ran_millis, KeepCounts& counts);

// Runs the command until it ends for good, and returns its exit code. SIGTERM and SIGINT reach the command,
// which is then not started again.
int Keep(const std::vector<std::string>& command);

}  // namespace trainyard::agent
