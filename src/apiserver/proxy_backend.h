// Which address a proxied request goes to: that of a pod, found in the objects that the store has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/proxy_target.h"
#include "apiserver/resources.h"
#include "base/document.h"
#include "kv/store.h"

namespace trainyard::apiserver {

struct ProxyBackend {
  std::string ip;
  std::uint16_t port = 0;
  bool operator==(const ProxyBackend&) const = default;
};

// An address behind a service, and the pod that it is said to be of; "" if it is said of none.
struct ProxyCandidate {
  ProxyBackend backend;
  std::string ns;
  std::string pod;
  bool operator==(const ProxyCandidate&) const = default;
};

// The name that the service's port has in its endpoints, for a port that is asked for by number; any other
// is its own name. An ApiError 503: the service has no such port.
absl::StatusOr<std::string> PortName(const Document& service, std::string_view port);

// The ready addresses of that port, in their order. Pure.
std::vector<ProxyCandidate> CandidatesOf(const Document& endpoints, std::string_view port_name);

// The number that a pod is asked at: as given, or its first port, or 80. An ApiError 400 for what is no port.
absl::StatusOr<std::uint16_t> PodPort(const Document& pod, std::string_view port);

// Whether the pod has that address.
bool HasAddress(const Document& pod, std::string_view ip);

// The backend of a request. Those of a service are taken in turn, by `turn`; one that is no pod's is passed
// over, so that nobody reaches through endpoints that he wrote himself what only this server can reach. An
// ApiError 404: no such object. 503: nobody is behind the service. 400: the pod has no address yet.
absl::StatusOr<ProxyBackend> FindBackend(kv::Store& store, const ResourceTable& resources,
                                         const ProxyTarget& target, std::size_t turn);

}  // namespace trainyard::apiserver
