// All kinds of jobs that there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/document.h"
#include "kube/api.h"
#include "reconcile/kind.h"

namespace trainyard::ops {

// `accelerators` are names of resources beside those that are known.
std::vector<std::unique_ptr<reconcile::Kind>> AllKinds(const std::vector<std::string>& accelerators = {});

// The one that goes by that name on the command line, as "tfj"; null: none does.
const reconcile::Kind* FindKind(const std::vector<std::unique_ptr<reconcile::Kind>>& kinds,
                                std::string_view name);

// ---- The definitions of our kinds, as a cluster must have them before it can keep their objects.

// One CustomResourceDefinition for each kind: what deploy/crds has.
std::vector<Document> Definitions();

// Creates those that the cluster lacks and changes those that differ.
absl::Status InstallDefinitions(kube::Api& api);

}  // namespace trainyard::ops
