// What a CustomResourceDefinition looks like.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "apiserver/schema/kind_table.h"
#include "apiserver/schema/rules/rules.h"
#include "apiserver/schema/schema.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return lower;
}

void CheckNames(const Document& spec, const FieldPath& path, Causes& causes) {
  const Document* names = Find(spec, {"names"});
  if (names == nullptr) return;
  const FieldPath at = path.Child("names");
  for (const std::string_view key : {"plural", "singular", "kind", "listKind"})
    CheckGiven(*names, key, at, causes);
  CheckName(*names, "plural", at, kube::FindDns1035LabelProblem, causes);
  CheckName(*names, "singular", at, kube::FindDns1035LabelProblem, causes);
  for (const std::string_view key : {"kind", "listKind"}) {
    const std::string_view kind = StringAt(*names, {key});
    if (const auto wrong = kube::FindDns1035LabelProblem(Lower(kind)); !kind.empty() && !wrong.empty())
      causes.Invalid(at.Child(key), Document(kind), StrCat("may have mixed case, but ", wrong));
  }
  if (StringAt(*names, {"kind"}) == StringAt(*names, {"listKind"}) && !StringAt(*names, {"kind"}).empty())
    causes.Invalid(at.Child("listKind"), *Find(*names, {"listKind"}),
                   "kind and listKind may not be the same");
  for (const std::string_view list : {"shortNames", "categories"}) {
    ForEachItem(*names, list, at, [&](const Document& name, const FieldPath& below) {
      if (const auto wrong = kube::FindDns1035LabelProblem(Text(name)); !wrong.empty())
        causes.Invalid(below, name, wrong);
    });
  }
}

void CheckSubresources(const Document& version, const FieldPath& path, Causes& causes) {
  const Document* scale = Find(version, {"subresources", "scale"});
  if (scale == nullptr) return;
  const FieldPath subresources = path.Child("subresources");
  const FieldPath at = subresources.Child("scale");
  const auto check = [&](std::string_view key, std::string_view beginning, bool also_spec) {
    const std::string_view value = StringAt(*scale, {key});
    if (value.empty()) {
      if (!also_spec) causes.Required(at.Child(key));
    } else if (!value.starts_with(beginning) && !(also_spec && value.starts_with(".spec."))) {
      causes.Invalid(at.Child(key), Document(value), StrCat("should be a json path under ", beginning));
    }
  };
  check("specReplicasPath", ".spec.", false);
  check("statusReplicasPath", ".status.", false);
  check("labelSelectorPath", ".status.", true);
}

void CheckColumns(const Document& version, const FieldPath& path, Causes& causes) {
  constexpr std::array<std::string_view, 5> kTypes = {"boolean", "date", "integer", "number", "string"};
  ForEachItem(version, "additionalPrinterColumns", path, [&](const Document& column, const FieldPath& at) {
    CheckGiven(column, "name", at, causes);
    const std::string_view type = StringAt(column, {"type"});
    if (std::ranges::find(kTypes, type) == kTypes.end())
      causes.Invalid(at.Child("type"), Document(type), "must be one of boolean,date,integer,number,string");
    const std::string_view value = StringAt(column, {"jsonPath"});
    if (value.empty()) {
      causes.Required(at.Child("jsonPath"));
    } else if (value[0] != '.') {
      causes.Invalid(at.Child("jsonPath"), Document(value), "must be a simple json path starting with .");
    }
  });
}

void CheckVersion(const Document& version, const FieldPath& path, Causes& causes) {
  if (CheckGiven(version, "name", path, causes))
    CheckName(version, "name", path, kube::FindDns1035LabelProblem, causes);
  const FieldPath schema_path = path.Child("schema");
  const Document* schema = Find(version, {"schema", "openAPIV3Schema"});
  if (schema == nullptr) {
    causes.Required(schema_path.Child("openAPIV3Schema"), "schemas are required");
  } else if (const auto parsed = ParseOpenApiSchema(*schema); !parsed.ok()) {
    // "openAPIV3Schema.properties[spec].type: what is wrong with it"
    const std::string_view message = Message(parsed.status());
    const std::size_t colon = message.find(": ");
    const bool has_path = message.starts_with("openAPIV3Schema") && colon != std::string_view::npos;
    causes.Wrong(schema_path.Child(has_path ? message.substr(0, colon) : "openAPIV3Schema"),
                 has_path ? message.substr(colon + 2) : message);
  }
  CheckSubresources(version, path, causes);
  CheckColumns(version, path, causes);
}

void CheckVersions(const Document& spec, const FieldPath& path, Causes& causes) {
  std::size_t stored = 0;
  std::set<std::string, std::less<>> names;
  bool unique = true;
  ForEachItem(spec, "versions", path, [&](const Document& version, const FieldPath& at) {
    CheckVersion(version, at, causes);
    stored += BoolAt(version, {"storage"}) ? 1 : 0;
    unique = names.emplace(StringAt(version, {"name"})).second && unique;
  });
  const FieldPath list = path.Child("versions");
  if (!unique) causes.Wrong(list, "must contain unique version names");
  if (stored != 1) causes.Wrong(list, "must have exactly one version marked as storage version");
}

}  // namespace

void CheckDefinition(const Document& definition, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const Document* spec = Find(definition, {"spec"});
  if (spec == nullptr) return causes.Required(path);
  const std::string_view group = StringAt(*spec, {"group"});
  if (CheckGiven(*spec, "group", path, causes)) {
    CheckName(*spec, "group", path, kube::FindDns1123SubdomainProblem, causes);
    if (group.find('.') == std::string_view::npos)
      causes.Invalid(path.Child("group"), Document(group), "should be a domain with at least one dot");
  }
  const bool built_in = std::ranges::any_of(BuiltInKinds().kinds(), [group](const KindInfo& kind) {
    return !kind.group.empty() && kind.group == group;
  });
  if (built_in) causes.Invalid(path.Child("group"), Document(group), "is a group that is built in");
  const std::string name = StrCat(StringAt(*spec, {"names", "plural"}), ".", group);
  if (StringAt(definition, {"metadata", "name"}) != name) {
    const FieldPath metadata = root.Child("metadata");
    causes.Invalid(metadata.Child("name"), Document(StringAt(definition, {"metadata", "name"})),
                   StrCat("must be spec.names.plural+\".\"+spec.group, which is ", name));
  }
  CheckNames(*spec, path, causes);
  CheckVersions(*spec, path, causes);
  if (BoolAt(*spec, {"preserveUnknownFields"})) {
    causes.Invalid(path.Child("preserveUnknownFields"), true,
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema instead");
  }
  const FieldPath conversion = path.Child("conversion");
  if (StringAt(*spec, {"conversion", "strategy"}) == "Webhook" &&
      Find(*spec, {"conversion", "webhook", "clientConfig"}) == nullptr) {
    const FieldPath webhook = conversion.Child("webhook");
    causes.Required(webhook.Child("clientConfig"), "required when strategy is set to Webhook");
  }
}

void CheckDefinitionUpdate(const Document& before, const Document& after, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const FieldPath names = path.Child("names");
  const auto unchanged = [&](Path keys, const FieldPath& at) {
    if (StringAt(before, keys) != StringAt(after, keys))
      causes.Invalid(at, Document(StringAt(after, keys)), kImmutable);
  };
  unchanged({"spec", "group"}, path.Child("group"));
  unchanged({"spec", "scope"}, path.Child("scope"));
  unchanged({"spec", "names", "plural"}, names.Child("plural"));
  unchanged({"spec", "names", "kind"}, names.Child("kind"));
  // Objects may still be stored in a version that has been used; without it nobody could read them.
  const Array* stored = ArrayAt(before, {"status", "storedVersions"});
  const Array* versions = ArrayAt(after, {"spec", "versions"});
  if (stored == nullptr || versions == nullptr) return;
  const FieldPath status = root.Child("status");
  const FieldPath list = status.Child("storedVersions");
  for (std::size_t i = 0; i < stored->size(); ++i) {
    const bool kept = std::ranges::any_of(*versions, [&](const Document& version) {
      return StringAt(version, {"name"}) == Text((*stored)[i]);
    });
    if (!kept) causes.Invalid(list.Index(i), (*stored)[i], "must appear in spec.versions");
  }
}

}  // namespace trainyard::apiserver
