// Gang start: pods of a job that start together or not at all.
//
// Who keeps them back differs. With PodGroups a scheduler does. With gates the operator does: it creates the
// pods with a scheduling gate, which it lifts when the cluster has room for all of them:
//
//   created, gated ──▶ room for all: gates lifted ──▶ all have nodes
//         ▲                          │ a part has, for a minute
//         └── tries again later ◀── all deleted: their room is given back
//
// A server that does not know gates ignores them, and the last arrow is all that is left.
#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/plan_builder.h"

namespace trainyard::job {

bool IsInGang(const JobSpec& spec, const RoleSpec& role);
bool HasGang(const JobSpec& spec);

// How many pods of the gang must have a node at the same time. An elastic role counts with its least. Pods
// that have completed or failed permanently need no node any more.
int GangMinimum(const JobSpec& spec, const JobStatus& status);

// Pods of the gang that have or want a node: neither of the past, nor ending, nor done.
std::vector<const PodView*> GangMembers(const JobView& view);

// Whether a part of the gang may be scheduled already. Then its other pods may be, too.
bool IsGangOpen(const JobView& view);

// Adds to the plan what starts the gang, after the fate of each pod was judged. Returns why the gang has no
// pods now; empty: it has.
std::string PlanGang(PlanBuilder& builder);

}  // namespace trainyard::job
