// How long to wait after a failure before trying again: longer each time, and never in step with others.
#pragma once

#include "absl/time/time.h"
#include "base/ids.h"

namespace trainyard::kube {

struct BackoffPolicy {
  absl::Duration first = absl::Milliseconds(100);
  absl::Duration most = absl::Minutes(5);
  // Up to this part of the wait is added at random.
  double jitter = 0.2;
};

// The wait after that many failures in a row; failures > 0. Doubles with each until it is `most`.
absl::Duration BackoffAfter(const BackoffPolicy& policy, int failures, IdSource& random);

}  // namespace trainyard::kube
