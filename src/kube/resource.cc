#include "kube/resource.h"

#include "base/text.h"
#include "kube/http.h"

namespace trainyard::kube {
namespace {

Resource Core(std::string_view plural, std::string_view kind, bool namespaced = true) {
  return {.group = "",
          .version = "v1",
          .plural = std::string(plural),
          .kind = std::string(kind),
          .namespaced = namespaced};
}

}  // namespace

#define TY_RESOURCE(name, ...)                    \
  const Resource& Resource::name() {              \
    static const Resource resource = __VA_ARGS__; \
    return resource;                              \
  }

TY_RESOURCE(Pods, Core("pods", "Pod"))
TY_RESOURCE(Services, Core("services", "Service"))
TY_RESOURCE(Endpoints, Core("endpoints", "Endpoints"))
TY_RESOURCE(Nodes, Core("nodes", "Node", false))
TY_RESOURCE(Namespaces, Core("namespaces", "Namespace", false))
TY_RESOURCE(Events, Core("events", "Event"))
TY_RESOURCE(ConfigMaps, Core("configmaps", "ConfigMap"))
TY_RESOURCE(Secrets, Core("secrets", "Secret"))
TY_RESOURCE(ServiceAccounts, Core("serviceaccounts", "ServiceAccount"))
TY_RESOURCE(Leases, {"coordination.k8s.io", "v1", "leases", "Lease", true})
TY_RESOURCE(PodGroups, {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true})
TY_RESOURCE(CustomResourceDefinitions,
            {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false})

#undef TY_RESOURCE

std::string ResourcePath(const Resource& resource, std::string_view ns, std::string_view name,
                         std::string_view subresource) {
  std::string path = resource.group.empty() ? StrCat("/api/", resource.version)
                                            : StrCat("/apis/", resource.group, "/", resource.version);
  if (resource.namespaced && !ns.empty()) StrAppend(path, "/namespaces/", PercentEncoded(ns));
  StrAppend(path, "/", resource.plural);
  if (!name.empty()) StrAppend(path, "/", PercentEncoded(name));
  if (!subresource.empty()) StrAppend(path, "/", subresource);
  return path;
}

}  // namespace trainyard::kube
