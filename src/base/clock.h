// Time behind one interface: wall time to show, steady time to measure and to wait by.
#pragma once

#include <compare>
#include <memory>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/steady_time.h"

namespace trainyard {

// What one thread waits on: until a time of its clock, or until another thread notifies it. A notification
// that comes before the wait is not lost. One waiter at a time.
class Alarm {
 public:
  virtual ~Alarm() = default;
  enum class Woken { kNotified, kDeadline };
  virtual Woken WaitUntil(SteadyTime deadline) = 0;
  virtual void Notify() = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  virtual SteadyTime Steady() const = 0;
  // The alarm must not outlive the clock.
  virtual std::unique_ptr<Alarm> NewAlarm() = 0;

  // The machine's clock; lives as long as the process.
  static Clock& System();
};

// A clock that moves only when told to. Safe to use from many threads.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}
  absl::Time Now() const override;
  SteadyTime Steady() const override;
  std::unique_ptr<Alarm> NewAlarm() override;
  // Moves both times forward and wakes whom it concerns.
  void Advance(absl::Duration by);
  // Moves wall time alone, as an administrator or NTP does.
  void SetWall(absl::Time now);

 private:
  class ManualAlarm;
  mutable Mutex mu_;
  CondVar changed_;
  absl::Time now_ TY_GUARDED_BY(mu_);
  SteadyTime steady_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard
