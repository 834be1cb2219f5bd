// A store over HTTP and JSON, as etcd's own gateway and that of `trainyard store` speak it: for clients
// outside a cluster, who reach a store inside it through the proxy of the API server, which carries no gRPC.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"
#include "kv/store.h"

namespace trainyard::client {

struct GatewayStoreOptions {
  // Who is asked, and who we are there: an API server, or an etcd itself ("http://127.0.0.1:2379").
  kube::ClusterConfig server;
  // Before "/v3/...": what ServiceProxyPath() gives, or nothing.
  std::string path;
  // Of the store itself, sent as the header `token`: the API server takes Authorization for its own. Empty:
  // the store wants none.
  std::string token;
  absl::Duration timeout = absl::Seconds(5);  // of one call, all its attempts together
};

// "/api/v1/namespaces/NS/services/NAME:PORT/proxy"; the port is a name or a number.
std::string ServiceProxyPath(std::string_view ns, std::string_view service, std::string_view port);

// Connects when it is first used. InvalidArgument: the server is no URL, or the token cannot be a header.
//
// Each watch has a connection and a thread of its own, and outlives the connection: it goes on from where it
// was. A write through a proxy that loses its connection to the store is Unknown.
absl::StatusOr<std::unique_ptr<kv::Store>> OpenGatewayStore(GatewayStoreOptions options);

// The same over a transport that is there already, and that sends the token itself if the store wants one.
std::unique_ptr<kv::Store> NewGatewayStore(std::unique_ptr<kube::Transport> transport, std::string path,
                                           absl::Duration timeout);

}  // namespace trainyard::client
