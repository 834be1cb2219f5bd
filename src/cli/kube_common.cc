#include "cli/kube_common.h"

#include "base/status.h"
#include "base/text.h"

namespace trainyard::cli {

void KubeFlags::Declare(Flags& flags) {
  flags.Text({.name = "--kubeconfig",
              .value = "FILE",
              .help = "Which cluster ($KUBECONFIG, ~/.kube/config, the pod's own, or the embedded one)",
              .everywhere = true},
             kubeconfig_);
  flags.Text({.name = "--context",
              .value = "NAME",
              .help = "Which of the kubeconfig's contexts (the current one)",
              .everywhere = true},
             context_);
  home_.Declare(flags);
}

absl::StatusOr<kube::ClusterConfig> KubeFlags::Load() const {
  const bool named =
      !kubeconfig_.empty() || !context_.empty() || kube::ProcessEnvironment("KUBECONFIG").has_value();
  // Who names a home folder means the cluster that runs there, whatever else is configured for kubectl.
  if (named || !home_.IsGiven()) {
    auto config = kube::LoadConfig({.path = kubeconfig_, .context = context_});
    if (named || !absl::IsNotFound(config.status())) return config;
  }
  TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
  TY_ASSIGN_OR_RETURN(const auto running, local::FindRunning(home));
  if (running) return kube::LoadConfig({.path = home.Kubeconfig()});
  return absl::NotFoundError(
      StrCat("no cluster is configured, and none runs on ", home.root,
             ": name a kubeconfig, or start the embedded cluster with `trainyard up`"));
}

}  // namespace trainyard::cli
