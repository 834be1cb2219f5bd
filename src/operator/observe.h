// From objects of the cluster to what the job model knows of them.
#pragma once

#include <functional>
#include <string_view>

#include "job/job_view.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "operator/kind.h"

namespace trainyard::ops {

struct NodeSight {
  job::NodeHealth health = job::NodeHealth::kUnknown;
  std::optional<absl::Time> since;
};
// How the node of that name is.
using FindNode = std::function<NodeSight(std::string_view name)>;

NodeSight ObserveNode(const kube::CompactNode& node);
// `place` is what the kind found in the pod's labels.
job::PodView ObservePod(const kube::CompactPod& pod, Place place, std::string_view main_container,
                        const FindNode& find_node);

// Of a service nothing else is looked at.
struct ServiceMeta {
  kube::ObjectMeta meta;
};
job::ServiceView ObserveService(const ServiceMeta& service, Place place);

}  // namespace trainyard::ops
