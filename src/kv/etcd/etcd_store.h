// The store of a cluster: a real etcd, version 3.4 or later, over gRPC.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"

namespace trainyard::kv {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // host:port
  bool tls = false;
  std::string ca_file;    // of the server's certificate; empty: the system's
  std::string cert_file;  // of this client; empty: none
  std::string key_file;
  std::string user;  // empty: none
  std::string password;
  std::string token;                          // sent with every call, in place of a user's; empty: none
  absl::Duration timeout = absl::Seconds(5);  // of one call, all its attempts together
};

// Connects when it is first used. NotFound: a certificate or key file is not there.
//
// Watches outlive the members that they are on: they go on from where they were at the next member that
// answers. Progress notifications come as often as the server is told to send them
// (--experimental-watch-progress-notify-interval; every 10 minutes unless told otherwise).
absl::StatusOr<std::unique_ptr<Store>> OpenEtcdStore(EtcdOptions options);

}  // namespace trainyard::kv
