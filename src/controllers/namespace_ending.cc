#include "controllers/namespace_ending.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "kube/json_slice.h"

namespace trainyard::controllers {
namespace {

constexpr std::string_view kSpecFinalizer = "kubernetes";
// Objects end in crowds: one look is enough for many of them.
constexpr absl::Duration kGatherNamespaces = absl::Milliseconds(50);
constexpr absl::Duration kEndNamespaceAgain = absl::Seconds(10);

// False: it was not there.
bool RemoveSpecFinalizer(Document& ns) {
  Array* finalizers = ArrayAt(ns, {"spec", "finalizers"});
  if (finalizers == nullptr) return false;
  auto* found =
      std::ranges::find_if(*finalizers, [](const Document& f) { return Text(f) == kSpecFinalizer; });
  if (found == finalizers->end()) return false;
  finalizers->erase(found);
  return true;
}

std::vector<kube::Resource> NamespacedResources(const apiserver::ResourceTable& table) {
  std::vector<kube::Resource> resources;
  for (const auto& info : table.all()) {
    if (!info->namespaced || !info->readable || info->versions.empty()) continue;
    resources.push_back({.group = info->group,
                         .version = info->versions.front().name,
                         .plural = info->plural,
                         .kind = info->kind});
  }
  return resources;
}

}  // namespace

void Remains::Add(const kube::Resource& resource, const kube::ObjectMeta& meta) {
  ++objects[resource.group.empty() ? resource.plural : StrCat(resource.plural, ".", resource.group)];
  for (const kube::SharedText& finalizer : meta.finalizers) ++finalizers[std::string(finalizer.view())];
}

std::string PrintCounts(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) StrAppend(text, text.empty() ? "" : ", ", name, ": ", count);
  return text;
}

bool SetNamespaceConditions(Document& ns, const Remains& remains, std::string_view failure, absl::Time now) {
  const bool content = !remains.objects.empty();
  const bool held = !remains.finalizers.empty();
  const ConditionValue conditions[] = {
      {"NamespaceDeletionContentFailure", failure.empty() ? "False" : "True",
       failure.empty() ? "ContentDeleted" : "ContentDeletionFailed",
       failure.empty() ? "everything in it has been deleted, or is about to end" : std::string(failure)},
      {"NamespaceContentRemaining", content ? "True" : "False",
       content ? "SomeResourcesRemain" : "ContentRemoved",
       content ? StrCat("still in it: ", PrintCounts(remains.objects)) : "nothing is left in it"},
      {"NamespaceFinalizersRemaining", held ? "True" : "False",
       held ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
       held ? StrCat("objects held by finalizers: ", PrintCounts(remains.finalizers))
            : "no finalizer holds what is in it"}};
  bool changed = false;
  for (const ConditionValue& condition : conditions) changed |= SetCondition(ns, condition, now);
  return changed;
}

NamespaceEnding::NamespaceEnding(kube::Api& api, Watches& watches, Clock& clock, IdSource random,
                                 ServedResources served)
    : api_(api),
      watches_(watches),
      clock_(clock),
      served_(std::move(served)),
      loop_("namespaces", clock, std::move(random),
            EachAlone([this](const kube::ObjectKey& key) { return Pass(key); })) {
  watches_.AddHandler(
      [this](const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after) {
        if (watch.resource() == kube::Resource::Namespaces()) {
          if (after != nullptr && after->deletion_time) loop_.Add(after->Key());
          return;
        }
        if (after != nullptr || before->ns.empty()) return;
        const kube::ObjectKey key{.ns = "", .name = std::string(before->ns.view())};
        const MetaPtr ns = watches_.Find("", kube::Resource::Namespaces().plural)->Find(key);
        if (ns != nullptr && ns->deletion_time) loop_.Add(key, kGatherNamespaces);
      });
}

kube::Outcome NamespaceEnding::Pass(const kube::ObjectKey& key) {
  const ObjectRef ref{kube::Resource::Namespaces(), key};
  auto found = ReadOne(api_, ref);
  if (!found.ok()) return kube::Failed{found.status()};
  if (!*found || !IsBeingDeleted(**found)) return kube::Done{};
  Document& ns = **found;
  Document finalized = ns;
  if (!RemoveSpecFinalizer(finalized)) return kube::Done{};

  absl::Status failure;
  const Remains remains = DeleteContents(key.name, failure);
  if (failure.ok() && remains.objects.empty()) {
    const auto empty = IsEmpty(key.name);
    if (!empty.ok()) return kube::Failed{empty.status()};
    if (!*empty) return kube::Again{kGatherNamespaces};
    return OutcomeOf(
        Perform(api_, Replace{.ref = ref, .object = std::move(finalized), .subresource = "finalize"}));
  }
  if (SetNamespaceConditions(ns, remains, Message(failure), clock_.Now())) {
    const absl::Status told =
        Perform(api_, Replace{.ref = ref, .object = std::move(ns), .subresource = "status"});
    if (!told.ok() && failure.ok()) return kube::Failed{told};
  }
  if (!failure.ok()) return kube::Failed{failure};
  return kube::Again{kEndNamespaceAgain};
}

Remains NamespaceEnding::DeleteContents(const std::string& ns, absl::Status& failure) {
  Remains remains;
  std::vector<Action> actions;
  for (const Watch* watch : watches_.All()) {
    if (!watch->resource().namespaced) continue;
    bool untouched = false;
    for (const MetaPtr& object : watch->ListNamespace(ns)) {
      remains.Add(watch->resource(), *object);
      untouched |= !object->deletion_time.has_value();
    }
    if (untouched) actions.emplace_back(DeleteAll{.resource = watch->resource(), .ns = ns});
  }
  // What is not watched: last, because everything that ends may still tell an event.
  if (remains.objects.empty()) {
    actions.emplace_back(DeleteAll{.resource = kube::Resource::Events(), .ns = ns});
  }
  for (const absl::Status& result : Perform(api_, actions)) {
    if (!result.ok()) failure = result;
  }
  return remains;
}

absl::StatusOr<bool> NamespaceEnding::IsEmpty(const std::string& ns) {
  std::vector<kube::Operation> operations;
  for (const kube::Resource& resource : NamespacedResources(*served_())) {
    operations.push_back(
        {.request = {.method = "GET", .target = StrCat(kube::ResourcePath(resource, ns), "?limit=1")}});
  }
  for (auto& answer : api_.Do(std::move(operations))) {
    TY_RETURN_IF_ERROR(answer);
    TY_ASSIGN_OR_RETURN(const kube::ListPage page, kube::SliceList(*std::move(answer)));
    if (!page.items.empty()) return false;
  }
  return true;
}

}  // namespace trainyard::controllers
