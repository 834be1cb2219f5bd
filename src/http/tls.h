// TLS for the server's connections: OpenSSL straight over a non-blocking socket. Not Asio's stream, which
// keeps 68 KiB of buffers for every connection, where a watch needs them for microseconds in an hour.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "http/byte_stream.h"

namespace trainyard::http {

// What all connections share: the server's certificate, and who may sign a client's.
class TlsContext {
 public:
  // InvalidArgument: a certificate or key that cannot be read, or that do not belong together.
  // `client_ca_pem` may be empty: then no client is asked for a certificate.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(const std::string& certificate_pem,
                                                          const std::string& key_pem,
                                                          const std::string& client_ca_pem);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The server's side of a connection on a socket that does not block. The handshake is made by the first
  // calls of Read(). A client that speaks plain HTTP is told so.
  std::unique_ptr<ByteStream> Accept(Fd socket) const;

 private:
  struct Shared;
  explicit TlsContext(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace trainyard::http
