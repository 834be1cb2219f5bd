#include "cli/kube_common.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;

}  // namespace

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

absl::StatusOr<kube::ClusterConfig> KubeFlags::LoadAt(const std::string& address) const {
  auto config = Load();
  if (address.empty()) return config;
  const bool known = config.ok();
  if (!known && (!absl::IsNotFound(config.status()) || !kubeconfig_.empty() || !context_.empty())) {
    return config;
  }
  if (!known) config = kube::ClusterConfig();
  // Who we are is shown only to a server that shows who it is.
  const bool url = address.starts_with("https://") || address.starts_with("http://");
  config->server = url ? address : StrCat(known ? "https://" : "http://", address);
  const std::size_t host = config->server.find("//") + 2;
  while (config->server.size() > host && config->server.ends_with('/')) config->server.pop_back();
  if (host == config->server.size() || config->server[host] == ':' ||
      config->server.find_first_of("/?# \t", host) != std::string::npos) {
    return UsageError(StrCat("--master: '", Escaped(address), "' is no address: write HOST:PORT or a URL"));
  }
  return config;
}

absl::StatusOr<std::vector<Document>> ReadObjectFile(const std::string& file) {
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    TY_ASSIGN_OR_RETURN(text, ReadFile(file, kMostBytes));
  }
  auto documents = ParseJsonOrYaml(text);
  if (!documents.ok()) return Annotate(documents.status(), file);
  std::erase_if(*documents, [](const Document& document) { return document.is_null(); });
  return documents;
}

std::vector<Document> Expand(std::vector<Document> documents) {
  std::vector<Document> out;
  for (Document& document : documents) {
    Array* const items = StringAt(document, {"kind"}) == "List" ? ArrayAt(document, {"items"}) : nullptr;
    if (items == nullptr) {
      out.push_back(std::move(document));
    } else {
      std::ranges::move(*items, std::back_inserter(out));
    }
  }
  return out;
}

}  // namespace trainyard::cli
