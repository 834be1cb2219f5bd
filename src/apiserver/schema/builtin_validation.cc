#include "apiserver/schema/builtin_validation.h"

#include <array>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMostCauses = 16;

void CheckNode(const Document& node, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const Document* spec = Find(node, {"spec"});
  if (spec == nullptr) return;
  ForEachItem(*spec, "taints", path, [&](const Document& taint, const FieldPath& at) {
    if (CheckGiven(taint, "key", at, causes))
      CheckName(taint, "key", at, kube::FindQualifiedNameProblem, causes);
    CheckName(taint, "value", at, kube::FindLabelValueProblem, causes);
  });
}

void CheckNodeUpdate(const Document& before, const Document& after, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  for (const std::string_view key : {"podCIDR", "providerID"}) {
    const std::string_view old_value = StringAt(before, {"spec", key});
    if (!old_value.empty() && old_value != StringAt(after, {"spec", key}))
      causes.Forbidden(path.Child(key), "node updates may not change it except from \"\" to a value");
  }
}

void CheckEvent(const Document& event, Causes& causes) {
  const std::string_view space = StringAt(event, {"metadata", "namespace"});
  const std::string_view about = StringAt(event, {"involvedObject", "namespace"});
  // What has no namespace has its events in the default one.
  if (about == space || (about.empty() && (space == "default" || space == "kube-system"))) return;
  const FieldPath root;
  const FieldPath path = root.Child("involvedObject");
  causes.Invalid(path.Child("namespace"), Document(about), "does not match event.namespace");
}

void CheckLease(const Document& lease, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const auto seconds = IntAt(lease, {"spec", "leaseDurationSeconds"});
  if (seconds && *seconds <= 0)
    causes.Invalid(path.Child("leaseDurationSeconds"), *seconds, "must be greater than 0");
  if (const Document* spec = Find(lease, {"spec"})) CheckNotNegative(*spec, "leaseTransitions", path, causes);
}

struct Rule {
  std::string_view group;
  std::string_view kind;
  void (*check)(const Document& object, Causes& causes);
  void (*check_update)(const Document& before, const Document& after, Causes& causes);
};

constexpr std::array<Rule, 9> kRules = {{
    {"", "Pod", CheckPod, CheckPodUpdate},
    {"", "Service", CheckService, CheckServiceUpdate},
    {"", "Endpoints", CheckEndpoints, nullptr},
    {"", "ConfigMap", CheckConfigMap, CheckConfigMapUpdate},
    {"", "Secret", CheckSecret, CheckSecretUpdate},
    {"", "Node", CheckNode, CheckNodeUpdate},
    {"", "Event", CheckEvent, nullptr},
    {"coordination.k8s.io", "Lease", CheckLease, nullptr},
    {"apiextensions.k8s.io", "CustomResourceDefinition", CheckDefinition, CheckDefinitionUpdate},
}};

const Rule* FindRule(const KindInfo& kind) {
  for (const Rule& rule : kRules) {
    if (rule.group == kind.group && rule.kind == kind.kind) return &rule;
  }
  return nullptr;
}

void CheckState(const KindInfo& kind, const Document& object, Causes& causes) {
  CheckMetadata(kind, object, causes);
  if (const Rule* rule = FindRule(kind)) rule->check(object, causes);
}

}  // namespace

std::vector<kube::Cause> ValidateCreate(const KindInfo& kind, const Document& object) {
  Causes causes(kMostCauses);
  CheckState(kind, object, causes);
  // They are for looking into a pod that runs.
  const bool pod = kind.group.empty() && kind.kind == "Pod";
  if (const Array* added = ArrayAt(object, {"spec", "ephemeralContainers"});
      pod && added != nullptr && !added->empty()) {
    const FieldPath root;
    const FieldPath path = root.Child("spec");
    causes.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create");
  }
  return std::move(causes).Take();
}

std::vector<kube::Cause> ValidateUpdate(const KindInfo& kind, const Document& old_object,
                                        const Document& new_object) {
  Causes causes(kMostCauses);
  CheckMetadataUpdate(old_object, new_object, causes);
  CheckState(kind, new_object, causes);
  const Rule* rule = FindRule(kind);
  if (rule != nullptr && rule->check_update != nullptr) rule->check_update(old_object, new_object, causes);
  return std::move(causes).Take();
}

}  // namespace trainyard::apiserver
