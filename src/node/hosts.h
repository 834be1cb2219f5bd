// Names for pods without a name server: the text of a pod's /etc/hosts. Pure, but for the last function.
//
// In it are the services of all namespaces by their full names (web.ns, web.ns.svc,
// web.ns.svc.cluster.local), those of the pod's own namespace by their short ones (web), a headless service
// as all its pods' addresses, and pods with a hostname below their headless service (worker-0.web).
// `localhost` is the pod's own address: that is where a server of the pod that binds the wildcard address
// really listens.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "node/cluster_objects.h"
#include "node/pod_spec.h"

namespace trainyard::node {

// What all pods share, rendered once for each change of services or endpoints.
struct ClusterNames {
  std::string full;                                             // lines with names that hold everywhere
  std::map<std::string, std::string, std::less<>> short_names;  // by namespace
  bool operator==(const ClusterNames&) const = default;
};
ClusterNames RenderNames(const ClusterObjects& objects);

std::string RenderHosts(const PodSpec& pod, std::string_view pod_ip, const ClusterNames& names);

// In place, because the file is mounted: a new file of the same name would not be seen.
absl::Status WriteInPlace(const std::string& path, std::string_view text);

}  // namespace trainyard::node
