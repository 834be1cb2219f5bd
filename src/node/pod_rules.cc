#include "node/pod_rules.h"

#include <algorithm>

namespace trainyard::node {

bool EndIsWanted(const PodView& view) {
  return view.spec.deleting || view.gone || !view.record.failure_reason.empty() || view.status.terminal();
}

bool AnyActive(const PodRecord& record) {
  return std::ranges::any_of(record.init_containers, &ContainerRecord::active) ||
         std::ranges::any_of(record.containers, &ContainerRecord::active);
}

bool WillRestart(const PodView& view, const ContainerRecord& container, bool init) {
  if (container.state != RunState::kEnded || EndIsWanted(view)) return false;
  const bool failed = container.run.end->code != 0;
  switch (view.spec.restart_policy) {
    case RestartPolicy::kAlways:
      return failed || !init;
    case RestartPolicy::kOnFailure:
      return failed;
    case RestartPolicy::kNever:
      return false;
  }
  return false;
}

bool IsOver(const PodView& view) {
  if (AnyActive(view.record)) return false;
  if (EndIsWanted(view)) return true;
  for (const ContainerRecord& init : view.record.init_containers) {
    if (init.state != RunState::kEnded) return false;
    if (init.run.end->code != 0) return !WillRestart(view, init, true);
  }
  return std::ranges::all_of(view.record.containers, [&view](const ContainerRecord& container) {
    return container.state == RunState::kEnded && !WillRestart(view, container, false);
  });
}

absl::Duration RestartDelay(const BackOffPolicy& policy, int short_runs) {
  if (short_runs <= 1) return absl::ZeroDuration();
  // 2^40 times anything is more than the most.
  return std::min(policy.first * static_cast<double>(std::int64_t{1} << std::min(short_runs - 2, 40)),
                  policy.most);
}

}  // namespace trainyard::node
