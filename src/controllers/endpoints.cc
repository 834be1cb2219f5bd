#include "controllers/endpoints.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace trainyard::controllers {
namespace {

constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";

std::string_view ProtocolOf(const kube::SharedText& protocol) {
  return protocol.empty() ? std::string_view("TCP") : protocol.view();
}

// Ports of one pod that a service leads to; pods with equal ones are put together.
struct Port {
  std::string name;
  std::int32_t port = 0;
  std::string protocol;
  std::string app_protocol;
  auto operator<=>(const Port&) const = default;
};

bool IsListed(const kube::CompactService& service, const ObservedPod& pod) {
  if (pod.ip.empty() || pod.IsFinished()) return false;
  return !pod.meta.deletion_time || service.publish_not_ready;
}

std::vector<Port> PortsOf(const kube::CompactService& service, const ObservedPod& pod) {
  std::vector<Port> ports;
  for (const kube::ServicePort& port : service.ports) {
    const auto target = FindTargetPort(port, pod);
    if (!target) continue;
    ports.push_back({.name = std::string(port.name.view()),
                     .port = *target,
                     .protocol = std::string(ProtocolOf(port.protocol)),
                     .app_protocol = std::string(port.app_protocol.view())});
  }
  std::ranges::sort(ports);
  return ports;
}

Object AddressOf(const kube::CompactService& service, const ObservedPod& pod) {
  Object address{{"ip", pod.ip}};
  if (!pod.hostname.empty() && pod.subdomain == service.meta.name) address["hostname"] = pod.hostname.view();
  if (!pod.node.empty()) address["nodeName"] = pod.node.view();
  address["targetRef"] = Object{
      {"kind", "Pod"}, {"namespace", pod.meta.ns.view()}, {"name", pod.meta.name}, {"uid", pod.meta.uid}};
  return address;
}

Array PrintPorts(const std::vector<Port>& ports) {
  Array printed;
  for (const Port& port : ports) {
    Object object;
    if (!port.name.empty()) object["name"] = port.name;
    object["port"] = port.port;
    object["protocol"] = port.protocol;
    if (!port.app_protocol.empty()) object["appProtocol"] = port.app_protocol;
    printed.emplace_back(std::move(object));
  }
  return printed;
}

Object LabelsOf(const kube::CompactService& service) {
  Object labels;
  for (const auto& [key, value] : service.meta.labels.entries()) labels[key.view()] = value.view();
  labels[kManagedByLabel] = kManagedByUs;
  if (service.IsHeadless()) labels[kHeadlessLabel] = "";
  return labels;
}

bool SameLabels(const Document& live, const Object& wanted) {
  const Object* labels = ObjectAt(live, {"metadata", "labels"});
  return labels == nullptr ? wanted.empty() : *labels == wanted;
}

bool SameSubsets(const Document& live, const Array& wanted) {
  const Array* subsets = ArrayAt(live, {"subsets"});
  return subsets == nullptr ? wanted.empty() : *subsets == wanted;
}

}  // namespace

std::optional<std::int32_t> FindTargetPort(const kube::ServicePort& port, const ObservedPod& pod) {
  if (port.target_port.empty()) return port.port;
  if (const auto number = ParseNumber<std::int32_t>(port.target_port.view())) {
    return *number == 0 ? port.port : *number;
  }
  for (const ContainerPort& candidate : pod.ports) {
    if (candidate.name == port.target_port && ProtocolOf(candidate.protocol) == ProtocolOf(port.protocol)) {
      return candidate.port;
    }
  }
  return std::nullopt;
}

Array PlanSubsets(const kube::CompactService& service, const std::vector<PodPtr>& pods) {
  struct Addresses {
    Array ready;
    Array not_ready;
  };
  std::vector<PodPtr> sorted = pods;
  std::ranges::sort(sorted, [](const PodPtr& a, const PodPtr& b) {
    return std::tie(a->ip, a->meta.uid) < std::tie(b->ip, b->meta.uid);
  });
  std::map<std::vector<Port>, Addresses> subsets;
  for (const PodPtr& pod : sorted) {
    if (!IsListed(service, *pod)) continue;
    std::vector<Port> ports = PortsOf(service, *pod);
    // Only a service without an address can do without ports.
    if (ports.empty() && !(service.ports.empty() && service.IsHeadless())) continue;
    Addresses& addresses = subsets[std::move(ports)];
    (pod->ready || service.publish_not_ready ? addresses.ready : addresses.not_ready)
        .emplace_back(AddressOf(service, *pod));
  }
  Array printed;
  for (auto& [ports, addresses] : subsets) {
    Object subset;
    if (!addresses.ready.empty()) subset["addresses"] = std::move(addresses.ready);
    if (!addresses.not_ready.empty()) subset["notReadyAddresses"] = std::move(addresses.not_ready);
    if (!ports.empty()) subset["ports"] = PrintPorts(ports);
    printed.emplace_back(std::move(subset));
  }
  return printed;
}

std::optional<Action> PlanEndpoints(const kube::CompactService& service, const std::vector<PodPtr>& pods,
                                    const std::optional<Document>& live) {
  if (service.meta.deletion_time || service.selector.entries().empty()) return std::nullopt;
  Array subsets = PlanSubsets(service, pods);
  Object labels = LabelsOf(service);
  const kube::ObjectKey key = service.meta.Key();
  if (!live) {
    return Create{.resource = kube::Resource::Endpoints(),
                  .ns = key.ns,
                  .object = Object{{"metadata", Object{{"name", key.name}, {"labels", std::move(labels)}}},
                                   {"subsets", std::move(subsets)}}};
  }
  if (IsBeingDeleted(*live) || (SameSubsets(*live, subsets) && SameLabels(*live, labels)))
    return std::nullopt;
  Document changed = *live;
  MakeObjectAt(changed, {"metadata"})["labels"] = std::move(labels);
  changed.get_object()["subsets"] = std::move(subsets);
  return Replace{.ref = {kube::Resource::Endpoints(), key}, .object = std::move(changed)};
}

bool MatterToEndpoints(const ObservedPod* before, const ObservedPod* after) {
  if (before == nullptr || after == nullptr) return true;
  const auto facts = [](const ObservedPod& pod) {
    return std::tuple(pod.ip, pod.ready, pod.IsFinished(), pod.meta.deletion_time.has_value(), pod.node,
                      pod.hostname, pod.subdomain, pod.meta.uid);
  };
  return facts(*before) != facts(*after) || before->meta.labels != after->meta.labels;
}

}  // namespace trainyard::controllers
