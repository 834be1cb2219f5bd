// From objects of the cluster to what the job model knows of them.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/job_view.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "reconcile/kind.h"

namespace trainyard::reconcile {

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

// What is kept of a service: enough to see whether it is as it was made.
struct CompactService {
  kube::ObjectMeta meta;
  std::vector<int> ports;  // 0: one that leads to another
  bool selects_by_its_labels = false;
  std::size_t selector_size = 0;
};
absl::StatusOr<CompactService> ParseService(std::string json, const kube::MetaOptions& kept);
// Whether it is altered is for the caller to say, who knows the job.
job::ServiceView ObserveService(const CompactService& service, Place place);

// A ConfigMap of a job.
inline constexpr std::string_view kMembersKey = "members";  // who its members are; else: what its pods mount
struct ConfigMapObject {
  kube::ObjectMeta meta;
  std::string text;  // as ConfigMapView has it
};
absl::StatusOr<ConfigMapObject> ParseConfigMap(std::string json);
job::ConfigMapView ObserveConfigMap(const ConfigMapObject& config_map);
// Of a ConfigMap's data: short, and another for other data.
std::string FingerprintOf(const Object& data);

}  // namespace trainyard::reconcile
