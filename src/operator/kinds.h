// All kinds of jobs that there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kind.h"

namespace trainyard::ops {

// `accelerators` are names of resources beside those that are known.
std::vector<std::unique_ptr<Kind>> AllKinds(const std::vector<std::string>& accelerators = {});

// The one that goes by that name on the command line, as "tfj"; null: none does.
const Kind* FindKind(const std::vector<std::unique_ptr<Kind>>& kinds, std::string_view name);

}  // namespace trainyard::ops
