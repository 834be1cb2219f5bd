// The API server as a service of its own cluster, by which pods find it: default/kubernetes.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kube/api.h"

namespace trainyard::local {

// Writes the service and its endpoints; may be called again, with another port.
absl::Status PublishApiServer(kube::Api& api, std::uint16_t port);

}  // namespace trainyard::local
