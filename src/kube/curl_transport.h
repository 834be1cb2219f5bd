// The way to a cluster's API server: http/'s client with what a kubeconfig says.
#pragma once

#include "http/client.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"

namespace trainyard::kube {

using CurlOptions = http::ClientOptions;

// A transport to the cluster, as http::NewClient() makes it.
absl::StatusOr<std::unique_ptr<Transport>> NewCurlTransport(ClusterConfig config, CurlOptions options = {});

}  // namespace trainyard::kube
