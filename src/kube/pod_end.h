// How a pod has ended, for people.
#pragma once

#include <string>

#include "kube/pod.h"

namespace trainyard::kube {

// "exited 1 (Error) on node-1: message", "was killed by signal 9 (SIGKILL) on node-1", "was ended (Evicted)
// on node-1".
std::string DescribeEnd(const CompactPod& pod);

}  // namespace trainyard::kube
