#include "kube/curl_transport.h"

#include <utility>

namespace trainyard::kube {

absl::StatusOr<std::unique_ptr<Transport>> NewCurlTransport(ClusterConfig config, CurlOptions options) {
  if (config.server.empty()) return absl::InvalidArgumentError("the configuration names no server");
  return http::NewClient(
      {.server = std::move(config.server),
       .ca_pem = std::move(config.ca_pem),
       .insecure = config.insecure,
       .tls_server_name = std::move(config.tls_server_name),
       .proxy_url = std::move(config.proxy_url),
       .credentials = std::move(config.credentials),
       .trust_hint = "; check certificate-authority of its cluster in the kubeconfig",
       .certificate_hint = "; check client-certificate and client-key of its user in the kubeconfig"},
      std::move(options));
}

}  // namespace trainyard::kube
