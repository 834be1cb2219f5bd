// What follows the failure of one pod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "job/job_view.h"
#include "job/restart_rules.h"

namespace trainyard::job {

// Through whose doing a pod failed.
enum class FailureCause : std::uint8_t {
  kProgram,      // its own: a container ended with something other than 0
  kDisruption,   // evicted, preempted, shut down with its node
  kNodeLost,     // its node is gone or does not answer
  kAccelerator,  // the accelerator that it works with has failed
  kCreation,     // its containers cannot be made
  kRejected,     // its node did not take it
  kDeadline,     // it ran for longer than its own spec allows
  kUnknown,      // it failed and says nothing
};
std::string_view Print(FailureCause cause);  // "Program", ...: for metrics

struct PodFailure {
  FailureCause cause = FailureCause::kUnknown;
  std::optional<int> exit_code;
  absl::Duration ran;     // before it failed; zero if it is not known
  bool shutdown = false;  // its node was shut down in good order, as by `trainyard down`
  bool killed = false;    // by a signal from outside
};

// Of a pod whose phase is Failed.
PodFailure ClassifyFailure(const PodView& pod);
// "exited 137 (OOMKilled) on node-2", "was evicted from node-2", "was lost with node-2": stands behind the
// pod's name.
std::string DescribeFailure(const PodView& pod, const PodFailure& failure);

enum class RestartVerdict : std::uint8_t { kMakeAgain, kGiveUp };

struct RestartDecision {
  RestartVerdict verdict = RestartVerdict::kMakeAgain;
  bool counts = true;   // towards limits
  absl::Duration wait;  // after the failure, before the pod is made again
  std::string why;      // it is given up: stands behind the description
  bool operator==(const RestartDecision&) const = default;
};

// Whether the node, and not the pod, is what failed.
bool IsNodeFailure(FailureCause cause);

// `attempt` is how often the pod was made again before. The first time is at once; after that it waits, from
// rules.first_wait doubling to 5 min, unless the pod had run for a while. A pod whose containers cannot be
// made is made again whatever the rules are: its program has not failed, it has not begun.
RestartDecision DecideRestart(const RestartRules& rules, const PodFailure& failure, int attempt);

}  // namespace trainyard::job
