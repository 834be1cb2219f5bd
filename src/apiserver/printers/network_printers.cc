// How services and their endpoints are shown.
#include "apiserver/printers/printers.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kShownEndpoints = 3;

std::string PortsOf(const Document& service) {
  std::string text;
  if (const Array* ports = ArrayAt(service, {"spec", "ports"})) {
    for (const Document& port : *ports) {
      StrAppend(text, text.empty() ? "" : ",", IntAt(port, {"port"}).value_or(0));
      if (const auto node_port = IntAt(port, {"nodePort"}); node_port.value_or(0) > 0)
        StrAppend(text, ":", *node_port);
      StrAppend(text, "/", StringAt(port, {"protocol"}, "TCP"));
    }
  }
  return text.empty() ? "<none>" : text;
}

std::string SelectorOf(const Document& service) {
  std::string text;
  if (const Object* selector = ObjectAt(service, {"spec", "selector"})) {
    for (const auto& label : *selector)
      StrAppend(text, text.empty() ? "" : ",", Key(label), "=", Text(label.value()));
  }
  return text.empty() ? "<none>" : text;
}

std::string ExternalOf(const Document& service) {
  const std::string_view type = StringAt(service, {"spec", "type"});
  if (type == "ExternalName") return std::string(StringAt(service, {"spec", "externalName"}));
  std::string text;
  if (const Array* addresses = ArrayAt(service, {"spec", "externalIPs"})) {
    for (const Document& address : *addresses) StrAppend(text, text.empty() ? "" : ",", Text(address));
  }
  if (!text.empty()) return text;
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

Array ServiceCells(const Document& service, absl::Time now) {
  return {StringAt(service, {"metadata", "name"}),
          StringAt(service, {"spec", "type"}),
          StringAt(service, {"spec", "clusterIP"}, "<none>"),
          ExternalOf(service),
          PortsOf(service),
          PrintAgeOf(service, now),
          SelectorOf(service)};
}

std::string AddressesOf(const Document& endpoints) {
  std::vector<std::string> all;
  const Array* subsets = ArrayAt(endpoints, {"subsets"});
  for (const Document& subset : subsets != nullptr ? *subsets : Array()) {
    const Array* addresses = ArrayAt(subset, {"addresses"});
    const Array* ports = ArrayAt(subset, {"ports"});
    for (const Document& address : addresses != nullptr ? *addresses : Array()) {
      const std::string ip(StringAt(address, {"ip"}));
      if (ports == nullptr || ports->empty()) all.push_back(ip);
      for (const Document& port : ports != nullptr ? *ports : Array()) {
        all.push_back(StrCat(ip, ":", IntAt(port, {"port"}).value_or(0)));
      }
    }
  }
  std::string text;
  for (std::size_t at = 0; at < all.size() && at < kShownEndpoints; ++at)
    StrAppend(text, text.empty() ? "" : ",", all[at]);
  if (all.size() > kShownEndpoints) StrAppend(text, " + ", all.size() - kShownEndpoints, " more...");
  return text.empty() ? "<none>" : text;
}

Array EndpointsCells(const Document& endpoints, absl::Time now) {
  return {StringAt(endpoints, {"metadata", "name"}), AddressesOf(endpoints), PrintAgeOf(endpoints, now)};
}

}  // namespace

const Printer& ServicePrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "Type", .description = "How it can be reached."},
                  {.name = "Cluster-IP", .description = "Its address in the cluster."},
                  {.name = "External-IP", .description = "Its address for others."},
                  {.name = "Port(s)", .description = "Its ports."},
                  AgeColumn(),
                  {.name = "Selector", .description = "The labels of its pods.", .priority = 1}},
      .cells = ServiceCells};
  return printer;
}

const Printer& EndpointsPrinter() {
  static const Printer printer{
      .columns = {NameColumn(), {.name = "Endpoints", .description = "Where it leads to."}, AgeColumn()},
      .cells = EndpointsCells};
  return printer;
}

}  // namespace trainyard::apiserver
