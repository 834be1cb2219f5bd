// Which pods of a job the master asks to have replaced, as it knows better than the kubelet: the pod claims
// to run, and the stream of its process is gone. Pure.
//
// Unknown is not dead, and slow is not gone. A stream breaks when its process has answered no ping for
// seconds, and must then be away for kStreamPatience. A worker that never had a stream is starting, however
// long that takes; a pserver, which starts within milliseconds, has kPserverPatience. Time in which the
// master itself did not run does not count.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace trainyard::master {

inline constexpr absl::Duration kStreamPatience = absl::Seconds(15);
inline constexpr absl::Duration kPserverPatience = absl::Minutes(1);

// A pod that runs, as far as the cluster knows.
struct PodSight {
  std::string name;  // which a pod that follows it has too
  std::string uid;
  std::int64_t incarnation = 0;  // of the process that has the member's stream; 0: the member has none
  bool pserver = false;
};

class LostStreams {
 public:
  // The uids of those to be replaced. One that is not replaced is named again after as long.
  std::vector<std::string> Look(const std::vector<PodSight>& pods, SteadyTime now);

 private:
  struct Known {
    std::int64_t before = 0;  // the process that had the stream of a pod of this name before: not this pod's
    bool had_stream = false;
    absl::Duration gone;  // for how long it has had none
  };
  std::map<std::string, Known> known_;                // by uid
  std::map<std::string, std::int64_t> incarnations_;  // the last ones, by name
  SteadyTime last_;
  bool looked_ = false;
};

}  // namespace trainyard::master
