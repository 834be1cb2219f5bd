// A trainer at work: joins, takes the parameters, runs its graph over its share of the data, and begins again
// where the lead says whenever the job goes back or changes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

struct TrainerOptions {
  JobKeys keys;
  std::string graph;  // its id
  std::string pod_name;
  std::string pod_ip = "127.0.0.1";
  std::string token;
  absl::Duration lease = absl::Seconds(2);
  int threads = 1;  // inside one operator
  bool check_finite = false;
};

class Trainer {
 public:
  // Reads its graph, opens its data and registers.
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(kv::Store& store, TrainerOptions options);
  virtual ~Trainer() = default;

  // Trains until the job is complete, or has no place for this trainer any more (OK). Cancelled: after
  // Stop(). Unavailable: its lease was lost. Others say what went wrong in which operator.
  virtual absl::Status Run() = 0;
  // From any thread.
  virtual void Stop() = 0;
};

}  // namespace trainyard::ps
