// What pods use, as the cluster's metrics (metrics.k8s.io) say.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "kube/api.h"

namespace trainyard::view {

struct Usage {
  double processors = 0;
  double memory_bytes = 0;
};
// By the pods' names. NotFound, as kube::IsNotFound() sees it: the cluster has no metrics.
absl::StatusOr<std::map<std::string, Usage>> ReadUsage(kube::Api& api, const std::string& ns);

// "12Mi", "1.5Gi".
std::string PrintBytes(double bytes);

}  // namespace trainyard::view
