#include "node/cluster_objects.h"

#include <algorithm>

#include "base/base64.h"

namespace trainyard::node {
namespace {

void ReadDecoded(const Document& object, std::string_view key, StringMap& out) {
  const Object* members = ObjectAt(object, {key});
  if (members == nullptr) return;
  for (const auto& member : *members) {
    auto decoded = DecodeBase64(Text(member.value()));
    if (decoded.ok()) out.emplace(Key(member), *std::move(decoded));
  }
}

}  // namespace

DataObject ParseConfigMap(const Document& object) {
  DataObject parsed;
  if (const Object* data = ObjectAt(object, {"data"})) {
    for (const auto& member : *data) parsed.data.emplace(Key(member), Text(member.value()));
  }
  ReadDecoded(object, "binaryData", parsed.binary);
  return parsed;
}

DataObject ParseSecret(const Document& object) {
  DataObject parsed;
  ReadDecoded(object, "data", parsed.data);
  return parsed;
}

ServiceObject ParseService(const Document& object) {
  ServiceObject service{.cluster_ip = std::string(StringAt(object, {"spec", "clusterIP"}))};
  if (const Array* ports = ArrayAt(object, {"spec", "ports"})) {
    for (const Document& port : *ports) {
      service.ports.push_back({.name = std::string(StringAt(port, {"name"})),
                               .port = static_cast<int>(IntAt(port, {"port"}).value_or(0)),
                               .protocol = std::string(StringAt(port, {"protocol"}, "TCP"))});
    }
  }
  return service;
}

EndpointsObject ParseEndpoints(const Document& object) {
  EndpointsObject endpoints;
  const Array* subsets = ArrayAt(object, {"subsets"});
  if (subsets == nullptr) return endpoints;
  for (const Document& subset : *subsets) {
    const Array* addresses = ArrayAt(subset, {"addresses"});
    if (addresses == nullptr) continue;
    for (const Document& address : *addresses) {
      EndpointAddress parsed{.ip = std::string(StringAt(address, {"ip"})),
                             .hostname = std::string(StringAt(address, {"hostname"}))};
      // A pod with several ports may stand in several subsets.
      if (!std::ranges::count(endpoints.addresses, parsed)) endpoints.addresses.push_back(std::move(parsed));
    }
  }
  return endpoints;
}

}  // namespace trainyard::node
