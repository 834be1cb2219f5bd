// What the pods of a home use of this machine, by the processes below their shims.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apiserver/pod_metrics.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace trainyard::node {

// From any thread.
class PodUsageReader final : public apiserver::PodMetrics {
 public:
  explicit PodUsageReader(std::string home) : home_(std::move(home)) {}
  std::vector<apiserver::PodUsage> Measure() override;

 private:
  struct Sample {
    std::string ns;
    std::string pod;
    double processor_seconds = 0;
    SteadyTime time;
  };

  const std::string home_;
  Mutex mu_;
  std::map<std::string, Sample> samples_ TY_GUARDED_BY(mu_);  // by the pod's uid
  std::vector<apiserver::PodUsage> last_ TY_GUARDED_BY(mu_);  // what was measured
  SteadyTime measured_ TY_GUARDED_BY(mu_);                    // and when
};

}  // namespace trainyard::node
