// The keys of objects to look at, each when its time has come. The rules:
//
//   - Equal keys merge: a key that waits already is not queued twice, and of two times the earlier counts.
//   - A key never runs twice at once. Added while it runs, it runs again afterwards.
//   - Keys whose time has come are handed out in the order of their times, and of adding where these are
//     equal: none can starve another.
//   - A key that failed waits longer each time, until Forget(). An Add() does not wait for that: something
//     has changed.
//
//            Add                  its time comes, Get              Done
//   (idle) ───────▶ [queued at t] ────────────────▶ [running] ──────────▶ (idle)
//                        ▲                              │ Add: queued at t once it is done
//                        └──────────────────────────────┘
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/backoff.h"
#include "kube/resource.h"

namespace trainyard::kube {

// All calls may be made from many threads at once. The clock must outlive it.
class WorkQueue {
 public:
  WorkQueue(Clock& clock, IdSource random, BackoffPolicy backoff = {})
      : clock_(clock), random_(std::move(random)), backoff_(backoff) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Queues the key for now, or for later.
  void Add(const ObjectKey& key, absl::Duration after = absl::ZeroDuration());
  // Counts a failure and queues the key for when its back-off is over, which it returns.
  absl::Duration Retry(const ObjectKey& key);
  // The key has no failures any more.
  void Forget(const ObjectKey& key);

  // The next key whose time has come, which then runs until Done(). Waits for one; nothing after ShutDown(),
  // once there are no more.
  std::optional<ObjectKey> Get();
  // The same without waiting, at a given time: for one thread that plays all parts.
  std::optional<ObjectKey> TryGet(SteadyTime now);
  // How long a key that runs had been ready before it was handed out.
  absl::Duration LateBy(const ObjectKey& key) const;
  // What Get() or TryGet() returned has run.
  void Done(const ObjectKey& key);

  // When the next key's time comes; Never() if none is queued. One that runs is not counted.
  SteadyTime NextTime() const;

  // kDrain: what is ready now is still handed out, what would be ready later is dropped. kDrop: all is
  // dropped. Either way nothing more is taken, what runs is left alone, and Get() ends. May be called twice.
  enum class Rest { kDrain, kDrop };
  void ShutDown(Rest rest = Rest::kDrain);

  struct Counts {
    std::size_t ready = 0;
    std::size_t later = 0;
    std::size_t running = 0;
    bool operator==(const Counts&) const = default;
  };
  Counts Count() const;

 private:
  struct Entry {
    // When it is due, and the how manyth it was to be queued; unset if it is not queued.
    std::optional<std::pair<SteadyTime, std::uint64_t>> due;
    bool running = false;
    absl::Duration late;  // of the present run
    int failures = 0;
  };
  using Entries = std::map<ObjectKey, Entry>;

  void AddAt(const ObjectKey& key, SteadyTime time) TY_REQUIRES(mu_);
  void Enqueue(const ObjectKey& key, const Entry& entry) TY_REQUIRES(mu_);
  std::optional<ObjectKey> Take(SteadyTime now) TY_REQUIRES(mu_);
  void EraseIfIdle(Entries::iterator at) TY_REQUIRES(mu_);
  void WakeOne() TY_REQUIRES(mu_);

  Clock& clock_;
  IdSource random_;
  const BackoffPolicy backoff_;

  mutable Mutex mu_;
  Entries entries_ TY_GUARDED_BY(mu_);
  // Those that are due and do not run, by their turn. The keys are those of entries_.
  std::set<std::tuple<SteadyTime, std::uint64_t, const ObjectKey*>> queue_ TY_GUARDED_BY(mu_);
  std::uint64_t added_ TY_GUARDED_BY(mu_) = 0;
  bool shut_down_ TY_GUARDED_BY(mu_) = false;
  // Of the threads in Get(). One of them, the keeper, wakes when the first of the queue is due; who takes a
  // key wakes another for what is left.
  std::vector<Alarm*> waiting_ TY_GUARDED_BY(mu_);
  Alarm* keeper_ TY_GUARDED_BY(mu_) = nullptr;
  SteadyTime kept_ TY_GUARDED_BY(mu_);  // until when it waits
  std::vector<std::unique_ptr<Alarm>> spare_alarms_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::kube
