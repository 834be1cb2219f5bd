// What a plan has found out about a job's pods, for whoever tells of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/seats.h"
#include "job/tally.h"

namespace trainyard::job {

// The last thing that made a pod be made or started again.
struct Blame {
  std::string cause;  // "worker-1 exited 137 on node-2"; empty: nothing has happened since the last plan
  std::string role;   // its name
  bool counts = true;
  bool in_place = false;              // the kubelet has started it again
  std::optional<std::int64_t> limit;  // of restarts
  std::int64_t restarts = 0;          // of those that the limit is about, with this one
};

// Of a pod that was given up.
struct Failure {
  std::string reason;  // empty: the usual one
  std::string message;
};

struct Account {
  std::optional<absl::Time> resumes;  // when the first of those is made again that wait after a failure
  Seats seats;
  Tally tally;
  std::vector<std::vector<Fate>> fates;  // by role as in the spec, and by index
  bool restarted_by_kubelet = false;
  Blame blame;
  Failure failure;  // of the first pod that was given up just now
};

}  // namespace trainyard::job
