// Which pods of one role, worker or pserver, a job is to have now. Pure: what is seen goes in, what is to be
// done comes out.
//
// A worker has an index, and one pod at a time: when that has ended, another one is launched under the same
// index and the next launch number. How many there are is between the job's least and most: one more is tried
// while all run and there is work for it, and one that finds no room is taken back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace trainyard::master {

enum class PodState : std::uint8_t {
  kPending,
  kRunning,
  kSucceeded,  // it ended as it should: the job is over for it
  kFailed,     // by its own fault: the program ended with an error
  kKilled,     // by somebody else's: a signal, an eviction, a lost node
};

struct SeenPod {
  std::string name;
  int index = 0;
  int launch = 0;
  int restarts = 0;  // of its seat, up to this launch
  PodState state = PodState::kPending;
  bool deleting = false;
  absl::Time since;         // when it was made
  std::string unscheduled;  // why no node has it yet
  std::string cause;        // how it ended: "exited 1 (Error) on node-1"
  bool operator==(const SeenPod&) const = default;
};

struct PodLimits {
  int least = 1;
  int most = 1;
  int most_failures = 10;                            // of one worker in a row, by its own fault
  absl::Duration patience = absl::Minutes(10);       // with pods that the job needs and no node has
  absl::Duration withdraw_after = absl::Seconds(3);  // of those that it does not need
  absl::Duration grow_every = absl::Seconds(2);
  absl::Duration grow_again = absl::Seconds(30);  // after one found no room
};

// What is remembered from pass to pass.
struct PodMemory {
  struct Seat {
    int launches = 0;  // so far
    int failures = 0;  // in a row
    int restarts = 0;  // launches that took the place of a pod that had ended
    int ended = -1;    // the last launch whose end was counted, or that was taken back
    std::optional<absl::Time> not_before;
    bool operator==(const Seat&) const = default;
  };
  int target = 1;  // how many workers there are to be
  std::map<int, Seat> seats;
  absl::Time grow_after = absl::InfinitePast();
  bool operator==(const PodMemory&) const = default;
};

struct PodsView {
  std::string role = "worker";  // for people
  PodLimits limits;
  PodMemory memory;
  std::vector<SeenPod> pods;
  std::vector<int> at_work;  // those that have done something for the job and are here
  bool more_to_do = true;    // tasks wait that nobody has
  bool over = false;         // the job needs no workers any more
};

struct PodsPlan {
  struct Launch {
    int index = 0;
    int launch = 0;
    int restarts = 0;  // of its seat, this one among them
    bool operator==(const Launch&) const = default;
  };
  std::vector<Launch> launches;
  std::vector<std::string> deletes;  // names
  struct Ended {
    int index = 0;
    std::string pod;
    std::string cause;
    bool operator==(const Ended&) const = default;
  };
  std::vector<Ended> ended;  // that are replaced, for people
  std::string failure;       // the job cannot go on; empty: it can
  std::string waiting;       // for which pods, if for any
  PodMemory memory;
  absl::Duration wake_after = absl::InfiniteDuration();
};

PodsPlan PlanPods(const PodsView& view, absl::Time now);

// Of all seats.
int CountRestarts(const PodMemory& memory);

}  // namespace trainyard::master
