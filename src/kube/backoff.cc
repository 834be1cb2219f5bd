#include "kube/backoff.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::kube {

absl::Duration BackoffAfter(const BackoffPolicy& policy, int failures, IdSource& random) {
  TY_CHECK(failures > 0, "nothing has failed");
  absl::Duration wait = policy.first;
  for (int i = 1; i < failures && wait < policy.most; ++i) wait *= 2;
  wait = std::min(wait, policy.most);
  constexpr std::uint64_t kSteps = 1'000'000;
  return wait + wait * (policy.jitter * static_cast<double>(random.Below(kSteps)) / kSteps);
}

}  // namespace trainyard::kube
