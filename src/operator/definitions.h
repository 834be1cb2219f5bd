// The definitions of our kinds, as a cluster must have them before it can keep their objects.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/document.h"
#include "kube/api.h"

namespace trainyard::ops {

// One CustomResourceDefinition for each kind: what deploy/crds has.
std::vector<Document> Definitions();

// Creates those that the cluster lacks and changes those that differ.
absl::Status InstallDefinitions(kube::Api& api);

}  // namespace trainyard::ops
