#include "client/heartbeat.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

// A lease and the key under it.
absl::StatusOr<kv::Lease> Begin(kv::Store& store, const ps::JobKeys& keys, absl::Duration ttl) {
  TY_ASSIGN_OR_RETURN(const kv::Lease lease, store.GrantLease(ttl));
  const absl::StatusOr<kv::TxnResult> put =
      store.Txn({.compares = {kv::Absent(keys.Client())},
                 .then = {kv::PutOp{.key = keys.Client(), .value = "{}", .lease = lease.id}}});
  if (put.ok() && put->succeeded) return lease;
  store.RevokeLease(lease.id).IgnoreError();
  if (!put.ok()) return put.status();
  return absl::AlreadyExistsError(StrCat("job ", keys.job, " has a client that keeps it in the foreground"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Heartbeat>> Heartbeat::Start(kv::Store& store, const ps::JobKeys& keys,
                                                            absl::Duration lease) {
  TY_ASSIGN_OR_RETURN(const kv::Lease granted, Begin(store, keys, lease));
  return std::unique_ptr<Heartbeat>(new Heartbeat(store, keys, granted));
}

Heartbeat::Heartbeat(kv::Store& store, const ps::JobKeys& keys, kv::Lease lease)
    : store_(store), keys_(keys), lease_(lease), thread_([this] { Renew(); }) {}

Heartbeat::~Heartbeat() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  store_.RevokeLease(lease_.id).IgnoreError();
}

void Heartbeat::Renew() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      const SteadyTime next = Clock::System().Steady() + lease_.ttl / 4;
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
    const absl::Status renewed = store_.KeepAlive(lease_.id).status();
    if (renewed.ok()) continue;
    log::Warn("the heart-beat of this client does not reach the store",
              {{"job", keys_.job}, {"error", renewed}});
    // It has ended while we live: a store that was away for longer, or a machine that slept. If the job's
    // graphs have not seen it yet, they never need to.
    if (!absl::IsNotFound(renewed)) continue;
    if (const absl::StatusOr<kv::Lease> again = Begin(store_, keys_, lease_.ttl); again.ok()) lease_ = *again;
  }
}

}  // namespace trainyard::client
