// The operator as a whole: a controller for each kind of job, events, metrics, probes, and the election of a
// leader among several operators.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/election.h"
#include "kube/http.h"
#include "kube/resource.h"
#include "operator/autoscaler.h"
#include "reconcile/controller.h"

namespace trainyard::ops {

struct OperatorOptions {
  reconcile::ControllerOptions controller;
  reconcile::AcceleratorSigns accelerators;
  AutoscalerOptions autoscaler;
  bool leader_elect = false;
  kube::ObjectKey lease = {"default", "trainyard-operator"};
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
  std::string metrics_address;  // "HOST:PORT"; empty: none
  std::string health_address;
  double qps = 0;  // 0: as many as the server takes
};

class Operator {
 public:
  // Returns when it watches, leads or waits to. The transport and the clock must outlive it. InvalidArgument:
  // an option that makes no sense. Unavailable: an address that cannot be listened at.
  static absl::StatusOr<std::unique_ptr<Operator>> Start(kube::Transport& transport, Clock& clock,
                                                         OperatorOptions options);
  virtual ~Operator() = default;  // ends what is under way, then gives the lease away

  // Whether it passes over jobs now.
  virtual bool IsWorking() const = 0;
  // Everything has been seen once. DeadlineExceeded: not in time; the message says what is missing.
  virtual absl::Status WaitForSync(absl::Duration timeout) = 0;
  virtual std::string PrintMetrics() const = 0;
  virtual std::uint16_t metrics_port() const = 0;  // 0: none
  virtual std::uint16_t health_port() const = 0;
};

}  // namespace trainyard::ops
