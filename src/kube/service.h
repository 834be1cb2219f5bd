// A service in a compact form: where it listens and which pods it leads to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/object_meta.h"

namespace trainyard::kube {

struct ServicePort {
  SharedText name;
  SharedText protocol;  // empty: "TCP"
  std::int32_t port = 0;
  SharedText target_port;  // a number or the name of a container's port; empty: the same as `port`
  std::int32_t node_port = 0;
  SharedText app_protocol;
  bool operator==(const ServicePort&) const = default;
};

struct CompactService {
  ObjectMeta meta;
  SharedText type;  // "ClusterIP", "NodePort", ...
  std::string cluster_ip;
  TextMap selector;
  std::vector<ServicePort> ports;
  bool publish_not_ready = false;  // also leads to pods that are not ready
  bool client_affinity = false;    // a client is led to the same pod again

  bool IsHeadless() const { return cluster_ip == "None"; }
  bool operator==(const CompactService&) const = default;
};

// InvalidArgument: the text is no service; it names the field.
absl::StatusOr<CompactService> ParseService(std::string json, const MetaOptions& options = {});

}  // namespace trainyard::kube
