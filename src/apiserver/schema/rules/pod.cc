// What a pod looks like apart from its containers and volumes, and what of it can be changed.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

constexpr std::int64_t kMaxInt32 = 2147483647;

void CheckSecurity(const Document& parent, const FieldPath& path, Causes& causes) {
  const Document* context = Find(parent, {"securityContext"});
  if (context == nullptr) return;
  const FieldPath at = path.Child("securityContext");
  for (const std::string_view key : {"runAsUser", "runAsGroup", "fsGroup"})
    CheckRange(*context, key, at, 0, kMaxInt32, causes);
}

void CheckNetwork(const Document& spec, const FieldPath& path, Causes& causes) {
  CheckName(spec, "hostname", path, kube::FindDns1123LabelProblem, causes);
  CheckName(spec, "subdomain", path, kube::FindDns1123LabelProblem, causes);
  ForEachItem(spec, "hostAliases", path, [&](const Document& alias, const FieldPath& at) {
    if (!IsIpAddress(StringAt(alias, {"ip"})))
      causes.Invalid(at.Child("ip"), Document(StringAt(alias, {"ip"})), "must be a valid IP address");
    ForEachItem(alias, "hostnames", at, [&](const Document& name, const FieldPath& below) {
      if (const auto wrong = kube::FindDns1123SubdomainProblem(Text(name)); !wrong.empty())
        causes.Invalid(below, name, wrong);
    });
  });
  const Array* servers = ArrayAt(spec, {"dnsConfig", "nameservers"});
  if (StringAt(spec, {"dnsPolicy"}) == "None" && (servers == nullptr || servers->empty())) {
    const FieldPath config = path.Child("dnsConfig");
    causes.Required(config.Child("nameservers"),
                    "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
}

bool SameToleration(const Document& a, const Document& b) {
  return std::ranges::all_of(std::initializer_list<std::string_view>{"key", "operator", "value", "effect"},
                             [&](std::string_view key) { return StringAt(a, {key}) == StringAt(b, {key}); });
}

void CheckTolerationsUpdate(const Document& before, const Document& after, const FieldPath& path,
                            Causes& causes) {
  const Array* old_list = ArrayAt(before, {"spec", "tolerations"});
  const Array* new_list = ArrayAt(after, {"spec", "tolerations"});
  if (old_list == nullptr) return;
  for (const Document& toleration : *old_list) {
    const bool kept = new_list != nullptr && std::ranges::any_of(*new_list, [&](const Document& other) {
                        return SameToleration(toleration, other);
                      });
    if (!kept) {
      return causes.Forbidden(path.Child("tolerations"),
                              "existing toleration can not be modified except its tolerationSeconds");
    }
  }
}

// Puts the old value back, so that what is left of the difference is what may not differ.
void Restore(const Object& before, Object& after, std::string_view key) {
  if (const Document* value = before.if_contains(key)) {
    after[key] = *value;
  } else {
    Remove(after, key);
  }
}

void RestoreImages(const Object& before, Object& after, std::string_view list) {
  const Document* old_list = before.if_contains(list);
  Document* new_list = after.if_contains(list);
  if (old_list == nullptr || new_list == nullptr || !old_list->is_array() || !new_list->is_array()) return;
  const std::size_t count = std::min(old_list->get_array().size(), new_list->get_array().size());
  for (std::size_t i = 0; i < count; ++i) {
    const Object* from = old_list->get_array()[i].if_object();
    Object* to = new_list->get_array()[i].if_object();
    if (from != nullptr && to != nullptr) Restore(*from, *to, "image");
  }
}

bool IsUnset(const Document& value) {
  return value.is_null() || (value.is_string() && value.get_string().empty()) ||
         (value.is_array() && value.get_array().empty()) || (value.is_object() && value.get_object().empty());
}

// Equal, where what is empty counts as missing: clients write an empty list or leave it out.
bool IsSameSpec(const Document& a, const Document& b);

bool HasSame(const Object& a, const Object& b) {
  return std::ranges::all_of(a, [&](const auto& member) {
    const Document* other = b.if_contains(member.key());
    return other != nullptr ? IsSameSpec(member.value(), *other) : IsUnset(member.value());
  });
}

bool IsSameSpec(const Document& a, const Document& b) {
  if (a.is_object() && b.is_object())
    return HasSame(a.get_object(), b.get_object()) && HasSame(b.get_object(), a.get_object());
  if (a.is_array() && b.is_array()) return std::ranges::equal(a.get_array(), b.get_array(), IsSameSpec);
  return a == b;
}

// The first member that differs, for a message that says where to look.
std::string FirstDifference(const Object& before, const Object& after) {
  for (const auto& member : after) {
    const Document* old_value = before.if_contains(member.key());
    const bool same = old_value == nullptr ? IsUnset(member.value()) : IsSameSpec(*old_value, member.value());
    if (!same) return StrCat("spec.", Key(member));
  }
  for (const auto& member : before) {
    if (!after.contains(member.key()) && !IsUnset(member.value())) return StrCat("spec.", Key(member));
  }
  return "spec";
}

void CheckDeadlineUpdate(const Document& before, const Document& after, const FieldPath& path,
                         Causes& causes) {
  const auto old_value = IntAt(before, {"spec", "activeDeadlineSeconds"});
  const auto new_value = IntAt(after, {"spec", "activeDeadlineSeconds"});
  const FieldPath at = path.Child("activeDeadlineSeconds");
  if (old_value && !new_value)
    causes.Invalid(at, nullptr, "must not update from a positive integer to nil value");
  if (old_value && new_value && *new_value > *old_value)
    causes.Invalid(at, *new_value, "must be less than or equal to previous value");
}

}  // namespace

void CheckPod(const Document& pod, Causes& causes) {
  const Document* spec = Find(pod, {"spec"});
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  if (spec == nullptr) return causes.Required(path);
  CheckVolumes(*spec, path, causes);
  CheckContainers(*spec, path, causes);
  CheckScheduling(*spec, path, causes);
  CheckNetwork(*spec, path, causes);
  CheckSecurity(*spec, path, causes);
  for (const std::string_view list : {"containers", "initContainers"}) {
    ForEachItem(*spec, list, path, [&](const Document& container, const FieldPath& at) {
      CheckSecurity(container, at, causes);
    });
  }
  CheckRange(*spec, "activeDeadlineSeconds", path, 1, kMaxInt32, causes);
  CheckName(*spec, "serviceAccountName", path, kube::FindDns1123SubdomainProblem, causes);
  ForEachItem(*spec, "readinessGates", path, [&](const Document& gate, const FieldPath& at) {
    CheckName(gate, "conditionType", at, kube::FindQualifiedNameProblem, causes);
  });
}

void CheckPodUpdate(const Document& before, const Document& after, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const Object* old_spec = ObjectAt(before, {"spec"});
  const Object* new_spec = ObjectAt(after, {"spec"});
  if (old_spec == nullptr || new_spec == nullptr) return;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Array* old_list = ArrayAt(before, {"spec", list});
    const Array* new_list = ArrayAt(after, {"spec", list});
    if ((old_list == nullptr ? 0 : old_list->size()) != (new_list == nullptr ? 0 : new_list->size()))
      return causes.Forbidden(path.Child(list), "pod updates may not add or remove containers");
  }
  CheckDeadlineUpdate(before, after, path, causes);
  CheckTolerationsUpdate(before, after, path, causes);
  if (*old_spec == *new_spec) return;
  Object restored = *new_spec;
  for (const std::string_view key : {"activeDeadlineSeconds", "tolerations", "schedulingGates"})
    Restore(*old_spec, restored, key);
  RestoreImages(*old_spec, restored, "containers");
  RestoreImages(*old_spec, restored, "initContainers");
  const auto grace = IntAt(before, {"spec", "terminationGracePeriodSeconds"});
  if (grace && *grace < 0 && IntAt(after, {"spec", "terminationGracePeriodSeconds"}) == 1)
    Restore(*old_spec, restored, "terminationGracePeriodSeconds");
  if (HasSame(restored, *old_spec) && HasSame(*old_spec, restored)) return;
  causes.Forbidden(
      path, StrCat("pod updates may not change fields other than `spec.containers[*].image`, "
                   "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` and `spec.tolerations` "
                   "(only additions to existing tolerations); here, `",
                   FirstDifference(*old_spec, restored), "` would change"));
}

}  // namespace trainyard::apiserver
