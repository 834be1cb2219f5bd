#include "cli/client_flags.h"

#include "base/text.h"

namespace trainyard::cli {
namespace {

constexpr char kGroup[] = "Cluster";

}  // namespace

void DeclareCluster(Flags& flags, client::ClusterOptions& options) {
  flags.Text({.name = "--kubeconfig",
              .value = "FILE",
              .help = "Which cluster ($KUBECONFIG, ~/.kube/config, or the embedded one)",
              .everywhere = true,
              .group = kGroup},
             options.kubeconfig);
  flags.Text({.name = "--context",
              .value = "NAME",
              .help = "Which of the kubeconfig's contexts",
              .everywhere = true,
              .group = kGroup},
             options.context);
  flags.Text({.name = "-n,--namespace",
              .value = "NAME",
              .help = "Where in the cluster (the context's)",
              .everywhere = true,
              .group = kGroup},
             options.ns);
}

void DeclarePods(Flags& flags, client::ClusterOptions& options) {
  flags.Text({.name = "--image",
              .value = "IMAGE",
              .help = "Has the program trainyard, and what the model needs (trainyard)",
              .group = kGroup},
             options.image);
  flags.Text({.name = "--storage",
              .value = "WHERE",
              .help = "A folder that all nodes see, or claim:NAME (what the nodes say)",
              .group = kGroup},
             options.storage);
}

absl::StatusOr<std::map<std::string, std::string>> ParsePairs(std::string_view flag,
                                                              const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return UsageError(StrCat(flag, " must be NAME=VALUE, and is '", Escaped(text), "'"));
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

}  // namespace trainyard::cli
