// std::mutex with clang's thread-safety annotations. Not absl::Mutex: ThreadSanitizer cannot see into the
// distribution's build of it, and would report every lock as a race.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/steady_time.h"

#if defined(__clang__)
#define TY_ANNOTATE(x) __attribute__((x))
#else
#define TY_ANNOTATE(x)
#endif

#define TY_GUARDED_BY(x) TY_ANNOTATE(guarded_by(x))
#define TY_REQUIRES(...) TY_ANNOTATE(requires_capability(__VA_ARGS__))
#define TY_EXCLUDES(...) TY_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace trainyard {

class TY_ANNOTATE(capability("mutex")) Mutex {
 public:
  void Lock() TY_ANNOTATE(acquire_capability()) { mu_.lock(); }
  void Unlock() TY_ANNOTATE(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class TY_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) TY_ANNOTATE(acquire_capability(mu)) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() TY_ANNOTATE(release_capability()) { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  void Wait(Mutex& mu) TY_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when the deadline passed first, by the machine's own steady clock.
  bool WaitUntil(Mutex& mu, SteadyTime deadline) TY_REQUIRES(mu) {
    if (deadline == SteadyTime::Never()) {
      Wait(mu);
      return true;
    }
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.nanos())};
    const bool signalled = cv_.wait_until(lock, until) == std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }
  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace trainyard
