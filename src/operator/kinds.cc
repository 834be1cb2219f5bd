#include "operator/kinds.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"
#include "embedded/crds.h"
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

std::vector<Document> Definitions() {
  std::vector<Document> definitions;
  for (const embedded::File& file : embedded::crds()) {
    auto parsed = ParseYaml(file.bytes);
    TY_CHECK(parsed.ok(), "a definition that was built in cannot be read");
    for (Document& document : *parsed) definitions.push_back(std::move(document));
  }
  return definitions;
}

absl::Status InstallDefinitions(kube::Api& api) {
  for (const Document& definition : Definitions()) {
    const std::string name(StringAt(definition, {"metadata", "name"}));
    const auto applied =
        api.Patch(kube::Resource::CustomResourceDefinitions(), {"", name}, PrintJson(definition),
                  {.type = kube::PatchType::kApply, .field_manager = "trainyard", .force = true});
    if (!applied.ok()) return Annotate(applied.status(), StrCat("cannot install the definition ", name));
  }
  return absl::OkStatus();
}

}  // namespace trainyard::ops
