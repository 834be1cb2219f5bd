// How the seats of a job stand, taken together, and whom it waits for.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "job/job_spec.h"
#include "job/job_view.h"

namespace trainyard::job {

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

}  // namespace trainyard::job
