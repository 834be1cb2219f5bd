// Listens on the addresses of services and forwards connections to the pods behind them: what kube-proxy does
// with the kernel's help, done in user space so that it needs no privilege. One thread for all.
//
// A port is open only while there is somebody behind it, so that connections to others are refused. Changes
// of the endpoints concern new connections; those that are open go on.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/resource.h"

namespace trainyard::controllers {

struct Backend {
  std::string ip;
  std::uint16_t port = 0;
  auto operator<=>(const Backend&) const = default;
};

// One address and port of a service, and who is behind it.
struct ProxyRule {
  std::string ip;
  std::uint16_t port = 0;
  bool affinity = false;          // a client is led to the same backend again
  std::vector<Backend> backends;  // sorted; empty: connections are refused
  bool operator==(const ProxyRule&) const = default;
};

class ServiceProxy {
 public:
  struct Options {
    // A port could not be opened; told once, until it could or the rule changes. Called in the proxy's
    // thread.
    std::function<void(const kube::ObjectKey& service, std::string_view message)> on_failure;
    absl::Duration retry = absl::Seconds(5);  // to open it again after so long
  };
  // ResourceExhausted or Internal: the system gives no descriptor.
  static absl::StatusOr<std::unique_ptr<ServiceProxy>> Start(Options options);
  // Closes everything.
  virtual ~ServiceProxy() = default;

  // From any thread, returns at once. These are the service's rules from now on; none: it is gone.
  virtual void Set(const kube::ObjectKey& service, std::vector<ProxyRule> rules) = 0;
  // Returns when what was set before has taken effect. Not from the proxy's thread.
  virtual void Flush() = 0;

  struct Counts {
    std::size_t listeners = 0;
    std::size_t connections = 0;
  };
  virtual Counts Count() = 0;
};

}  // namespace trainyard::controllers
