// One seeded history of a cluster with jobs, nodes, kubelets, users and one or two operators: the real
// operator code against the embedded API server, on a clock that moves only when told to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::sim {

struct ScheduleResult {
  std::vector<std::string> broken;  // promises, with when and where; empty: all were kept
  int steps = 0;
  int writes = 0;             // of the operators
  int crashes = 0;            // of the operators
  int finished = 0;           // jobs
  int lost_masters = 0;       // 1: a master that worked was lost with its node
  int recreated_masters = 0;  // that were waited for
  int gangs_gave_back = 0;    // a part of their nodes
};

// Everything in it follows from the seed. With `trace`, what happens is printed as it does.
ScheduleResult RunSchedule(std::uint64_t seed, bool trace = false);

}  // namespace trainyard::sim
