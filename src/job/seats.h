// A job's pods and services, each in its place: one seat for every index of every role, and what sits
// nowhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/job_spec.h"
#include "job/job_view.h"

namespace trainyard::job {

struct Seat {
  const PodView* pod = nullptr;
  const ServiceView* service = nullptr;
};

// Points into the view that it was made from.
struct Seats {
  std::vector<std::vector<Seat>> roles;  // by role as in the spec, and by index
  // Ours, but no index is theirs: beyond the replicas, of a role that is no more, or a second one.
  std::vector<const PodView*> surplus_pods;
  std::vector<const ServiceView*> surplus_services;
};

// Of several pods of one index the one of the job's own naming sits, then the one that was made under the
// higher number. What is nobody's takes a free seat, or none and is left alone.
Seats FindSeats(const JobView& view);

// ---- How the seats of a job stand, taken together, and whom it waits for.

// How the pod of one seat stands.
enum class Fate : std::uint8_t {
  kCompleted,  // it has done its work
  kGivenUp,    // it failed, and none is made in its place
  kRuns,
  kStarts,    // it exists and does not run yet
  kMissing,   // there is none
  kRestarts,  // another is made or started, or is about to be, for one that failed or was lost
  kStale,     // it failed or was lost, or goes with one that was, and is still there
  kLeaves,    // it is being deleted, and another is made once it is gone
};
inline constexpr std::size_t kFates = 8;

class Tally {
 public:
  void Add(const RoleSpec& role, int index, const PodView* pod, Fate fate);
  void AddMissingService() { ++missing_services_; }

  int Count(Fate fate) const { return counts_[static_cast<std::size_t>(fate)]; }
  // In the course of a restart.
  int CountRestarting() const { return Count(Fate::kRestarts) + Count(Fate::kStale); }
  // Without a node, or without a pod.
  int unscheduled() const { return unscheduled_; }
  int wanted() const { return wanted_; }  // seats
  int missing_services() const { return missing_services_; }
  // The role of a seat that is furthest from running; null: all run or have completed.
  const RoleSpec* waiting_role() const { return waiting_role_; }
  Fate waiting_fate() const { return waiting_fate_; }
  // "worker-1 (ImagePullBackOff) and 2 others".
  std::string PrintWaitingFor() const;
  // "worker-1 is missing and is made": of the one that is furthest from running.
  std::string PrintWaiting() const;
  // "all 3 pods run", "2 of 3 pods run, 1 has completed".
  std::string PrintRunning() const;
  // "2 of 3 pods and 3 of 3 services exist".
  std::string PrintExisting() const;

 private:
  std::array<int, kFates> counts_{};
  int unscheduled_ = 0;
  int wanted_ = 0;
  int missing_services_ = 0;
  const RoleSpec* waiting_role_ = nullptr;
  std::string waiting_for_;
  std::string waiting_why_;
  Fate waiting_fate_ = Fate::kRuns;
  int others_ = 0;
};

// ---- What a plan has found out about a job's pods, for whoever tells of it.

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
