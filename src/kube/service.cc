#include "kube/service.h"

#include <utility>

#include "base/status.h"
#include "kube/json_reader.h"

namespace trainyard::kube {
namespace {

using json::Error;
using json::kOk;
using json::Read;
using json::Reader;
using json::Value;

Error ReadTargetPort(Value value, SharedText& out) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) != kOk) return Read(value, out);
  out = SharedText(std::to_string(number));
  return kOk;
}

Error ReadPorts(Reader& reader, Value list, std::vector<ServicePort>& out) {
  return reader.ForEachItem(list, [&](Value item) {
    ServicePort& port = out.emplace_back();
    return reader.ForEachMember(item, [&](std::string_view key, Value field) -> Error {
      if (key == "name") return Read(field, port.name);
      if (key == "protocol") return Read(field, port.protocol);
      if (key == "port") return Read(field, port.port);
      if (key == "targetPort") return ReadTargetPort(field, port.target_port);
      if (key == "nodePort") return Read(field, port.node_port);
      if (key == "appProtocol") return Read(field, port.app_protocol);
      return kOk;
    });
  });
}

Error ReadSpec(Reader& reader, Value value, CompactService& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "type") return Read(field, out.type);
    if (key == "clusterIP") return Read(field, out.cluster_ip);
    if (key == "selector") return Read(reader, field, out.selector);
    if (key == "ports") return ReadPorts(reader, field, out.ports);
    if (key == "publishNotReadyAddresses") return Read(field, out.publish_not_ready);
    if (key != "sessionAffinity") return kOk;
    SharedText affinity;
    const Error error = Read(field, affinity);
    out.client_affinity = affinity == "ClientIP";
    return error;
  });
}

}  // namespace

absl::StatusOr<CompactService> ParseService(std::string json, const MetaOptions& options) {
  CompactService service;
  Reader reader;
  TY_RETURN_IF_ERROR(reader.ReadObject("a Service", std::move(json), [&](std::string_view key, Value value) {
    if (key == "metadata") return Read(reader, value, service.meta, options);
    if (key == "spec") return ReadSpec(reader, value, service);
    return kOk;
  }));
  return service;
}

}  // namespace trainyard::kube
