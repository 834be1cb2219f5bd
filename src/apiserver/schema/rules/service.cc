// What services and endpoints look like.
#include <set>
#include <string>

#include "apiserver/schema/formats.h"
#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

void CheckServicePorts(const Document& spec, const FieldPath& path, Causes& causes) {
  const Array* ports = ArrayAt(spec, {"ports"});
  const bool several = ports != nullptr && ports->size() > 1;
  const std::string_view type = StringAt(spec, {"type"});
  std::set<std::string, std::less<>> names;
  std::set<std::pair<std::string, std::int64_t>> numbers;
  std::set<std::pair<std::string, std::int64_t>> node_ports;
  ForEachItem(spec, "ports", path, [&](const Document& port, const FieldPath& at) {
    const std::string name(StringAt(port, {"name"}));
    if (name.empty() && several) causes.Required(at.Child("name"));
    CheckName(port, "name", at, kube::FindDns1123LabelProblem, causes);
    if (!name.empty() && !names.insert(name).second) causes.Duplicate(at.Child("name"), Document(name));
    CheckRange(port, "port", at, 1, 65535, causes);
    CheckPort(port, "targetPort", at, causes);
    const std::string protocol(StringAt(port, {"protocol"}));
    const std::int64_t number = IntAt(port, {"port"}).value_or(0);
    if (!numbers.emplace(protocol, number).second)
      causes.Duplicate(at, Object{{"protocol", protocol}, {"port", number}});
    const std::int64_t node_port = IntAt(port, {"nodePort"}).value_or(0);
    if (node_port == 0) return;
    CheckRange(port, "nodePort", at, 1, 65535, causes);
    if (type == "ClusterIP" || type == "ExternalName")
      causes.Forbidden(at.Child("nodePort"), StrCat("may not be used when `type` is '", type, "'"));
    if (!node_ports.emplace(protocol, node_port).second) causes.Duplicate(at.Child("nodePort"), node_port);
  });
}

void CheckAddresses(const Document& spec, const FieldPath& path, Causes& causes) {
  const std::string_view type = StringAt(spec, {"type"});
  const std::string_view address = StringAt(spec, {"clusterIP"});
  const Array* addresses = ArrayAt(spec, {"clusterIPs"});
  const std::string_view first = addresses == nullptr || addresses->empty() ? "" : Text((*addresses)[0]);
  const FieldPath list = path.Child("clusterIPs");
  if (type == "ExternalName") {
    if (!address.empty() || !first.empty())
      causes.Forbidden(list, "may not be set for ExternalName services");
    return;
  }
  if (!first.empty() && first != address)
    causes.Invalid(list, *Find(spec, {"clusterIPs"}), "first value must match `clusterIP`");
  if (address == "None") {
    if (type == "NodePort" || type == "LoadBalancer")
      causes.Invalid(list.Index(0), "None", StrCat("may not be set to 'None' for ", type, " services"));
  } else if (!address.empty() && !IsIpAddress(address)) {
    causes.Invalid(list.Index(0), Document(address), "must be empty, 'None' or a valid IP address");
  }
}

void CheckTraffic(const Document& spec, const FieldPath& path, Causes& causes) {
  const std::string_view type = StringAt(spec, {"type"});
  const bool outside = type == "NodePort" || type == "LoadBalancer";
  if (!outside && !StringAt(spec, {"externalTrafficPolicy"}).empty()) {
    causes.Invalid(path.Child("externalTrafficPolicy"), *Find(spec, {"externalTrafficPolicy"}),
                   "may only be set when `type` is 'NodePort' or 'LoadBalancer'");
  }
  if (type != "LoadBalancer") {
    for (const std::string_view key :
         {"allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"}) {
      if (Find(spec, {key}) != nullptr)
        causes.Forbidden(path.Child(key), "may only be used when `type` is 'LoadBalancer'");
    }
  }
  ForEachItem(spec, "loadBalancerSourceRanges", path, [&](const Document& range, const FieldPath& at) {
    if (!MatchesFormat("cidr", Text(range)))
      causes.Invalid(at, range, "must be a range such as 10.240.0.0/24");
  });
  ForEachItem(spec, "externalIPs", path, [&](const Document& address, const FieldPath& at) {
    if (!IsIpAddress(Text(address))) causes.Invalid(at, address, "must be a valid IP address");
  });
}

void CheckAffinity(const Document& spec, const FieldPath& path, Causes& causes) {
  const Document* config = Find(spec, {"sessionAffinityConfig", "clientIP"});
  if (config == nullptr) return;
  const FieldPath affinity = path.Child("sessionAffinityConfig");
  CheckRange(*config, "timeoutSeconds", affinity.Child("clientIP"), 1, 86400, causes);
}

}  // namespace

void CheckService(const Document& service, Causes& causes) {
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  const Document* spec = Find(service, {"spec"});
  if (spec == nullptr) return causes.Required(path);
  const std::string_view type = StringAt(*spec, {"type"});
  const Array* ports = ArrayAt(*spec, {"ports"});
  const bool headless = StringAt(*spec, {"clusterIP"}) == "None";
  if ((ports == nullptr || ports->empty()) && !headless && type != "ExternalName")
    causes.Required(path.Child("ports"));
  if (type == "ExternalName") {
    std::string_view name = StringAt(*spec, {"externalName"});
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty()) {
      causes.Required(path.Child("externalName"));
    } else if (const auto wrong = kube::FindDns1123SubdomainProblem(name); !wrong.empty()) {
      causes.Invalid(path.Child("externalName"), Document(name), wrong);
    }
  }
  CheckServicePorts(*spec, path, causes);
  CheckLabels(*spec, "selector", path, causes);
  CheckAddresses(*spec, path, causes);
  CheckTraffic(*spec, path, causes);
  CheckAffinity(*spec, path, causes);
}

void CheckServiceUpdate(const Document& before, const Document& after, Causes& causes) {
  const auto is_name_only = [](const Document& service) {
    return StringAt(service, {"spec", "type"}) == "ExternalName";
  };
  if (is_name_only(before) || is_name_only(after)) return;
  const std::string_view old_address = StringAt(before, {"spec", "clusterIP"});
  const std::string_view new_address = StringAt(after, {"spec", "clusterIP"});
  if (old_address.empty() || old_address == new_address) return;
  const FieldPath root;
  const FieldPath path = root.Child("spec");
  causes.Invalid(path.Child("clusterIP"), Document(new_address), "may not change once set");
}

void CheckEndpoints(const Document& endpoints, Causes& causes) {
  const FieldPath root;
  ForEachItem(endpoints, "subsets", root, [&](const Document& subset, const FieldPath& at) {
    for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
      ForEachItem(subset, list, at, [&](const Document& address, const FieldPath& below) {
        if (!IsIpAddress(StringAt(address, {"ip"})))
          causes.Invalid(below.Child("ip"), Document(StringAt(address, {"ip"})),
                         "must be a valid IP address");
        CheckName(address, "hostname", below, kube::FindDns1123LabelProblem, causes);
      });
    }
    const Array* ports = ArrayAt(subset, {"ports"});
    const bool several = ports != nullptr && ports->size() > 1;
    ForEachItem(subset, "ports", at, [&](const Document& port, const FieldPath& below) {
      if (several && StringAt(port, {"name"}).empty()) causes.Required(below.Child("name"));
      CheckName(port, "name", below, kube::FindDns1123LabelProblem, causes);
      CheckRange(port, "port", below, 1, 65535, causes);
    });
  });
}

}  // namespace trainyard::apiserver
