// Where the API server learns what pods use, and how it tells it: as metrics.k8s.io does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace trainyard::apiserver {

inline constexpr std::string_view kMetricsGroup = "metrics.k8s.io";
inline constexpr std::string_view kMetricsVersion = "v1beta1";

struct PodUsage {
  std::string ns;
  std::string pod;
  double processors = 0;  // since it was measured before
  double memory_bytes = 0;
  absl::Duration window;  // since then
};

class PodMetrics {
 public:
  virtual ~PodMetrics() = default;
  // Of every pod that runs. Does not block for long.
  virtual std::vector<PodUsage> Measure() = 0;
};

// A PodMetricsList, as JSON text; "": of all namespaces. Pure.
std::string PrintPodMetrics(const std::vector<PodUsage>& all, std::string_view ns, absl::Time now);

}  // namespace trainyard::apiserver
