// The heads of a proxied request and of its answer: what of them goes on, and what is for the next neighbour
// alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/proxy_backend.h"
#include "apiserver/proxy_target.h"
#include "http/response_parser.h"
#include "kube/http.h"

namespace trainyard::apiserver {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A request as it came, and where it goes.
struct ProxyRequest {
  std::string method;
  ProxyTarget target;
  ProxyBackend backend;
  HttpHeaders headers;
  std::optional<std::uint64_t> body_length;  // unset: it comes in chunks
};

// The head that the backend is sent. Left out are headers of the connection, and what told this server who
// is asking; the Host stays that which the client asked for, as a kube-apiserver leaves it.
std::string PrintRequestHead(const ProxyRequest& request);

// The head that the client is sent. A Location on the backend's host leads through the proxy.
kube::Response AnswerHead(const ProxyRequest& request, const http::ResponseHead& answer);

// For a path in the answer's Location, as above.
std::string RewriteLocation(const ProxyRequest& request, std::string_view location);

}  // namespace trainyard::apiserver
