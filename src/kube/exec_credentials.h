// Credentials that a program prints, as cloud providers hand them out: the exec plugins of a kubeconfig
// (client.authentication.k8s.io/v1 and v1beta1).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/credentials.h"

namespace trainyard::kube {

struct ExecPlugin {
  std::string user;  // of the kubeconfig; for messages
  std::string api_version;
  std::string command;  // with a slash: a path; else looked for in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // beside this process's own
  std::string install_hint;
  bool interactive_only = false;  // asks the user something, which it cannot here
  std::string cluster_json;       // what it is told of the cluster; empty: nothing
  absl::Duration timeout = absl::Minutes(5);
};

// What a plugin has printed, until when.
struct ExecAnswer {
  Credential credential;  // without the plugin's user's other headers
  absl::Time expires = absl::InfiniteFuture();
};
// InvalidArgument: what is wrong with it.
absl::StatusOr<ExecAnswer> ParseExecAnswer(std::string_view output, std::string_view api_version);

// `rest`, with what the plugin prints. It is run when that is first needed, when it has expired, and when it
// is refused; its standard error is this process's own. One run at a time: others wait for it. The clock must
// outlive it.
std::unique_ptr<Credentials> NewExecCredentials(ExecPlugin plugin, Credential rest, Clock& clock);

}  // namespace trainyard::kube
