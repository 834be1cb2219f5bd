// The way into an embedded cluster: its authority, the server's certificate, the user's certificate and
// token, and the kubeconfig that holds them. Made at the first start, renewed when they are about to end, and
// the same at every other.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/pki.h"
#include "kube/api.h"
#include "local/home.h"

namespace trainyard::local {

struct Access {
  std::string authority_pem;
  http::KeyPair server;
  http::KeyPair admin;
  std::string token;
};

absl::StatusOr<Access> OpenAccess(const Home& home, absl::Time now);

// Writes HOME/kubeconfig, for its owner alone.
absl::Status WriteKubeconfig(const Home& home, const Access& access, const std::string& server);

// ---- The API server as a service of its own cluster, by which pods find it: default/kubernetes.

// Writes the service and its endpoints; may be called again, with another port.
absl::Status PublishApiServer(kube::Api& api, std::uint16_t port);

}  // namespace trainyard::local
