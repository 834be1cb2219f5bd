// Asking a server whether it is well: HTTP and TCP probes (and HTTP hooks) on the node's loop. Exec probes
// are the shim's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "node/loop.h"
#include "node/pod_spec.h"

namespace trainyard::node {

struct ProbeOutcome {
  bool ok = false;
  std::string message;  // what went wrong, or what a hook was answered
};

// The number of a port that is given as number or by its name in the container; 0: there is none.
int ResolvePort(std::string_view port, const ContainerSpec& container);

// What is sent. Pure.
std::string PrintHttpRequest(const HttpAction& action, std::string_view host, int port);
// The code of an answer that begins so; nothing if it is no HTTP or not all of the first line.
std::optional<int> ParseHttpCode(std::string_view answer);

// One probe under way; ends, untold, when it is destroyed.
class NetworkProbe {
 public:
  using Done = std::function<void(ProbeOutcome)>;
  struct Target {
    std::string address;  // numeric
    int port = 0;
    std::string request;  // empty: to be connected is enough
  };
  // `done` is called once, later, never from within this call.
  static std::unique_ptr<NetworkProbe> Begin(Loop& loop, Target target, absl::Duration timeout, Done done);
  ~NetworkProbe();

 private:
  NetworkProbe(Loop& loop, Target target, Done done)
      : loop_(loop), target_(std::move(target)), done_(std::move(done)) {}
  std::string Connect();  // why not, or nothing
  void OnReady(std::uint32_t events);
  void OnConnected();
  void Read();
  void Finish(ProbeOutcome outcome);

  Loop& loop_;
  const Target target_;
  Done done_;
  Fd socket_;
  Loop::TimerId timer_ = 0;
  bool connected_ = false;
  std::string answer_;
};

}  // namespace trainyard::node
