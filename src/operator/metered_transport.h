// A transport that counts the answers that pass through it, and if asked to sends no more than so many
// requests a second.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/http.h"
#include "operator/metrics.h"

namespace trainyard::ops {

// What is given must outlive it.
class MeteredTransport final : public kube::Transport {
 public:
  // `qps` 0: no limit. After a pause a second's worth may go at once.
  MeteredTransport(kube::Transport& to, Clock& clock, Metrics& metrics, double qps);

  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override;
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override;
  std::string Server() const override { return to_.Server(); }

 private:
  // Waits until at least one may go, and returns how many of those that want to may.
  std::size_t Admit(std::size_t wanted);

  kube::Transport& to_;
  Clock& clock_;
  Metrics& metrics_;
  const double qps_;
  Mutex mu_;
  double allowance_ TY_GUARDED_BY(mu_);
  SteadyTime refilled_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::ops
