// Carries requests to pods and their answers back, for the proxy subresources.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "apiserver/proxy_headers.h"
#include "http/request_body.h"
#include "http/responder.h"

namespace trainyard::apiserver {

// One thread drives all connections to backends, and none of them blocks it. Each request has a connection of
// its own. Bodies go both ways as they come, and no faster than the other side takes them: of each direction
// some hundred kilobytes are held. An exchange ends with its answer, or when either side goes away.
class BackendProxy {
 public:
  // ResourceExhausted or Internal: the system gives no descriptor.
  static absl::StatusOr<std::unique_ptr<BackendProxy>> Start();
  virtual ~BackendProxy() = default;  // answers what is under way with 503

  // From any thread. The backend's answer comes through the responder, or 503 if there is none. `body` may be
  // null: then there is none.
  virtual void Carry(ProxyRequest request, std::shared_ptr<http::RequestBody> body,
                     std::unique_ptr<http::Responder> responder) = 0;
};

// The answer in place of a backend's, as a kube-apiserver words it.
kube::Response UnreachableResponse(std::string_view why);

}  // namespace trainyard::apiserver
