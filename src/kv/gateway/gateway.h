// Serves a Store over HTTP/1.1 and JSON as the gateway of an etcd 3.4 does: for clients without gRPC, and for
// those outside a cluster, who come through the API server's proxy, which speaks HTTP/1.1 only.
//
//   POST /v3/kv/range, put, deleterange, txn, compaction    POST /v3/lease/grant, revoke, keepalive
//   POST /v3/watch                                          GET  /health, /version
//
// Keys and values are in base64, numbers of 64 bits are texts (numbers are taken too), fields that are not
// set are left out. An error is {"error":…,"message":…,"code":…}, with gRPC's code. Watches and keepalives
// are answered with one {"result":{…}} a line. A watch is told progress whether it asks for it or not: an
// answer that has a header and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"

namespace trainyard::kv {

struct GatewayOptions {
  std::string address = "127.0.0.1:0";  // as ParseListenAddress() takes it
  // Not empty: all but /health and /version must have it as `Authorization: Bearer TOKEN` or `token: TOKEN`
  // (proxies of Kubernetes keep the first for themselves). It is sent in the clear. Empty: requests of web
  // pages, which have an Origin, are refused.
  std::string token;
  int threads = 4;  // that wait for the store
  // How often it is looked whether clients of watches have gone, or take nothing.
  absl::Duration patience = absl::Seconds(1);
  // For a request to arrive, from the connection or the request before it; and while a client takes nothing.
  absl::Duration timeout = absl::Seconds(60);
};

class Gateway {
 public:
  // Listens when it returns. The store must outlive the gateway. InvalidArgument: the address or the token is
  // none. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<Gateway>> Start(Store& store, GatewayOptions options);
  // Ends promptly: watches are told so, and requests under way are waited for as long as the store takes.
  virtual ~Gateway() = default;

  // Where it listens, with the port that it got: "127.0.0.1:2380".
  virtual std::string address() const = 0;
  // Watches and keepalives that are open.
  virtual std::size_t streams() const = 0;
};

}  // namespace trainyard::kv
