#include "controllers/namespace_basics.h"

#include <utility>
#include <vector>

namespace trainyard::controllers {
namespace {

constexpr std::string_view kAuthorityKey = "ca.crt";

bool IsOurs(const Watch& watch, const kube::ObjectMeta& meta) {
  if (watch.resource() == kube::Resource::ServiceAccounts()) return meta.name == kDefaultAccount;
  return watch.resource() == kube::Resource::ConfigMaps() && meta.name == kAuthorityMap;
}

}  // namespace

std::optional<Action> PlanAuthorityMap(const std::string& ns, const std::optional<Document>& live,
                                       std::string_view authority_pem) {
  if (!live) {
    return Create{.resource = kube::Resource::ConfigMaps(),
                  .ns = ns,
                  .object = Object{{"metadata", Object{{"name", kAuthorityMap}}},
                                   {"data", Object{{kAuthorityKey, authority_pem}}}}};
  }
  if (StringAt(*live, {"data", kAuthorityKey}) == authority_pem || IsBeingDeleted(*live)) return std::nullopt;
  Document changed = *live;
  MakeObjectAt(changed, {"data"})[kAuthorityKey] = authority_pem;
  return Replace{.ref = {kube::Resource::ConfigMaps(), {ns, std::string(kAuthorityMap)}},
                 .object = std::move(changed)};
}

NamespaceBasics::NamespaceBasics(kube::Api& api, Watches& watches, Clock& clock, IdSource random,
                                 std::string authority_pem)
    : api_(api),
      watches_(watches),
      authority_pem_(std::move(authority_pem)),
      loop_("namespace basics", clock, std::move(random),
            EachAlone([this](const kube::ObjectKey& key) { return Pass(key); })) {
  watches_.AddHandler(
      [this](const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after) {
        if (watch.resource() == kube::Resource::Namespaces()) {
          if (before == nullptr) loop_.Add(after->Key());
          return;
        }
        // Who deletes or changes them gets them back.
        if (before == nullptr || !IsOurs(watch, *before)) return;
        loop_.Add({.ns = "", .name = std::string(before->ns.view())});
      });
}

kube::Outcome NamespaceBasics::Pass(const kube::ObjectKey& key) {
  const auto refs =
      std::vector<ObjectRef>{{kube::Resource::Namespaces(), key},
                             {kube::Resource::ServiceAccounts(), {key.name, std::string(kDefaultAccount)}},
                             {kube::Resource::ConfigMaps(), {key.name, std::string(kAuthorityMap)}}};
  const auto found = ReadAll(api_, refs);
  for (const auto& answer : found) {
    if (!answer.ok()) return kube::Failed{answer.status()};
  }
  if (!*found[0] || IsBeingDeleted(**found[0])) return kube::Done{};
  std::vector<Action> actions;
  if (!*found[1]) {
    actions.emplace_back(Create{.resource = kube::Resource::ServiceAccounts(),
                                .ns = key.name,
                                .object = Object{{"metadata", Object{{"name", kDefaultAccount}}}}});
  }
  if (!authority_pem_.empty()) {
    if (auto action = PlanAuthorityMap(key.name, *found[2], authority_pem_)) {
      actions.push_back(*std::move(action));
    }
  }
  for (const absl::Status& result : Perform(api_, actions)) {
    if (!result.ok()) return kube::Failed{result};
  }
  return kube::Done{};
}

}  // namespace trainyard::controllers
