// Shows a task while it runs: the lines of its members, and what becomes of it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/ending_signals.h"
#include "cli/launch_common.h"

namespace trainyard::cli {

// Until the task is over: OK if it succeeded. The first ending signal cancels the task, the second leaves it
// to itself.
absl::Status FollowTask(LauncherClient& launcher, const std::string& task, const EndingSignals& signals);

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
