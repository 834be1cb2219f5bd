// Small rules that both the plan and the description of a pod go by.
#pragma once

#include "node/pod_plan.h"

namespace trainyard::node {

// Something asks for the pod's end as a whole.
bool EndIsWanted(const PodView& view);
// A container of the pod is running or about to.
bool AnyActive(const PodRecord& record);
// A container that has ended is to be started again, at some time.
bool WillRestart(const PodView& view, const ContainerRecord& container, bool init);
// Nothing runs and nothing is to be started any more.
bool IsOver(const PodView& view);

}  // namespace trainyard::node
