// Naming what an API server keeps: kinds of resources and single objects of them.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace trainyard::kube {

// One collection that the server has: "apps/v1, deployments". The core group has an empty name.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  auto operator<=>(const Resource&) const = default;

  // Those that Trainyard itself deals with.
  static const Resource& Pods();
  static const Resource& Services();
  static const Resource& Endpoints();
  static const Resource& Nodes();
  static const Resource& Namespaces();
  static const Resource& Events();
  static const Resource& ConfigMaps();
  static const Resource& Secrets();
  static const Resource& ServiceAccounts();
  static const Resource& Leases();
  static const Resource& PodGroups();  // of the coscheduling plugin
  static const Resource& CustomResourceDefinitions();
};

// One object among those of a resource; the namespace is empty for what has none.
struct ObjectKey {
  std::string ns;
  std::string name;

  std::string Str() const { return ns.empty() ? name : ns + "/" + name; }
  auto operator<=>(const ObjectKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ObjectKey& key) {
    return H::combine(std::move(h), key.ns, key.name);
  }
};

// "/api/v1/namespaces/default/pods/x/status"; an empty name is the collection, an empty namespace all of
// them.
std::string ResourcePath(const Resource& resource, std::string_view ns, std::string_view name = "",
                         std::string_view subresource = "");

}  // namespace trainyard::kube
