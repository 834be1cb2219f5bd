// A real HTTP server of a test's own on loopback, with certificates made for it: HTTP/2 or HTTP/1.1, and
// paths that hang, break and flood.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/process.h"
#include "tests/support/temp_folder.h"

namespace trainyard::testing_support {

// What openssl made, once for a process: a CA, a server's certificate for 127.0.0.1 and kube.test, a client's
// for "alice", and a second CA that has signed neither. All in PEM.
struct Certificates {
  TempFolder folder;
  std::string ca;
  std::string other_ca;
  std::string client_certificate;
  std::string client_key;
  std::string server_key_path;
  std::string server_certificate_path;
  std::string ca_path;
  std::string other_ca_path;
  std::string client_certificate_path;
  std::string client_key_path;

  static const Certificates& Get();
};

enum class Protocol { kHttp2, kHttps1, kHttp1 };

class HttpServer {
 public:
  // Listens when it returns.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Protocol protocol);

  std::string url() const;
  int port() const { return port_; }
  void Signal(int signal);  // SIGSTOP, SIGCONT, SIGKILL

 private:
  HttpServer(Protocol protocol, Child process, int port)
      : protocol_(protocol), process_(std::move(process)), port_(port) {}
  Protocol protocol_;
  Child process_;
  int port_;
};

// Runs a program to its end; what it printed, or its error.
absl::StatusOr<std::string> RunToEnd(std::vector<std::string> argv,
                                     absl::Duration timeout = absl::Seconds(60));

}  // namespace trainyard::testing_support
