// Shows a task while it runs: the lines of its members, and what becomes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/ending_signals.h"
#include "cli/launch_common.h"

namespace trainyard::cli {

enum class Followed : std::uint8_t { kSucceeded, kLeft };
// Until the task has succeeded or is left to itself; an error is why it did not succeed. What an ending
// signal does is asked of whoever sits at the terminal; else the first cancels the task, and the second
// leaves it.
absl::StatusOr<Followed> FollowTask(LauncherClient& launcher, const std::string& task,
                                    const EndingSignals& signals);

// The output of its members on standard output; of one if it is named. Until the task is over, if it is to be
// followed.
struct LogFlags {
  std::string member;
  bool follow = false;
  std::optional<std::int64_t> tail;
};
absl::Status ShowLogs(LauncherClient& launcher, const std::string& task, const LogFlags& flags,
                      const EndingSignals& signals);

}  // namespace trainyard::cli
