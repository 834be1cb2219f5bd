#include "operator/kinds.h"

#include <algorithm>

#include "operator/aijob.h"
#include "operator/pytorchjob.h"
#include "operator/tfjob.h"

namespace trainyard::ops {

std::vector<std::unique_ptr<reconcile::Kind>> AllKinds(const std::vector<std::string>& accelerators) {
  std::vector<std::unique_ptr<reconcile::Kind>> kinds;
  kinds.push_back(std::make_unique<TfJobKind>());
  kinds.push_back(std::make_unique<PyTorchJobKind>());
  kinds.push_back(std::make_unique<AiJobKind>(accelerators));
  return kinds;
}

const reconcile::Kind* FindKind(const std::vector<std::unique_ptr<reconcile::Kind>>& kinds,
                                std::string_view name) {
  const auto found = std::ranges::find_if(kinds, [&](const std::unique_ptr<reconcile::Kind>& kind) {
    return std::ranges::find(kind->names(), name) != kind->names().end();
  });
  return found == kinds.end() ? nullptr : found->get();
}

}  // namespace trainyard::ops
