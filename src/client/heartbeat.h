// The sign of life of a foreground job's client: a leased key that the job's graphs watch. When it is gone,
// they end.
#pragma once

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::client {

class Heartbeat {
 public:
  // Puts the key under a lease and renews it on a thread of its own. AlreadyExists: another client has the
  // job.
  static absl::StatusOr<std::unique_ptr<Heartbeat>> Start(kv::Store& store, const ps::JobKeys& keys,
                                                          absl::Duration lease);
  // Ends the lease, so that the job need not wait for it.
  ~Heartbeat();

 private:
  Heartbeat(kv::Store& store, const ps::JobKeys& keys, kv::Lease lease);
  void Renew();

  kv::Store& store_;
  const ps::JobKeys keys_;
  kv::Lease lease_;  // the thread's, while there is one
  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace trainyard::client
