// What an object's name, labels, annotations and owners look like.
#include <algorithm>
#include <string>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMaxAnnotations = 262'144;

NameProblem NameRuleOf(const KindInfo& kind) {
  if (kind.group.empty() && kind.kind == "Namespace") return kube::FindDns1123LabelProblem;
  if (kind.group.empty() && kind.kind == "Service") return kube::FindDns1035LabelProblem;
  return kube::FindDns1123SubdomainProblem;
}

void CheckObjectName(const KindInfo& kind, const Document& metadata, const FieldPath& path, Causes& causes) {
  const NameProblem problem = NameRuleOf(kind);
  if (StringAt(metadata, {"name"}).empty()) {
    causes.Required(path.Child("name"), "name or generateName is required");
  } else {
    CheckName(metadata, "name", path, problem, causes);
  }
  // It is only the beginning of a name, so it may end in a dash.
  std::string beginning(StringAt(metadata, {"generateName"}));
  if (!beginning.empty()) {
    if (beginning.ends_with('-')) beginning.back() = 'a';
    if (const std::string_view wrong = problem(beginning); !wrong.empty())
      causes.Invalid(path.Child("generateName"), *Find(metadata, {"generateName"}), wrong);
  }
  const std::string_view space = StringAt(metadata, {"namespace"});
  if (!kind.namespaced && !space.empty()) {
    causes.Forbidden(path.Child("namespace"), "not allowed on this type");
  } else if (kind.namespaced && space.empty()) {
    causes.Required(path.Child("namespace"));
  } else {
    CheckName(metadata, "namespace", path, kube::FindDns1123LabelProblem, causes);
  }
}

void CheckAnnotations(const Document& metadata, const FieldPath& path, Causes& causes) {
  const Object* annotations = ObjectAt(metadata, {"annotations"});
  if (annotations == nullptr) return;
  const FieldPath at = path.Child("annotations");
  std::size_t size = 0;
  for (const auto& annotation : *annotations) {
    size += annotation.key().size() + Text(annotation.value()).size();
    std::string key(Key(annotation));
    std::ranges::transform(
        key, key.begin(), [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
    if (const auto wrong = kube::FindQualifiedNameProblem(key); !wrong.empty())
      causes.Invalid(at, Document(Key(annotation)), wrong);
  }
  if (size > kMaxAnnotations) causes.TooLong(at, StrCat("must have at most ", kMaxAnnotations, " bytes"));
}

void CheckOwners(const Document& metadata, const FieldPath& path, Causes& causes) {
  std::string_view controller;
  ForEachItem(metadata, "ownerReferences", path, [&](const Document& owner, const FieldPath& at) {
    for (const std::string_view key : {"apiVersion", "kind", "name", "uid"})
      CheckGiven(owner, key, at, causes);
    if (!BoolAt(owner, {"controller"})) return;
    if (!controller.empty()) {
      causes.Invalid(at.Child("controller"), true,
                     StrCat("only one owner can be the controller, and '", controller, "' is it already"));
    }
    controller = StringAt(owner, {"name"});
  });
}

}  // namespace

void CheckMetadata(const KindInfo& kind, const Document& object, Causes& causes) {
  static const Document kNone(boost::json::object_kind);
  const Document* given = Find(object, {"metadata"});
  const Document& metadata = given != nullptr ? *given : kNone;
  const FieldPath root;
  const FieldPath path = root.Child("metadata");
  CheckObjectName(kind, metadata, path, causes);
  CheckLabels(metadata, "labels", path, causes);
  CheckAnnotations(metadata, path, causes);
  CheckOwners(metadata, path, causes);
  ForEachItem(metadata, "finalizers", path, [&](const Document& finalizer, const FieldPath& at) {
    if (const auto wrong = kube::FindQualifiedNameProblem(Text(finalizer)); !wrong.empty())
      causes.Invalid(at, finalizer, wrong);
  });
}

void CheckMetadataUpdate(const Document& before, const Document& after, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("metadata");
  for (const std::string_view key : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"}) {
    const Document* old_value = Find(before, {"metadata", key});
    const Document* new_value = Find(after, {"metadata", key});
    if (old_value != nullptr && new_value != nullptr && *old_value != *new_value)
      causes.Invalid(path.Child(key), *new_value, kImmutable);
  }
  if (Find(before, {"metadata", "deletionTimestamp"}) == nullptr) return;
  const Array* old_list = ArrayAt(before, {"metadata", "finalizers"});
  const Array* new_list = ArrayAt(after, {"metadata", "finalizers"});
  if (new_list == nullptr) return;
  for (const Document& finalizer : *new_list) {
    if (old_list != nullptr && std::ranges::find(*old_list, finalizer) != old_list->end()) continue;
    causes.Forbidden(
        path.Child("finalizers"),
        StrCat("no new finalizers can be added if the object is being deleted, found ", Shown(finalizer)));
  }
}

}  // namespace trainyard::apiserver
