// From objects of the cluster to what the job model knows of them.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/job_view.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "operator/kind.h"

namespace trainyard::ops {

struct NodeSight {
  job::NodeHealth health = job::NodeHealth::kUnknown;
  std::optional<absl::Time> since;
  std::string accelerator_trouble;          // empty: none is known
  std::optional<absl::Time> trouble_since;  // nothing: it is certain
};
// How the node is that the pod is on.
using FindNode = std::function<NodeSight(const kube::CompactPod& pod)>;

NodeSight ObserveNode(const kube::CompactNode& node);
// `place` is what the kind found in the pod's labels.
job::PodView ObservePod(const kube::CompactPod& pod, Place place, const Kind& kind,
                        const FindNode& find_node);

// Of a service nothing else is looked at.
struct ServiceMeta {
  kube::ObjectMeta meta;
};
// What tells a job's members of each other.
struct MembersObject {
  kube::ObjectMeta meta;
  std::string text;
};
absl::StatusOr<MembersObject> ParseMembers(std::string json);
job::MembersView ObserveMembers(const MembersObject& members);

job::ServiceView ObserveService(const ServiceMeta& service, Place place);

}  // namespace trainyard::ops
