// A job's pods and services, each in its place: one seat for every index of every role, and what sits
// nowhere.
#pragma once

#include <vector>

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

}  // namespace trainyard::job
