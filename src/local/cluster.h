// A whole Kubernetes cluster in one process: the API server, the scheduler, the controllers and the nodes, on
// one home folder of this machine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/http.h"
#include "local/home.h"

namespace trainyard::local {

struct ClusterOptions {
  Home home;
  std::string store_url;                        // empty: HOME/store
  std::uint16_t port = 0;                       // 0: the one of the last time, or any that is free
  int nodes = 1;                                // node-1, node-2, ...
  std::map<std::string, std::string> capacity;  // of each node; empty: what this machine has
  std::string release;                          // Trainyard's version
  absl::Duration heartbeat = absl::Seconds(2);
  absl::Duration node_grace = absl::Seconds(10);  // without a heartbeat for so long a node is not ready
};

class Cluster {
 public:
  // Returns when clients can speak to it. FailedPrecondition: one runs on this home already.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterOptions options);
  virtual ~Cluster() = default;  // the pods' processes go on

  virtual const std::string& server() const = 0;  // "https://127.0.0.1:6443"
  // Speaks to its API server as a part of this process.
  virtual kube::Transport& transport() = 0;
};

}  // namespace trainyard::local
