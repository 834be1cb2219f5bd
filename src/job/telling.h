// What is told of a job that has not ended: its counters, its current state, and why it is in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/plan_builder.h"
#include "job/seats.h"

namespace trainyard::job {

// As TFJobs are told of: Created, Running, Restarting.
void CountByState(PlanBuilder& builder, const Account& account);
void TellStates(PlanBuilder& builder, const Account& account);

// As AITrainingJobs are: Pending, Creating, Running, Restarting, Terminating.
void CountByPhase(PlanBuilder& builder, const Account& account);
// `note` stands behind the message of a job that runs.
void TellPhases(PlanBuilder& builder, const Account& account, std::string_view note);

// What the state is called: a job with phases calls it Succeed to have succeeded.
std::string_view StateName(Telling telling, State state);
std::optional<State> ParseStateName(Telling telling, std::string_view name);
// Those that such a job can be in.
std::vector<State> StatesOf(Telling telling);

// "14:05:09 UTC": when something goes on again.
std::string PrintClock(absl::Time time);
// "worker-1 exited 137 on node-2; restart 1 of 3".
std::string PrintRestart(const Blame& blame);

}  // namespace trainyard::job
