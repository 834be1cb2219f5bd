// A discrete-event simulation of jobs on a cluster, by the autoscaler's own rule or without it: what would
// have become of a list of jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "job/scale/autoscale.h"

namespace trainyard::job::scale {

struct ReplayJob {
  double arrival = 0;  // seconds
  int least = 1;
  int most = 1;
  double work = 0;  // seconds that one pod alone would need; more pods are as many times faster
  bool operator==(const ReplayJob&) const = default;
};

// One job a line: arrival, min, max, work. A first line with these names, lines that begin with # and empty
// ones are passed over. InvalidArgument: the line and what is wrong with it.
absl::StatusOr<std::vector<ReplayJob>> ParseReplayJobs(std::string_view csv);

struct ReplayOptions {
  int nodes = 1;
  int pods_per_node = 1;
  // Elastic jobs begin with their least and are scaled; others begin when there is room for their most.
  bool elastic = true;
  Limits limits;
  double period = 1;      // of the autoscaler, in seconds
  double start_time = 2;  // of a pod, from its node to its work
  double stop_time = 2;   // of a pod, from being told to go to being gone
};

struct ReplayResult {
  double mean_pending = 0;     // from arrival to work
  double mean_completion = 0;  // from arrival to end
  double makespan = 0;         // from the first arrival to the last end
  double utilisation = 0;      // of all places for pods, until the last end
  int changes = 0;             // of sizes
  std::vector<double> pending;
  std::vector<double> completion;
};

// InvalidArgument: a job that could never begin on such a cluster.
absl::StatusOr<ReplayResult> Replay(const std::vector<ReplayJob>& jobs, const ReplayOptions& options);

}  // namespace trainyard::job::scale
