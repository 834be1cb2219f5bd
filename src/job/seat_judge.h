// What becomes of each seat of a job that lives: whose pod is made, deleted, made again or given up, and who
// is made again with it.
#pragma once

#include <optional>
#include <string>

#include "job/plan_builder.h"
#include "job/restart_policy.h"
#include "job/seats.h"

namespace trainyard::job {

// Adds to the plan and to the account what it finds; both must outlive it. The account has the seats.
class SeatJudge {
 public:
  SeatJudge(PlanBuilder& builder, Account& account) : builder_(builder), account_(account) {}

  void JudgeAll();

  // All pods of the role are of the past now, also those that had done their work.
  void RaiseRole(const RoleSpec& role, RestartScope barrier);
  // This is what something restarts for.
  void Blame(const RoleSpec& role, const std::string& cause, bool counts);

 private:
  const JobView& view() const { return builder_.view(); }
  RoleStatus& StatusOf(const RoleSpec& role) { return builder_.StatusOf(role); }
  bool IsStale(const RoleSpec& role, const PodView& pod);
  void LiftBarriers();
  void GiveUpFirst();
  std::optional<PodFailure> FindFailure(const RoleSpec& role, const PodView& pod);
  std::optional<Failure> FindFinal(const RoleSpec& role, const PodView& pod, const PodFailure& failure);

  Fate Judge(const RoleSpec& role, int index, const PodView* pod);
  bool HasLostAccelerator(const PodView& pod);
  bool AvoidsTheWell(const PodView& pod);
  Fate JudgeMissing(const RoleSpec& role, int index);
  Fate JudgeStale(const RoleSpec& role, const PodView& pod);
  // Something waits until then to be made or started again.
  void NoteWait(absl::Time due);
  Fate JudgeFailed(const RoleSpec& role, const PodView& pod, const PodFailure& failure);
  bool IsStuck(const RoleSpec& role, const PodView& pod);
  std::string FindLimit(const RoleSpec& role, const RoleStatus& known, bool counts) const;
  void Raise(const RoleSpec& role, const PodView& pod, bool counts);
  void GiveUp(const RoleSpec& role, const PodView& pod, const PodFailure& failure, Failure told);
  void PlanService(const RoleSpec& role, int index, const ServiceView* service);

  PlanBuilder& builder_;
  Account& account_;
  bool over_ = false;  // the job has failed by somebody who was given up now
};

}  // namespace trainyard::job
