#include "apiserver/crd.h"

#include <algorithm>
#include <cctype>

#include "base/letters.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

Object Condition(std::string_view type, std::string_view reason, std::string_view message, absl::Time now) {
  return {{"type", type},
          {"status", "True"},
          {"lastTransitionTime", PrintTime(now)},
          {"reason", reason},
          {"message", message}};
}

kube::Cause Invalid(std::string field, std::string_view value, std::string_view why) {
  return {.reason = "FieldValueInvalid",
          .field = std::move(field),
          .message = StrCat("Invalid value: \"", Escaped(value), "\": ", why)};
}

std::vector<std::string> TextsAt(const Document& document, Path path) {
  std::vector<std::string> texts;
  if (const Array* array = ArrayAt(document, path)) {
    for (const Document& item : *array) texts.emplace_back(Text(item));
  }
  return texts;
}

PrinterColumn ColumnOf(const Document& column) {
  return {.name = std::string(StringAt(column, {"name"})),
          .type = std::string(StringAt(column, {"type"})),
          .format = std::string(StringAt(column, {"format"})),
          .description = std::string(StringAt(column, {"description"})),
          .json_path = std::string(StringAt(column, {"jsonPath"})),
          .priority = IntAt(column, {"priority"}).value_or(0)};
}

absl::StatusOr<ServedVersion> VersionOf(const Document& version) {
  ServedVersion served{.name = std::string(StringAt(version, {"name"})),
                       .storage = BoolAt(version, {"storage"}),
                       .deprecated = BoolAt(version, {"deprecated"}),
                       .deprecation_warning = std::string(StringAt(version, {"deprecationWarning"})),
                       .has_status = Find(version, {"subresources", "status"}) != nullptr};
  const Document* schema = Find(version, {"schema", "openAPIV3Schema"});
  TY_ASSIGN_OR_RETURN(served.schema,
                      ParseOpenApiSchema(schema != nullptr ? *schema : Document(Object{{"type", "object"}})));
  if (const Document* scale = Find(version, {"subresources", "scale"})) {
    served.scale = ScalePaths{.spec_replicas = std::string(StringAt(*scale, {"specReplicasPath"})),
                              .status_replicas = std::string(StringAt(*scale, {"statusReplicasPath"})),
                              .label_selector = std::string(StringAt(*scale, {"labelSelectorPath"}))};
  }
  if (const Array* columns = ArrayAt(version, {"additionalPrinterColumns"})) {
    for (const Document& column : *columns) served.columns.push_back(ColumnOf(column));
  }
  return served;
}

void CheckVersions(const Document& definition, std::vector<kube::Cause>& causes) {
  const Array* versions = ArrayAt(definition, {"spec", "versions"});
  if (versions == nullptr || versions->empty()) {
    causes.push_back({.reason = "FieldValueRequired",
                      .field = "spec.versions",
                      .message = "Required value: at least one version"});
    return;
  }
  const auto storage = std::count_if(versions->begin(), versions->end(),
                                     [](const Document& v) { return BoolAt(v, {"storage"}); });
  if (storage != 1) {
    causes.push_back(
        Invalid("spec.versions", std::to_string(storage), "exactly one version must be the storage version"));
  }
  for (std::size_t at = 0; at < versions->size(); ++at) {
    const Document& version = (*versions)[at];
    const std::string field = StrCat("spec.versions[", at, "]");
    if (const auto why = kube::FindDns1035LabelProblem(StringAt(version, {"name"})); !why.empty()) {
      causes.push_back(Invalid(field + ".name", StringAt(version, {"name"}), why));
    }
    if (Find(version, {"schema", "openAPIV3Schema"}) == nullptr) {
      causes.push_back({.reason = "FieldValueRequired",
                        .field = field + ".schema.openAPIV3Schema",
                        .message = "Required value: schemas are required"});
      continue;
    }
    if (const auto parsed = VersionOf(version); !parsed.ok()) {
      causes.push_back(
          Invalid(field + ".schema.openAPIV3Schema", StringAt(version, {"name"}), Message(parsed.status())));
    }
  }
}

void CheckUnchanged(const Document& live, const Document& definition, std::vector<kube::Cause>& causes) {
  const auto check = [&](Path path, std::string field) {
    if (StringAt(live, path) != StringAt(definition, path)) {
      causes.push_back(Invalid(std::move(field), StringAt(definition, path), "field is immutable"));
    }
  };
  check({"spec", "group"}, "spec.group");
  check({"spec", "scope"}, "spec.scope");
  check({"spec", "names", "kind"}, "spec.names.kind");
  check({"spec", "names", "plural"}, "spec.names.plural");
}

void GiveNames(Document& definition) {
  Object& names = MakeObjectAt(definition, {"spec", "names"});
  const std::string kind(StringAt(definition, {"spec", "names", "kind"}));
  if (names.if_contains("singular") == nullptr) names["singular"] = LowerCase(kind);
  if (names.if_contains("listKind") == nullptr) names["listKind"] = kind + "List";
  MakeObjectAt(definition, {"spec", "conversion"}).emplace("strategy", "None");
}

std::string StorageVersion(const Document& definition) {
  if (const Array* versions = ArrayAt(definition, {"spec", "versions"})) {
    for (const Document& version : *versions) {
      if (BoolAt(version, {"storage"})) return std::string(StringAt(version, {"name"}));
    }
  }
  return "";
}

}  // namespace

void PrepareDefinition(Document& definition, absl::Time now) {
  GiveNames(definition);
  definition.get_object()["status"] = Object{
      {"acceptedNames", *Find(definition, {"spec", "names"})},
      {"conditions",
       Array{Condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
             Condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now)}},
      {"storedVersions", Array{StorageVersion(definition)}}};
  MakeObjectAt(definition, {"metadata"})["finalizers"] = Array{kDefinitionFinalizer};
}

void RefreshDefinition(const Document& live, Document& definition) {
  GiveNames(definition);
  Object& status = MakeObjectAt(definition, {"status"});
  if (status.empty()) status = ObjectAt(live, {"status"}) != nullptr ? *ObjectAt(live, {"status"}) : Object();
  status["acceptedNames"] = *Find(definition, {"spec", "names"});
  Document& stored = status["storedVersions"];
  if (!stored.is_array()) stored.emplace_array();
  const std::string storage = StorageVersion(definition);
  const bool known = std::any_of(stored.get_array().begin(), stored.get_array().end(),
                                 [&](const Document& version) { return Text(version) == storage; });
  if (!known) stored.get_array().emplace_back(storage);
}

std::vector<kube::Cause> ValidateDefinition(const Document* live, const Document& definition) {
  std::vector<kube::Cause> causes;
  const std::string_view group = StringAt(definition, {"spec", "group"});
  const std::string_view plural = StringAt(definition, {"spec", "names", "plural"});
  const std::string_view scope = StringAt(definition, {"spec", "scope"});
  const std::string_view name = StringAt(definition, {"metadata", "name"});
  if (name != StrCat(plural, ".", group)) {
    causes.push_back(Invalid("metadata.name", name,
                             StrCat("must be spec.names.plural+\".\"+spec.group: ", plural, ".", group)));
  }
  if (const auto why = kube::FindDns1123SubdomainProblem(group); !why.empty())
    causes.push_back(Invalid("spec.group", group, why));
  if (const auto why = kube::FindDns1035LabelProblem(plural); !why.empty()) {
    causes.push_back(Invalid("spec.names.plural", plural, why));
  }
  if (StringAt(definition, {"spec", "names", "kind"}).empty()) {
    causes.push_back(
        {.reason = "FieldValueRequired", .field = "spec.names.kind", .message = "Required value"});
  }
  if (scope != "Namespaced" && scope != "Cluster") {
    causes.push_back({.reason = "FieldValueNotSupported",
                      .field = "spec.scope",
                      .message = StrCat("Unsupported value: \"", Escaped(scope),
                                        "\": supported values: \"Cluster\", \"Namespaced\"")});
  }
  if (StringAt(definition, {"spec", "conversion", "strategy"}) == "Webhook") {
    causes.push_back(
        {.reason = "FieldValueNotSupported",
         .field = "spec.conversion.strategy",
         .message =
             "Unsupported value: \"Webhook\": supported values: \"None\" (this server calls no webhooks)"});
  }
  CheckVersions(definition, causes);
  if (live != nullptr) CheckUnchanged(*live, definition, causes);
  return causes;
}

absl::StatusOr<std::shared_ptr<const ResourceInfo>> ResourceOf(const Document& definition) {
  auto resource = std::make_shared<ResourceInfo>();
  resource->group = StringAt(definition, {"spec", "group"});
  resource->plural = StringAt(definition, {"spec", "names", "plural"});
  resource->singular = StringAt(definition, {"spec", "names", "singular"});
  resource->kind = StringAt(definition, {"spec", "names", "kind"});
  resource->list_kind = StringAt(definition, {"spec", "names", "listKind"});
  resource->short_names = TextsAt(definition, {"spec", "names", "shortNames"});
  resource->categories = TextsAt(definition, {"spec", "names", "categories"});
  resource->namespaced = StringAt(definition, {"spec", "scope"}) == "Namespaced";
  resource->custom = true;
  resource->names = {.group = resource->group,
                     .kind = resource->kind,
                     .plural = resource->plural,
                     .singular = resource->singular,
                     .namespaced = resource->namespaced};
  resource->generation = true;
  if (const Array* versions = ArrayAt(definition, {"spec", "versions"})) {
    for (const Document& version : *versions) {
      if (!BoolAt(version, {"served"}, true)) continue;
      auto served = VersionOf(version);
      if (!served.ok()) {
        return Annotate(served.status(), StrCat("version ", StringAt(version, {"name"}), " of ",
                                                resource->plural, ".", resource->group));
      }
      resource->versions.push_back(*std::move(served));
    }
  }
  return resource;
}

}  // namespace trainyard::apiserver
