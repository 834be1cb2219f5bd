// HTTPS for the API server: TLS, connections, HTTP/1.1, and who is asking. One event loop in a thread of its
// own; handlers are called on it and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/responder.h"

namespace trainyard::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;       // 0: any that is free
  std::string certificate_pem;  // the server's own, with its chain
  std::string key_pem;
  std::string
      client_ca_pem;  // client certificates signed by it are identities (CN is the user, O the groups)
  std::size_t max_body_bytes = std::size_t{3} * 1024 * 1024;
  std::size_t max_header_bytes = std::size_t{64} * 1024;
  std::size_t max_stream_backlog_bytes =
      std::size_t{16} * 1024 * 1024;  // a watcher further behind is cut off
  // Beyond them a stranger's or an idle connection is closed (ConnectionTable), or the next one waits.
  std::size_t max_connections = 8192;
  std::size_t max_strangers = 1024;
  // How slow a client may be: until a request's head is there (of the first, the TLS handshake too), until
  // its body is, between requests, and while it takes nothing of an answer.
  absl::Duration head_timeout = absl::Seconds(30);
  absl::Duration body_timeout = absl::Seconds(60);
  absl::Duration idle_timeout = absl::Minutes(3);
  absl::Duration write_timeout = absl::Seconds(60);
  // The targets whose requests the handler carries on to somebody else. It is given them as soon as their
  // heads are there, with all headers and with a RequestBody; max_body_bytes and body_timeout are not for
  // them. Null: none.
  bool (*relayed)(std::string_view target) = nullptr;
};

// Whether two secrets are the same, in a time that does not tell where they differ.
bool SameSecret(std::string_view a, std::string_view b);

// The identity that a bearer token stands for, if it is one of ours. Compares with SameSecret().
using TokenCheck = std::function<std::optional<Identity>(std::string_view token)>;

class Server {
 public:
  // Listens when it returns. A client proves who it is by a certificate or else a token; whoever does
  // neither gets 401, except from /healthz, /livez and /readyz. Unavailable: the port is taken.
  // InvalidArgument: an address, certificate or key that is none.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, TokenCheck tokens,
                                                       RequestHandler handler);
  virtual ~Server() = default;  // cuts every connection off, then returns
  virtual std::uint16_t port() const = 0;
};

}  // namespace trainyard::http
