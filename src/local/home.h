// Where an embedded cluster keeps all that it has: one folder, owned by one user, used by one process at a
// time.
//
//   HOME/lock            held while the cluster runs; says who holds it and where it listens
//   HOME/kubeconfig      0600; the way in
//   HOME/pki/            the cluster's authority, certificates and token, 0600
//   HOME/store/          the objects (kv/disk)
//   HOME/pods/UID/       a pod's shim, state, volumes and logs
//   HOME/bin/            the shim's executable, by its contents
//   HOME/port            where it listened last
//   HOME/dashboard       0600; where the dashboard is, or was last, with its token
//   HOME/up.log          what a detached cluster has to say
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace trainyard::local {

struct Home {
  std::string root;

  std::string Lock() const { return root + "/lock"; }
  std::string Kubeconfig() const { return root + "/kubeconfig"; }
  std::string Pki() const { return root + "/pki"; }
  std::string Store() const { return root + "/store"; }
  std::string Pods() const { return root + "/pods"; }
  std::string Storage() const { return root + "/storage"; }  // of jobs that need some
  std::string Bin() const { return root + "/bin"; }
  std::string Port() const { return root + "/port"; }
  std::string Log() const { return root + "/up.log"; }
  std::string Dashboard() const { return root + "/dashboard"; }  // its address, with the token
};

// $TRAINYARD_HOME, or ~/.trainyard.
absl::StatusOr<std::string> DefaultHome();

// Makes what is missing of the folder, for its owner alone. PermissionDenied: it is somebody else's, or
// others can write to it.
absl::StatusOr<Home> OpenHome(std::string root);

// What the lock says of the cluster that holds it.
struct RunningCluster {
  pid_t pid = 0;
  std::string server;  // "https://127.0.0.1:6443"; empty while it starts
};

// Held while a cluster runs on the home.
class HomeLock {
 public:
  // FailedPrecondition: another process holds it; the message says which.
  static absl::StatusOr<HomeLock> Take(const Home& home);
  // Tells others where the cluster listens.
  absl::Status Announce(const std::string& server);

 private:
  explicit HomeLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

// The cluster that runs on the home; nothing if none does.
absl::StatusOr<std::optional<RunningCluster>> FindRunning(const Home& home);

}  // namespace trainyard::local
