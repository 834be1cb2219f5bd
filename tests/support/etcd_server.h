// A real etcd of a test's own, on loopback and with a folder that goes with it: one member or several.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process.h"
#include "tests/support/temp_folder.h"

namespace trainyard::testing_support {

// A free TCP port of loopback. Another process may take it before it is used; callers try again.
int FreePort();

class EtcdCluster {
 public:
  struct Options {
    int members = 1;
    // As etcd's own flags: for TLS, or to tell progress more often.
    std::vector<std::string> flags;
    bool tls = false;  // clients use https
  };
  // Returns when every member accepts connections.
  static absl::StatusOr<std::unique_ptr<EtcdCluster>> Start(Options options);

  std::string endpoints() const;  // "127.0.0.1:1234,127.0.0.1:1235"
  std::string endpoint(int member) const;
  absl::Status Kill(int member);     // SIGKILL
  absl::Status Restart(int member);  // with the folder that it had

 private:
  struct Member {
    int client_port = 0;
    int peer_port = 0;
    std::optional<Child> process;
  };
  explicit EtcdCluster(Options options) : options_(std::move(options)) {}
  absl::Status Spawn(int member);
  absl::Status AwaitReady(int member);

  Options options_;
  TempFolder folder_;
  std::vector<Member> members_;
};

// Runs etcdctl against `endpoint` and returns what it printed.
absl::StatusOr<std::string> EtcdCtl(const std::string& endpoint, std::vector<std::string> arguments);

}  // namespace trainyard::testing_support
