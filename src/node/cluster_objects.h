// What the node knows of the objects that pods refer to: config maps, secrets, services and their endpoints.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "kube/resource.h"

namespace trainyard::node {

using StringMap = std::map<std::string, std::string, std::less<>>;

// A config map or a secret, its values decoded.
struct DataObject {
  StringMap data;
  StringMap binary;  // of a config map: what is not text, and so never in the environment
  bool operator==(const DataObject&) const = default;
};

struct ServicePort {
  std::string name;
  int port = 0;
  std::string protocol = "TCP";
  bool operator==(const ServicePort&) const = default;
};

struct ServiceObject {
  std::string cluster_ip;  // empty or "None": it has none
  std::vector<ServicePort> ports;
  bool operator==(const ServiceObject&) const = default;

  bool has_ip() const { return !cluster_ip.empty() && cluster_ip != "None"; }
};

struct EndpointAddress {
  std::string ip;
  std::string hostname;  // of a pod with a subdomain
  bool operator==(const EndpointAddress&) const = default;
};

struct EndpointsObject {
  std::vector<EndpointAddress> addresses;  // ready ones, each once
  bool operator==(const EndpointsObject&) const = default;
};

DataObject ParseConfigMap(const Document& object);
// A value that is not base 64 is left out.
DataObject ParseSecret(const Document& object);
ServiceObject ParseService(const Document& object);
EndpointsObject ParseEndpoints(const Document& object);

struct ClusterObjects {
  std::map<kube::ObjectKey, DataObject> config_maps;
  std::map<kube::ObjectKey, DataObject> secrets;
  std::map<kube::ObjectKey, ServiceObject> services;
  std::map<kube::ObjectKey, EndpointsObject> endpoints;
};

}  // namespace trainyard::node
