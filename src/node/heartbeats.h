// Renews the Leases of the nodes that run, from a thread of its own: a heartbeat waits for the API server's
// answer to the last one, and for no pod's work.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api.h"

namespace trainyard::node {

class Heartbeats {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(2);
    absl::Duration lease = absl::Seconds(40);  // what the Leases promise
  };
  // The transport and the clock must outlive it.
  Heartbeats(kube::Transport& transport, Clock& clock, const Options& options);
  ~Heartbeats() { End(); }
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // From any thread. A node that starts sends its first heartbeat at once.
  void StartNode(const std::string& node);
  void StopNode(const std::string& node);
  // Ends the thread, after the request that is under way. May be called twice.
  void End();

 private:
  void Run();

  kube::Api api_;
  Clock& clock_;
  const Options options_;
  const std::unique_ptr<Alarm> alarm_;
  Mutex mu_;
  std::set<std::string> nodes_ TY_GUARDED_BY(mu_);
  bool ending_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::node
