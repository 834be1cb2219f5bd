// A real kube-apiserver of a test's own, with an etcd, on loopback. Only where there is one: the folder that
// KUBEBUILDER_ASSETS names, as envtest has it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process.h"
#include "tests/support/etcd_server.h"
#include "tests/support/temp_folder.h"

namespace trainyard::testing_support {

class KubeApiServer {
 public:
  // Returns when it is ready. NotFound: there is no KUBEBUILDER_ASSETS, or no kube-apiserver in it.
  static absl::StatusOr<std::unique_ptr<KubeApiServer>> Start();

  // For an administrator.
  std::string kubeconfig() const { return folder_ / "kubeconfig"; }
  // The same in parts: where it listens on loopback, and the token that gets in.
  int port() const { return port_; }
  static std::string token() { return kToken; }

 private:
  static constexpr char kToken[] = "secret-of-tests";
  KubeApiServer() = default;
  absl::Status Spawn(const std::string& program);
  absl::Status AwaitReady();

  TempFolder folder_;
  std::unique_ptr<EtcdCluster> etcd_;
  std::optional<Child> process_;
  int port_ = 0;
};

}  // namespace trainyard::testing_support
