// Which cluster, and who we are there: from a kubeconfig as kubectl finds it, or from the pod that we run in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/credentials.h"

namespace trainyard::kube {

struct ClusterConfig {
  std::string server;           // "https://127.0.0.1:6443", without a slash at its end
  std::string ca_pem;           // empty: what the system trusts
  bool insecure = false;        // the server's certificate is not looked at
  std::string tls_server_name;  // for its certificate, if not the server's own
  std::string proxy_url;        // empty: as the environment says
  std::shared_ptr<Credentials> credentials;
  std::string ns = "default";
  std::string context;  // its name; empty in a pod
};

// A variable of the environment; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> ProcessEnvironment(const char* name);

struct LoadOptions {
  std::string path;     // of a kubeconfig; empty: as said below
  std::string context;  // empty: the kubeconfig's current one
  // In a pod. Empty: what TRAINYARD_SERVICE_ACCOUNT says, or where every cluster puts it.
  std::string service_account_folder;
  Environment environment = ProcessEnvironment;
  Clock* clock = &Clock::System();  // must outlive the configuration's credentials
};

// From the file at `path`; else from the files that KUBECONFIG lists, of which the first one counts that has
// a name and those that do not exist are passed over; else from ~/.kube/config; else, unless a context is
// asked for, from the pod that this process runs in. Files are read once; tokens that rotate are read again.
// NotFound: there is no configuration at all, or the file or context that is asked for is not there: the
// message lists those that are. InvalidArgument: what is wrong, in which file.
absl::StatusOr<ClusterConfig> LoadConfig(const LoadOptions& options);

}  // namespace trainyard::kube
