// A TLS client that does exactly what a test tells it to, well-behaved or not. Blocks, within a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace trainyard::testing_support {

struct TlsClientOptions {
  std::uint16_t port = 0;
  std::string ca_pem;           // whom to trust as a server
  std::string certificate_pem;  // the client's own; empty: none
  std::string key_pem;
  int max_version = 0;  // as TLS1_2_VERSION; 0: the highest
};

// A TCP connection to loopback whose reads and writes give up after 30 s.
absl::StatusOr<Fd> ConnectTcp(std::uint16_t port);

class TlsClient {
 public:
  // Unavailable: no connection. Unauthenticated: the handshake failed.
  static absl::StatusOr<std::unique_ptr<TlsClient>> Connect(const TlsClientOptions& options);

  absl::Status Send(std::string_view bytes);
  // Reads until `end` has been seen and returns all up to it, with it; what is behind is kept.
  absl::StatusOr<std::string> ReadUntil(std::string_view end);
  // One answer with a Content-Length, head and body.
  absl::StatusOr<std::string> ReadAnswer();
  // All until the server closes.
  std::string ReadToEnd();
  void EndWriting();  // says so in TLS, and closes the socket's writing side
  void Reset();       // as if the process were killed: RST

  int fd() const { return fd_.get(); }
  std::string protocol() const;  // ALPN

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  bool Fill();

  Fd fd_;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string read_;
};

}  // namespace trainyard::testing_support
