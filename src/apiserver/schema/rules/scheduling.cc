// What a pod may say of the nodes that it goes to.
#include <cstdint>
#include <set>
#include <string>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

void CheckTolerations(const Document& spec, const FieldPath& path, Causes& causes) {
  ForEachItem(spec, "tolerations", path, [&](const Document& toleration, const FieldPath& at) {
    CheckName(toleration, "key", at, kube::FindQualifiedNameProblem, causes);
    const std::string_view what = StringAt(toleration, {"operator"});
    const std::string_view value = StringAt(toleration, {"value"});
    const std::string_view effect = StringAt(toleration, {"effect"});
    if (StringAt(toleration, {"key"}).empty() && what != "Exists")
      causes.Invalid(at.Child("operator"), Document(what), "operator must be Exists when `key` is empty");
    if (what == "Exists" && !value.empty())
      causes.Invalid(at.Child("operator"), Document(value),
                     "value must be empty when `operator` is 'Exists'");
    if (what != "Exists") CheckName(toleration, "value", at, kube::FindLabelValueProblem, causes);
    if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
      causes.NotSupported(at.Child("effect"), Document(effect),
                          {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    if (IntAt(toleration, {"tolerationSeconds"}) && effect != "NoExecute")
      causes.Invalid(at.Child("effect"), Document(effect),
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
  });
}

// A node has one field to be found by, and it is compared with one value.
void CheckNodeField(const Document& item, const FieldPath& at, std::size_t values, Causes& causes) {
  const std::string_view what = StringAt(item, {"operator"});
  const std::string_view key = StringAt(item, {"key"});
  if (key != "metadata.name")
    causes.Invalid(at.Child("key"), Document(key), "not a valid field selector key");
  if (what != "In" && what != "NotIn")
    causes.Invalid(at.Child("operator"), Document(what), "not a valid selector operator");
  else if (values > 1)
    causes.Required(at.Child("values"),
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
}

void CheckNodeTerm(const Document& term, const FieldPath& path, Causes& causes) {
  for (const std::string_view list : {"matchExpressions", "matchFields"}) {
    ForEachItem(term, list, path, [&](const Document& item, const FieldPath& at) {
      const std::string_view what = StringAt(item, {"operator"});
      const Array* values = ArrayAt(item, {"values"});
      const std::size_t count = values == nullptr ? 0 : values->size();
      if ((what == "In" || what == "NotIn") && count == 0)
        causes.Required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
      if ((what == "Exists" || what == "DoesNotExist") && count > 0)
        causes.Forbidden(at.Child("values"),
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      if ((what == "Gt" || what == "Lt") && count != 1)
        causes.Required(at.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
      if ((what == "Gt" || what == "Lt") && count == 1 && !ParseNumber<std::int64_t>(Text(values->front())))
        causes.Invalid(at.Child("values"), values->front(), "must be a whole number for 'Lt' and 'Gt'");
      if (list == "matchExpressions") CheckName(item, "key", at, kube::FindQualifiedNameProblem, causes);
      if (list == "matchFields") CheckNodeField(item, at, count, causes);
    });
  }
}

void CheckNodeAffinity(const Document& affinity, const FieldPath& path, Causes& causes) {
  const Document* node = Find(affinity, {"nodeAffinity"});
  if (node == nullptr) return;
  const FieldPath at = path.Child("nodeAffinity");
  if (const Document* required = Find(*node, {"requiredDuringSchedulingIgnoredDuringExecution"})) {
    const FieldPath below = at.Child("requiredDuringSchedulingIgnoredDuringExecution");
    const Array* terms = ArrayAt(*required, {"nodeSelectorTerms"});
    if (terms == nullptr || terms->empty())
      causes.Required(below.Child("nodeSelectorTerms"), "must have at least one node selector term");
    ForEachItem(*required, "nodeSelectorTerms", below,
                [&](const Document& term, const FieldPath& place) { CheckNodeTerm(term, place, causes); });
  }
  ForEachItem(*node, "preferredDuringSchedulingIgnoredDuringExecution", at,
              [&](const Document& term, const FieldPath& below) {
                CheckRange(term, "weight", below, 1, 100, causes);
                if (const Document* preference = Find(term, {"preference"}))
                  CheckNodeTerm(*preference, below.Child("preference"), causes);
              });
}

void CheckPodTerm(const Document& term, const FieldPath& path, Causes& causes) {
  if (StringAt(term, {"topologyKey"}).empty()) causes.Required(path.Child("topologyKey"), "can not be empty");
  CheckName(term, "topologyKey", path, kube::FindQualifiedNameProblem, causes);
  CheckLabelSelector(term, "labelSelector", path, causes);
  CheckLabelSelector(term, "namespaceSelector", path, causes);
}

void CheckPodAffinity(const Document& affinity, std::string_view which, const FieldPath& path,
                      Causes& causes) {
  const Document* pods = Find(affinity, {which});
  if (pods == nullptr) return;
  const FieldPath at = path.Child(which);
  ForEachItem(*pods, "requiredDuringSchedulingIgnoredDuringExecution", at,
              [&](const Document& term, const FieldPath& below) { CheckPodTerm(term, below, causes); });
  ForEachItem(*pods, "preferredDuringSchedulingIgnoredDuringExecution", at,
              [&](const Document& term, const FieldPath& below) {
                CheckRange(term, "weight", below, 1, 100, causes);
                if (const Document* inner = Find(term, {"podAffinityTerm"}))
                  CheckPodTerm(*inner, below.Child("podAffinityTerm"), causes);
              });
}

void CheckSpread(const Document& spec, const FieldPath& path, Causes& causes) {
  std::set<std::pair<std::string, std::string>> seen;
  ForEachItem(spec, "topologySpreadConstraints", path, [&](const Document& constraint, const FieldPath& at) {
    const auto skew = IntAt(constraint, {"maxSkew"});
    if (skew && *skew <= 0) causes.Invalid(at.Child("maxSkew"), *skew, "must be greater than zero");
    if (StringAt(constraint, {"topologyKey"}).empty())
      causes.Required(at.Child("topologyKey"), "can not be empty");
    CheckLabelSelector(constraint, "labelSelector", at, causes);
    const std::string key(StringAt(constraint, {"topologyKey"}));
    const std::string action(StringAt(constraint, {"whenUnsatisfiable"}));
    if (!seen.emplace(key, action).second)
      causes.Duplicate(at, Document(StrCat("{", key, ", ", action, "}")));
  });
}

}  // namespace

void CheckScheduling(const Document& spec, const FieldPath& path, Causes& causes) {
  CheckLabels(spec, "nodeSelector", path, causes);
  CheckName(spec, "nodeName", path, kube::FindDns1123SubdomainProblem, causes);
  CheckTolerations(spec, path, causes);
  CheckSpread(spec, path, causes);
  const Document* affinity = Find(spec, {"affinity"});
  if (affinity == nullptr) return;
  const FieldPath at = path.Child("affinity");
  CheckNodeAffinity(*affinity, at, causes);
  CheckPodAffinity(*affinity, "podAffinity", at, causes);
  CheckPodAffinity(*affinity, "podAntiAffinity", at, causes);
}

}  // namespace trainyard::apiserver
