#include "operator/definitions.h"

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"
#include "embedded/crds.h"

namespace trainyard::ops {

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
