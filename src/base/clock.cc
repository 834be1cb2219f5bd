#include "base/clock.h"

#include <chrono>

#include "absl/time/clock.h"
#include "base/check.h"

namespace trainyard {
namespace {

class SystemAlarm final : public Alarm {
 public:
  Woken WaitUntil(SteadyTime deadline) override {
    MutexLock lock(mu_);
    while (!notified_) {
      if (!cv_.WaitUntil(mu_, deadline) && !notified_) return Woken::kDeadline;
    }
    notified_ = false;
    return Woken::kNotified;
  }

  void Notify() override {
    MutexLock lock(mu_);
    notified_ = true;
    cv_.Signal();
  }

 private:
  Mutex mu_;
  CondVar cv_;
  bool notified_ TY_GUARDED_BY(mu_) = false;
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  SteadyTime Steady() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return SteadyTime::FromNanos(std::chrono::nanoseconds(since).count());
  }
  std::unique_ptr<Alarm> NewAlarm() override { return std::make_unique<SystemAlarm>(); }
};

}  // namespace

SteadyTime operator+(SteadyTime t, absl::Duration d) {
  if (t == SteadyTime::Never() || d >= absl::Nanoseconds(INT64_MAX - t.nanos_)) return SteadyTime::Never();
  return SteadyTime(t.nanos_ + absl::ToInt64Nanoseconds(d));
}

Clock& Clock::System() {
  static SystemClock clock;
  return clock;
}

class ManualClock::ManualAlarm final : public Alarm {
 public:
  explicit ManualAlarm(ManualClock& clock) : clock_(clock) {}

  Woken WaitUntil(SteadyTime deadline) override {
    MutexLock lock(clock_.mu_);
    while (!notified_) {
      if (clock_.steady_ >= deadline) return Woken::kDeadline;
      clock_.changed_.Wait(clock_.mu_);
    }
    notified_ = false;
    return Woken::kNotified;
  }

  void Notify() override {
    MutexLock lock(clock_.mu_);
    notified_ = true;
    clock_.changed_.SignalAll();
  }

 private:
  ManualClock& clock_;
  bool notified_ = false;  // guarded by clock_.mu_
};

absl::Time ManualClock::Now() const {
  MutexLock lock(mu_);
  return now_;
}

SteadyTime ManualClock::Steady() const {
  MutexLock lock(mu_);
  return steady_;
}

std::unique_ptr<Alarm> ManualClock::NewAlarm() { return std::make_unique<ManualAlarm>(*this); }

void ManualClock::Advance(absl::Duration by) {
  TY_CHECK(by >= absl::ZeroDuration(), "steady time cannot go back");
  MutexLock lock(mu_);
  now_ += by;
  steady_ = steady_ + by;
  changed_.SignalAll();
}

void ManualClock::SetWall(absl::Time now) {
  MutexLock lock(mu_);
  now_ = now;
}

}  // namespace trainyard
