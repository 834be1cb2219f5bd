#include "controllers/actions.h"

#include <algorithm>
#include <utility>

#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::controllers {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

kube::Operation ToOperation(const Action& action) {
  return std::visit(
      Overloaded{[](const Create& create) {
                   return kube::CreateOperation(create.resource, create.ns, PrintJson(create.object));
                 },
                 [](const Replace& replace) {
                   return kube::UpdateOperation(replace.ref.resource, replace.ref.key,
                                                PrintJson(replace.object), replace.subresource);
                 },
                 [](const Delete& gone) {
                   return kube::DeleteOperation(gone.ref.resource, gone.ref.key,
                                                {.grace_seconds = gone.grace_seconds,
                                                 .propagation = gone.propagation,
                                                 .uid = gone.uid,
                                                 .resource_version = gone.resource_version});
                 },
                 [](const DeleteAll& all) {
                   return kube::Operation{
                       .request = {.method = "DELETE", .target = kube::ResourcePath(all.resource, all.ns)}};
                 }},
      action);
}

bool IsNamespaceEnding(const absl::Status& status) {
  const auto error = kube::ToApiError(status);
  if (!error) return false;
  if (error->code == 404) return true;
  return std::ranges::any_of(error->causes,
                             [](const kube::Cause& cause) { return cause.reason == "NamespaceTerminating"; });
}

absl::Status Judge(const Action& action, const absl::Status& status) {
  if (status.ok()) return status;
  if (std::holds_alternative<Create>(action)) {
    const bool fine = kube::IsAlreadyExists(status) || IsNamespaceEnding(status);
    return fine ? absl::OkStatus() : status;
  }
  if (std::holds_alternative<Replace>(action)) return status;
  return kube::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace

std::string Print(const Action& action) {
  return std::visit(Overloaded{[](const Create& create) {
                                 const kube::ObjectKey key{
                                     create.ns, std::string(StringAt(create.object, {"metadata", "name"}))};
                                 return StrCat("create ", ObjectRef{create.resource, key}.Str());
                               },
                               [](const Replace& replace) {
                                 return StrCat("change ", replace.ref.Str(),
                                               replace.subresource.empty() ? "" : " ", replace.subresource);
                               },
                               [](const Delete& gone) { return StrCat("delete ", gone.ref.Str()); },
                               [](const DeleteAll& all) {
                                 return StrCat("delete all ", all.resource.plural,
                                               all.ns.empty() ? "" : " of ", all.ns);
                               }},
                    action);
}

std::vector<absl::Status> Perform(kube::Api& api, const std::vector<Action>& actions) {
  std::vector<kube::Operation> operations;
  operations.reserve(actions.size());
  for (const Action& action : actions) operations.push_back(ToOperation(action));
  const auto answers = api.Do(std::move(operations));
  std::vector<absl::Status> results;
  results.reserve(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const absl::Status judged = Judge(actions[i], answers[i].status());
    results.push_back(judged.ok() ? judged : Annotate(judged, Print(actions[i])));
  }
  return results;
}

absl::Status Perform(kube::Api& api, Action action) {
  std::vector<Action> one;
  one.push_back(std::move(action));
  return Perform(api, one).front();
}

std::vector<absl::StatusOr<std::optional<Document>>> ReadAll(kube::Api& api,
                                                             const std::vector<ObjectRef>& refs) {
  std::vector<kube::Operation> operations;
  operations.reserve(refs.size());
  for (const ObjectRef& ref : refs) operations.push_back(kube::GetOperation(ref.resource, ref.key));
  const auto answers = api.Do(std::move(operations));
  std::vector<absl::StatusOr<std::optional<Document>>> found;
  found.reserve(refs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const auto& answer = answers[i];
    if (answer.ok()) {
      auto document = ParseJson(*answer);
      if (document.ok()) {
        found.emplace_back(*std::move(document));
      } else {
        found.emplace_back(Annotate(document.status(), refs[i].Str()));
      }
      continue;
    }
    const auto error = kube::ToApiError(answer.status());
    const bool missing = error && error->code == 404 && error->name == refs[i].key.name;
    if (missing) {
      found.emplace_back(std::optional<Document>());
    } else {
      found.emplace_back(Annotate(answer.status(), StrCat("reading ", refs[i].Str())));
    }
  }
  return found;
}

absl::StatusOr<std::optional<Document>> ReadOne(kube::Api& api, const ObjectRef& ref) {
  return std::move(ReadAll(api, {ref}).front());
}

bool SetCondition(Document& object, const ConditionValue& condition, absl::Time now) {
  Document& list = MakeObjectAt(object, {"status"})["conditions"];
  if (!list.is_array()) list.emplace_array();
  Array& conditions = list.get_array();
  auto* found = std::ranges::find_if(
      conditions, [&](const Document& known) { return StringAt(known, {"type"}) == condition.type; });
  if (found == conditions.end()) {
    conditions.emplace_back(Object{{"type", condition.type}});
    found = &conditions.back();
  }
  if (StringAt(*found, {"status"}) == condition.status && StringAt(*found, {"reason"}) == condition.reason &&
      StringAt(*found, {"message"}) == condition.message) {
    return false;
  }
  Object& members = found->get_object();
  if (StringAt(*found, {"status"}) != condition.status) members["lastTransitionTime"] = PrintTime(now);
  members["status"] = condition.status;
  members["reason"] = condition.reason;
  members["message"] = condition.message;
  return true;
}

bool RemoveFinalizer(Document& object, std::string_view finalizer) {
  Array* finalizers = ArrayAt(object, {"metadata", "finalizers"});
  if (finalizers == nullptr) return false;
  auto* found = std::ranges::find_if(*finalizers, [&](const Document& f) { return Text(f) == finalizer; });
  if (found == finalizers->end()) return false;
  finalizers->erase(found);
  return true;
}

std::string_view UidOf(const Document& object) { return StringAt(object, {"metadata", "uid"}); }
std::string_view VersionOf(const Document& object) {
  return StringAt(object, {"metadata", "resourceVersion"});
}
bool IsBeingDeleted(const Document& object) {
  return Find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

}  // namespace trainyard::controllers
