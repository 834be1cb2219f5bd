// What the commands that submit jobs to a cluster share: which cluster, where in it, and what its pods are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "client/cluster.h"

namespace trainyard::cli {

// --kubeconfig, --context and --namespace, into the options.
void DeclareCluster(Flags& flags, client::ClusterOptions& options);
// --image and --storage, likewise.
void DeclarePods(Flags& flags, client::ClusterOptions& options);

// NAME=VALUE of each; what is none is misuse of the flag.
absl::StatusOr<std::map<std::string, std::string>> ParsePairs(std::string_view flag,
                                                              const std::vector<std::string>& texts);

}  // namespace trainyard::cli
