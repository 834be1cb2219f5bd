// What the commands for the embedded cluster share: which home, and a way to its API server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "dashboard/dashboard.h"
#include "kube/api.h"
#include "local/home.h"

namespace trainyard::cli {

// --home, with its default.
class HomeFlag {
 public:
  void Declare(Flags& flags);
  absl::StatusOr<local::Home> Open() const;
  bool IsGiven() const { return !home_.empty(); }

 private:
  std::string home_;
};

// Where the dashboard of the cluster that runs on the home is, with its token; "": it has none.
std::string ReadDashboardUrl(const local::Home& home);
// Of what ReadDashboardUrl() gives; nothing of what is not as it should be.
struct DashboardPlace {
  std::uint16_t port = 0;
  std::string token;
};
DashboardPlace ParseDashboardUrl(std::string_view url);

// A client of the cluster that runs on the home.
class ClusterClient {
 public:
  // FailedPrecondition: none runs there; the message says how to start one.
  static absl::StatusOr<ClusterClient> Connect(const local::Home& home);
  kube::Api& api() { return *api_; }
  const local::RunningCluster& running() const { return running_; }

 private:
  local::RunningCluster running_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::Api> api_;
};

// ---- --dashboard-address, of the commands that serve the dashboard.

class DashboardFlag {
 public:
  // `by_default` is for the help: where it is, if nothing is given.
  void Declare(Flags& flags, const std::string& by_default);
  bool IsOff() const { return address_ == "none" || address_.empty(); }
  // Somebody wants it just there: then it must be there, or nothing is started.
  bool IsGiven() const { return address_ != kDefault; }
  // Fills in where it is: what was given, or else this machine's loopback, at `port` if that is free.
  void Place(std::uint16_t port, dashboard::DashboardOptions& options) const;

 private:
  static constexpr std::string_view kDefault = "default";
  std::string address_{kDefault};
};

}  // namespace trainyard::cli
