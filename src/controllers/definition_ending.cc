#include "controllers/definition_ending.h"

#include <utility>

#include "apiserver/crd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::controllers {
namespace {

constexpr absl::Duration kGather = absl::Milliseconds(50);
constexpr absl::Duration kLookAgain = absl::Seconds(10);

}  // namespace

DefinitionEnding::DefinitionEnding(kube::Api& api, Watches& watches, Clock& clock, IdSource random,
                                   ServedResources served)
    : api_(api),
      watches_(watches),
      clock_(clock),
      served_(std::move(served)),
      loop_("definitions", clock, std::move(random),
            EachAlone([this](const kube::ObjectKey& key) { return Pass(key); })) {
  watches_.AddHandler([this](const Watch& watch, const kube::ObjectMeta*, const kube::ObjectMeta* after) {
    if (watch.resource() == kube::Resource::CustomResourceDefinitions()) {
      if (after != nullptr && IsHeldBy(*after, apiserver::kDefinitionFinalizer)) loop_.Add(after->Key());
      return;
    }
    // A definition is called after what it defines.
    if (after != nullptr || watch.resource().group.empty()) return;
    const kube::ObjectKey key{.ns = "", .name = StrCat(watch.resource().plural, ".", watch.resource().group)};
    const kube::Resource& definitions = kube::Resource::CustomResourceDefinitions();
    const MetaPtr definition = watches_.Find(definitions.group, definitions.plural)->Find(key);
    if (definition != nullptr && IsHeldBy(*definition, apiserver::kDefinitionFinalizer))
      loop_.Add(key, kGather);
  });
}

kube::Outcome DefinitionEnding::Pass(const kube::ObjectKey& key) {
  const ObjectRef ref{kube::Resource::CustomResourceDefinitions(), key};
  auto found = ReadOne(api_, ref);
  if (!found.ok()) return kube::Failed{found.status()};
  if (!*found || !IsBeingDeleted(**found)) return kube::Done{};
  Document& definition = **found;
  Document ended = definition;
  if (!RemoveFinalizer(ended, apiserver::kDefinitionFinalizer)) return kube::Done{};

  const auto info = served_()->Find(StringAt(definition, {"spec", "group"}),
                                    StringAt(definition, {"spec", "names", "plural"}));
  // One that cannot be served, or in no version, has no objects that anybody can see or delete.
  if (info == nullptr || info->versions.empty()) {
    return OutcomeOf(Perform(api_, Replace{.ref = ref, .object = std::move(ended)}));
  }
  const auto remains = DeleteObjects({.group = info->group,
                                      .version = info->versions.front().name,
                                      .plural = info->plural,
                                      .kind = info->kind,
                                      .namespaced = info->namespaced});
  if (!remains.ok()) {
    Tell(ref, std::move(definition),
         {"Terminating", "True", "InstanceDeletionFailed", std::string(Message(remains.status()))});
    return kube::Failed{remains.status()};
  }
  if (remains->objects.empty()) {
    return OutcomeOf(Perform(api_, Replace{.ref = ref, .object = std::move(ended)}));
  }
  return Tell(ref, std::move(definition),
              {"Terminating", "True", "InstanceDeletionInProgress",
               StrCat("its objects are being deleted: ", PrintCounts(remains->objects),
                      remains->finalizers.empty() ? "" : "; held by finalizers: ",
                      PrintCounts(remains->finalizers))});
}

kube::Outcome DefinitionEnding::Tell(const ObjectRef& ref, Document definition,
                                     const ConditionValue& condition) {
  if (SetCondition(definition, condition, clock_.Now())) {
    const absl::Status told =
        Perform(api_, Replace{.ref = ref, .object = std::move(definition), .subresource = "status"});
    if (!told.ok()) return kube::Failed{told};
  }
  return kube::Again{kLookAgain};
}

absl::StatusOr<Remains> DefinitionEnding::DeleteObjects(const kube::Resource& resource) {
  TY_RETURN_IF_ERROR(Perform(api_, DeleteAll{.resource = resource}));
  TY_ASSIGN_OR_RETURN(const kube::ListPage page, api_.ListAll(resource, "", {}));
  Remains remains;
  for (const std::string& item : page.items) {
    TY_ASSIGN_OR_RETURN(const kube::ObjectMeta meta, kube::ParseObjectMeta(item));
    remains.Add(resource, meta);
  }
  return remains;
}

}  // namespace trainyard::controllers
