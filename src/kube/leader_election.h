// One of several processes leads: it holds a Lease and renews it. kube/election.h has the rules and says why
// there are never two; here are the threads and the calls.
//
// Two threads, because a call to the server may hang: one makes the calls, the other tells when leading
// begins and ends, and is never late for the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/election.h"
#include "kube/resource.h"

namespace trainyard::kube {

// "host_1b4e28ba-2fa1-41d2-883f-0016d3cca427": of this process alone.
std::string MakeIdentity(IdSource& ids);

// The API and the clock must outlive it.
class LeaderElector {
 public:
  struct Options {
    ObjectKey lease;
    ElectionOptions election;
  };
  // Called one at a time and in turn, with no lock held; from a thread of the elector's, or from Step().
  struct Callbacks {
    // Begins to work as leader and returns soon.
    std::function<void(std::int64_t term)> on_started;
    // Ends that work and returns when it has ended, which must be within the time by which the lease duration
    // is longer than the renew deadline. The lease is given away, or can be taken, only after that.
    std::function<void()> on_stopped;
  };
  // The options have been validated.
  LeaderElector(Api& api, Clock& clock, IdSource random, Options options, Callbacks callbacks);
  // Stop().
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  // Whether it leads at this very moment, whatever hangs. What must only be done by a leader asks right
  // before.
  bool IsLeader() const;
  // Who holds the lease as far as is known; empty: nobody.
  std::string Holder() const;

  // Starts the threads; once.
  void Start();
  // Stops leading and gives the lease away, so that another may lead at once. Takes no longer than
  // on_stopped and two calls to the server. May be called twice, by one thread. Not from a callback.
  void Stop();

  // Both parts in this thread instead: makes the call that is due, if one is, and tells what has changed.
  // Returns when it is to be called again.
  SteadyTime Step();

 private:
  // Makes the call that is due; false: none is.
  bool CallOnce();
  // Tells that leading has begun or ended; false: there was nothing to tell.
  bool TellOnce();
  void RunCalls();
  void RunTelling();
  void Release();
  absl::StatusOr<SeenLease> Do(const LeaseCall& call);
  Operation ToOperation(const LeaseCall& call) const;

  Api& api_;
  Clock& clock_;
  const Options options_;
  const Callbacks callbacks_;
  const std::unique_ptr<Alarm> call_alarm_;
  const std::unique_ptr<Alarm> tell_alarm_;
  std::thread caller_;
  std::thread teller_;
  Document object_;             // of the lease as it was read last; of the thread that calls
  std::int64_t told_term_ = 0;  // 0: not leading; of the thread that tells
  mutable Mutex mu_;
  Election election_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::kube
