// Serves a Store over etcd's v3 protocol: to EtcdStore, etcdctl and any other client of etcd's.
//
// Served are KV (without transactions within transactions, comparisons of leases and of ranges, and puts that
// leave the value or the lease), Watch, Lease (ids are ours to choose; without TimeToLive and Leases), and of
// Maintenance and Cluster what tells that we are there. All else is Unimplemented.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"

namespace trainyard::kv {

struct EtcdServerOptions {
  std::string address = "127.0.0.1:0";  // as ParseListenAddress() takes it
  // Not empty: calls must have it as their metadata `token` or `authorization`, or are refused as
  // Unauthenticated. It is sent in the clear.
  std::string token;
  int threads = 8;  // that wait for the store
  // A client that takes nothing for one to two of these holds no events in memory any more; when it goes on,
  // they are read from the store again.
  absl::Duration patience = absl::Seconds(1);
};

class EtcdServer {
 public:
  // Listens when it returns. The store must outlive the server. InvalidArgument: the address or the token is
  // none. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<EtcdServer>> Start(Store& store, const EtcdServerOptions& options);
  // Ends promptly: streams are cancelled, and calls under way are waited for as long as the store takes.
  virtual ~EtcdServer() = default;

  // Where it listens, with the port that it got: "127.0.0.1:2379".
  virtual std::string address() const = 0;
};

}  // namespace trainyard::kv
