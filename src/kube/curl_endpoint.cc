// Which address a cluster's server is, and under which name it is known there.
#include "base/status.h"
#include "base/text.h"
#include "kube/curl_handle.h"

namespace trainyard::kube {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string Part(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

absl::StatusOr<Endpoint> MakeEndpoint(ClusterConfig config, CurlOptions options) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  const CURLUcode code = url == nullptr ? CURLUE_OUT_OF_MEMORY
                                        : curl_url_set(url.get(), CURLUPART_URL, config.server.c_str(), 0);
  if (code != CURLUE_OK) {
    return absl::InvalidArgumentError(
        StrCat("\"", Escaped(config.server), "\" is no server's URL: ", curl_url_strerror(code)));
  }
  Endpoint endpoint{.options = std::move(options), .url = config.server};
  const std::string host = Part(url.get(), CURLUPART_HOST);
  const std::string port = Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  endpoint.loopback = IsLoopback(host);
  if (!config.tls_server_name.empty()) {
    // The name in the URL is what the certificate is checked against and what TLS asks for.
    const std::string path = Part(url.get(), CURLUPART_PATH);
    endpoint.url = StrCat(Part(url.get(), CURLUPART_SCHEME), "://", config.tls_server_name, ":", port,
                          path == "/" ? "" : path);
    endpoint.connect_to = StrCat(config.tls_server_name, ":", port, ":", host, ":", port);
    endpoint.host = StrCat(host, ":", port);
  }
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  endpoint.config = std::move(config);
  return endpoint;
}

}  // namespace trainyard::kube
