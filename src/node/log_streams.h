// Answers for the logs of the pods of this machine, from the files that their shims write.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apiserver/pod_metrics.h"

namespace trainyard::node {

// One thread reads for all clients. A log that is followed ends when the run that wrote it does; a client
// that reads slowly is waited for.
class LogStreams : public apiserver::PodLogs {
 public:
  // Pods live in HOME/pods.
  static absl::StatusOr<std::unique_ptr<LogStreams>> Start(std::string home);
};

}  // namespace trainyard::node
