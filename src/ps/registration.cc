#include "ps/registration.h"

#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::ps {
namespace {

SteadyTime After(absl::Duration wait) { return Clock::System().Steady() + wait; }

}  // namespace

absl::StatusOr<std::unique_ptr<Registration>> Registration::Make(
    kv::Store& store, const JobKeys& keys, const std::string& graph, const GraphPod& pod, absl::Duration ttl,
    std::function<void(const absl::Status&)> on_lost) {
  TY_ASSIGN_OR_RETURN(const kv::Lease lease, store.GrantLease(ttl));
  const absl::StatusOr<kv::Revision> put = store.Put(keys.Pod(graph), EncodePod(pod), lease.id);
  // Also a lease that has ended meanwhile: the next start has another.
  if (!put.ok())
    return absl::UnavailableError(StrCat("graph ", graph, " cannot be registered: ", put.status().message()));
  return std::unique_ptr<Registration>(new Registration(store, lease, std::move(on_lost)));
}

Registration::Registration(kv::Store& store, kv::Lease lease,
                           std::function<void(const absl::Status&)> on_lost)
    : store_(store), lease_(lease), on_lost_(std::move(on_lost)), thread_([this] { Renew(); }) {}

Registration::~Registration() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  store_.RevokeLease(lease_.id).IgnoreError();
}

void Registration::Renew() {
  SteadyTime alive_until = After(lease_.ttl);
  for (;;) {
    {
      const MutexLock lock(mu_);
      const SteadyTime next = After(lease_.ttl / 4);
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
    const SteadyTime asked = After(lease_.ttl);
    const absl::Status renewed = store_.KeepAlive(lease_.id).status();
    if (renewed.ok()) {
      alive_until = asked;
    } else if (absl::IsNotFound(renewed) || After(absl::ZeroDuration()) >= alive_until) {
      return on_lost_(
          absl::UnavailableError(StrCat("the lease of this graph was not renewed for ",
                                        absl::FormatDuration(lease_.ttl), ": ", renewed.message())));
    }
  }
}

}  // namespace trainyard::ps
