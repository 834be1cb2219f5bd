// A plan in the making: what every part of the planner adds to it.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "job/job_status.h"
#include "job/job_view.h"
#include "job/plan.h"

namespace trainyard::job {

// As stored times are: whole seconds.
absl::Time WholeSecond(absl::Time time);

// One that ended after it was told to go has done nothing of its own.
bool EndedByItself(const PodView& pod);

// The view must outlive it.
class PlanBuilder {
 public:
  PlanBuilder(const JobView& view, absl::Time now);

  const JobView& view() const { return view_; }
  absl::Time now() const { return now_; }
  JobPlan& plan() { return plan_; }
  JobStatus& status() { return plan_.status; }
  const JobStatus& status() const { return plan_.status; }
  RoleStatus& StatusOf(const RoleSpec& role) { return plan_.status.roles[role.name]; }
  // "TFJobRunning".
  std::string Reason(std::string_view what) const;

  void Do(Action action) { plan_.actions.push_back(std::move(action)); }
  // Deletes it, or if it is being deleted does what is left to do: nothing, unless its node is lost and its
  // own grace is over. What is not ours is left alone.
  void Delete(const PodView& pod, std::string why);
  void Delete(const ServiceView& service, std::string why);
  // Ends it and keeps its object, with its logs; one that has not begun has none and is deleted. What has
  // ended, or is lost, is left alone.
  void Stop(const PodView& pod, std::string why);
  // Whether it has ended, or is lost and cannot say so.
  bool IsOver(const PodView& pod);
  // Unknown is not dead.
  bool IsLost(const PodView& pod);

  void Enter(State state, const std::string& message);
  void Tell(bool warning, std::string reason, std::string message);

  void Wake(absl::Duration after);
  void WakeAt(absl::Time time);

 private:
  const JobView& view_;
  const absl::Time now_;
  JobPlan plan_;
};

}  // namespace trainyard::job
