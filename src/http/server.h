// The one HTTP server: connections, TLS or not, HTTP/1.1, and who is asking. One event loop in a thread of
// its own; handlers are called on it and must not block. For handlers that block there is http/service.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/access.h"
#include "http/request_parser.h"
#include "http/responder.h"

namespace trainyard::http {

// What the body of an error looks like: of what the server refuses by itself.
using ErrorPrinter = Response (*)(int code, std::string_view message);
// {"error": MESSAGE}
Response PrintJsonError(int code, std::string_view message);

struct ServerOptions {
  ListenAddress listen{.host = "127.0.0.1"};
  std::string certificate_pem;  // the server's own, with its chain; empty: no TLS
  std::string key_pem;
  std::string
      client_ca_pem;  // client certificates signed by it are identities (CN is the user, O the groups)
  std::size_t max_body_bytes = std::size_t{3} * 1024 * 1024;
  std::size_t max_bodies_bytes = SIZE_MAX;  // of all requests that are still arriving
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
  bool all_headers = false;  // the handler is given all headers of every request
  ErrorPrinter print_error = PrintJsonError;
};

// What a request's head is worth.
struct Verdict {
  Identity identity;
  bool admitted = false;            // its client may ask: strangers no longer push its connection out
  std::optional<Response> refusal;  // sent in place of the handler's answer; the body is dropped
};
// Called with each request's head, on the server's thread. `certified` is whom the client's certificate
// names.
using Judge = std::function<Verdict(const RequestHead& head, const std::optional<Identity>& certified)>;

// The identity that a bearer token stands for, if it is one of ours. Compares with SameSecret().
using TokenCheck = std::function<std::optional<Identity>(std::string_view token)>;
// The judge of an API server: a client proves who it is by a certificate or else a token; whoever does
// neither gets 401, except from /healthz, /livez and /readyz. Warns of wrong tokens of `server`.
Judge JudgeByToken(TokenCheck tokens, std::string_view server, ErrorPrinter print_error = PrintJsonError);

class Server {
 public:
  // Listens when it returns. Unavailable: the port is taken. InvalidArgument: an address, certificate or key
  // that is none. A null judge admits everybody.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, Judge judge,
                                                       RequestHandler handler);
  virtual ~Server() = default;  // cuts every connection off, then returns
  virtual std::uint16_t port() const = 0;
  // "127.0.0.1:2380", with the port that it got.
  virtual std::string address() const = 0;
};

}  // namespace trainyard::http
