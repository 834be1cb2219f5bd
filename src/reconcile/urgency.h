// How soon what has become of a job is to be stored.
#pragma once

#include "job/job_status.h"

namespace trainyard::reconcile {

enum class Urgency {
  kProgress,  // the job has come further within its state: that can wait for what else comes
  kGoodNews,  // it has begun, or all that it has to have runs now
  kNow,
};

// Of what is to be stored in the place of what is.
Urgency UrgencyOf(const job::JobStatus& before, const job::JobStatus& after);

}  // namespace trainyard::reconcile
