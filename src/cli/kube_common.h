// What the commands that speak with any cluster share: which cluster, and which namespace.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/cluster_common.h"
#include "cli/command.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"

namespace trainyard::cli {

// --kubeconfig and --context. Without them, the cluster is found as kubectl finds it, and else the embedded
// one of the home folder is meant.
class KubeFlags {
 public:
  void Declare(Flags& flags);
  absl::StatusOr<kube::ClusterConfig> Load() const;
  // The same, but at another address, HOST:PORT or a URL, if one is given. Where no cluster is configured,
  // the address alone will do.
  absl::StatusOr<kube::ClusterConfig> LoadAt(const std::string& address) const;

 private:
  std::string kubeconfig_;
  std::string context_;
  HomeFlag home_;
};

}  // namespace trainyard::cli
