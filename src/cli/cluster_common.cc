#include "cli/cluster_common.h"

#include "base/access.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/curl_transport.h"
#include "kube/kubeconfig.h"

namespace trainyard::cli {

void HomeFlag::Declare(Flags& flags) {
  flags.Text({.name = "--home",
              .value = "FOLDER",
              .help = "Where the embedded cluster keeps everything (~/.trainyard)",
              .everywhere = true},
             home_);
}

absl::StatusOr<local::Home> HomeFlag::Open() const {
  if (!home_.empty()) return local::OpenHome(home_);
  TY_ASSIGN_OR_RETURN(std::string home, local::DefaultHome());
  return local::OpenHome(std::move(home));
}

std::string ReadDashboardUrl(const local::Home& home) {
  constexpr std::size_t kMostBytes = 4096;
  return ReadFile(home.Dashboard(), kMostBytes).value_or("");
}

DashboardPlace ParseDashboardUrl(std::string_view url) {
  constexpr std::string_view kToken = "/?token=";
  const std::size_t path = url.find(kToken);
  if (path == std::string_view::npos) return {};
  const std::string_view address = url.substr(0, path);
  DashboardPlace place;
  if (const auto port = ParseNumber<std::uint16_t>(address.substr(address.rfind(':') + 1)))
    place.port = *port;
  const std::string_view token = url.substr(path + kToken.size());
  if (CheckToken(token).ok()) place.token = token;
  return place;
}

absl::StatusOr<ClusterClient> ClusterClient::Connect(const local::Home& home) {
  TY_ASSIGN_OR_RETURN(const auto running, local::FindRunning(home));
  if (!running) {
    return absl::FailedPreconditionError(
        StrCat("no cluster is running on ", home.root, ": trainyard up starts one"));
  }
  if (running->server.empty()) {
    return absl::FailedPreconditionError(
        StrCat("the cluster on ", home.root, " is still starting (process ", running->pid, ")"));
  }
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadConfig({.path = home.Kubeconfig()}));
  ClusterClient client;
  client.running_ = *running;
  TY_ASSIGN_OR_RETURN(client.transport_, kube::NewCurlTransport(std::move(config)));
  client.api_ = std::make_unique<kube::Api>(*client.transport_, Clock::System(), IdSource::Random());
  return client;
}

void DashboardFlag::Declare(Flags& flags, const std::string& by_default) {
  flags.Text({.name = "--dashboard-address",
              .value = "ADDRESS",
              .help = StrCat("Where a page to watch jobs by is served, as 127.0.0.1:8090, or none (",
                             by_default, ")")},
             address_);
}

void DashboardFlag::Place(std::uint16_t port, dashboard::DashboardOptions& options) const {
  options.address = IsGiven() ? address_ : StrCat("127.0.0.1:", port);
  options.other_port = !IsGiven();
}

}  // namespace trainyard::cli
