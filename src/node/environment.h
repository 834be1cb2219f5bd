// The environment of a container's processes, as Kubernetes defines it. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "node/cluster_objects.h"
#include "node/pod_spec.h"

namespace trainyard::node {

// What a pod has been given by its node, beside its spec.
struct PodFacts {
  std::string pod_ip;
  std::string host_ip;
  Resources allocatable;  // of the node: the limit of a container that has none
};

// What one variable or argument can hold; the system passes no more on to a process.
inline constexpr std::size_t kMaxVariableBytes = std::size_t{128} << 10;

// Replaces $(NAME) by the variable's value; one that is not defined stays as it is. $$ is a $ that begins no
// reference. `lookup` returns null for what is not defined.
// Whatever is longer than kMaxVariableBytes is cut off somewhere behind that.
using VariableLookup = std::function<const std::string*(std::string_view name)>;
std::string ExpandVariables(std::string_view text, const VariableLookup& lookup);
std::vector<std::string> ExpandVariables(const std::vector<std::string>& texts, const StringMap& variables);

// WEB_SERVICE_HOST and its kin, for the services of the pod's namespace if it wants them, and for the API
// server's own (default/kubernetes) always.
StringMap ServiceVariables(const ClusterObjects& objects, std::string_view ns, bool links);

// A field of the pod: "metadata.name", "metadata.labels['app']", "status.podIP". InvalidArgument: there is no
// such field.
absl::StatusOr<std::string> FieldValue(const PodSpec& pod, const PodFacts& facts, std::string_view path);
// "limits.cpu" divided by the divisor, rounded up. InvalidArgument: no such resource or divisor.
absl::StatusOr<std::string> ResourceValue(const PodSpec& pod, const PodFacts& facts,
                                          const ContainerSpec& asking, const ResourceFieldRef& ref);

// All variables of the container but those of the machine. NotFound: what it refers to and that must be there
// is not; the message is a kubelet's.
absl::StatusOr<StringMap> BuildEnvironment(const PodSpec& pod, const ContainerSpec& container,
                                           const ClusterObjects& objects, const PodFacts& facts);

bool IsVariableName(std::string_view name);

}  // namespace trainyard::node
