// A plan in the making: what every part of the planner adds to it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  JobStatus& status() { return plan_.status; }
  const JobStatus& status() const { return plan_.status; }
  RoleStatus& StatusOf(const RoleSpec& role) { return plan_.status.roles[role.name]; }
  // "TFJobRunning".
  std::string Reason(std::string_view what) const;

  void Do(Action action);
  // From now on no pod or service is created: something that they need is missing.
  void HoldCreates() { creates_held_ = true; }
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
  void NoteRestart(Restart restart) { plan_.restarts.push_back(std::move(restart)); }

  // The status has what must be stored before anything else is done.
  void MarkRaised() { raised_ = true; }
  bool raised() const { return raised_; }
  // The status ends the job, or begins to.
  void MarkEnded() { ended_ = true; }

  void Wake(absl::Duration after);
  void WakeAt(absl::Time time);

  // The plan, once all is added.
  JobPlan Build();

 private:
  const JobView& view_;
  const absl::Time now_;
  JobPlan plan_;  // but for its decision
  std::vector<Action> actions_;
  bool creates_held_ = false;
  bool raised_ = false;
  bool ended_ = false;
};

}  // namespace trainyard::job
