// All kinds of jobs that there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reconcile/kind.h"

namespace trainyard::ops {

// `accelerators` are names of resources beside those that are known.
std::vector<std::unique_ptr<reconcile::Kind>> AllKinds(const std::vector<std::string>& accelerators = {});

// The one that goes by that name on the command line, as "tfj"; null: none does.
const reconcile::Kind* FindKind(const std::vector<std::unique_ptr<reconcile::Kind>>& kinds,
                                std::string_view name);

}  // namespace trainyard::ops
