// A graph's entry in graph_pod, kept alive by a lease as long as the process is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

class Registration {
 public:
  // Puts the entry under a lease of `ttl` and renews it. `on_lost` is called once, on another thread, if the
  // lease has ended: others may have been told that this graph is gone, so it must stop. Errors, there too,
  // are Unavailable: another start may go better.
  static absl::StatusOr<std::unique_ptr<Registration>> Make(kv::Store& store, const JobKeys& keys,
                                                            const std::string& graph, const GraphPod& pod,
                                                            absl::Duration ttl,
                                                            std::function<void(const absl::Status&)> on_lost);
  // Ends the lease, so that others need not wait for it.
  ~Registration();

 private:
  Registration(kv::Store& store, kv::Lease lease, std::function<void(const absl::Status&)> on_lost);
  void Renew();

  kv::Store& store_;
  const kv::Lease lease_;
  const std::function<void(const absl::Status&)> on_lost_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::ps
