#include "local/api_service.h"

#include <utility>
#include <vector>

#include "base/document.h"
#include "base/status.h"

namespace trainyard::local {

absl::Status PublishApiServer(kube::Api& api, std::uint16_t port) {
  const kube::ObjectKey key{.ns = "default", .name = "kubernetes"};
  const auto metadata = [&key] {
    return Object{{"name", key.name},
                  {"namespace", key.ns},
                  {"labels", Object{{"component", "apiserver"}, {"provider", "kubernetes"}}}};
  };
  const Object service{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", metadata()},
      {"spec", Object{{"clusterIP", "127.0.0.1"},
                      {"ports",
                       Array{Object{
                           {"name", "https"}, {"port", port}, {"protocol", "TCP"}, {"targetPort", port}}}}}}};
  const Object endpoints{
      {"apiVersion", "v1"},
      {"kind", "Endpoints"},
      {"metadata", metadata()},
      {"subsets",
       Array{Object{{"addresses", Array{Object{{"ip", "127.0.0.1"}}}},
                    {"ports", Array{Object{{"name", "https"}, {"port", port}, {"protocol", "TCP"}}}}}}}};
  const kube::PatchOptions apply{
      .type = kube::PatchType::kApply, .field_manager = "trainyard", .force = true};
  std::vector<kube::Operation> operations;
  operations.push_back(kube::PatchOperation(kube::Resource::Services(), key, PrintJson(service), apply));
  operations.push_back(kube::PatchOperation(kube::Resource::Endpoints(), key, PrintJson(endpoints), apply));
  for (const auto& done : api.Do(std::move(operations))) TY_RETURN_IF_ERROR(done);
  return absl::OkStatus();
}

}  // namespace trainyard::local
