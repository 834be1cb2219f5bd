#include "base/clock.h"

#include <thread>

#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(ManualClock, AdvancesWallAndSteadyTimeTogether) {
  ManualClock clock(absl::FromUnixSeconds(1000));
  const SteadyTime before = clock.Steady();
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1005));
  EXPECT_EQ(clock.Steady() - before, absl::Seconds(5));
}

TEST(ManualClock, KeepsSteadyTimeWhenTheWallIsSetBack) {
  ManualClock clock(absl::FromUnixSeconds(1000));
  const SteadyTime before = clock.Steady();
  clock.SetWall(absl::FromUnixSeconds(10));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(10));
  EXPECT_EQ(clock.Steady(), before);
}

TEST(ManualClock, WakesAnAlarmWhenItsTimeComesAndNotBefore) {
  ManualClock clock;
  const auto alarm = clock.NewAlarm();
  const SteadyTime deadline = clock.Steady() + absl::Hours(1);
  Alarm::Woken woken = Alarm::Woken::kNotified;
  SteadyTime when;
  std::thread waiter([&] {
    woken = alarm->WaitUntil(deadline);
    when = clock.Steady();
  });
  clock.Advance(absl::Minutes(59));
  clock.Advance(absl::Minutes(1));
  waiter.join();
  EXPECT_EQ(woken, Alarm::Woken::kDeadline);
  EXPECT_GE(when, deadline);
}

// Both clocks promise the same of their alarms.
class AlarmTest : public testing::TestWithParam<bool> {
 protected:
  Clock& clock() { return GetParam() ? Clock::System() : manual_; }

 private:
  ManualClock manual_;
};

TEST_P(AlarmTest, KeepsANotificationThatCameBeforeTheWait) {
  const auto alarm = clock().NewAlarm();
  alarm->Notify();
  EXPECT_EQ(alarm->WaitUntil(SteadyTime::Never()), Alarm::Woken::kNotified);
}

TEST_P(AlarmTest, ReportsADeadlineThatHasPassedAndForgetsNoNotification) {
  const auto alarm = clock().NewAlarm();
  EXPECT_EQ(alarm->WaitUntil(clock().Steady()), Alarm::Woken::kDeadline);
  std::thread notifier([&] { alarm->Notify(); });
  EXPECT_EQ(alarm->WaitUntil(SteadyTime::Never()), Alarm::Woken::kNotified);
  notifier.join();
  EXPECT_EQ(alarm->WaitUntil(clock().Steady()), Alarm::Woken::kDeadline) << "one notification woke two waits";
}

INSTANTIATE_TEST_SUITE_P(Clocks, AlarmTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "System" : "Manual"; });

TEST(SteadyTime, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(SteadyTime::FromNanos(5) + absl::InfiniteDuration(), SteadyTime::Never());
  EXPECT_EQ(SteadyTime::Never() + absl::Seconds(1), SteadyTime::Never());
  EXPECT_EQ(SteadyTime::FromNanos(5) + absl::Nanoseconds(3), SteadyTime::FromNanos(8));
}

}  // namespace
}  // namespace trainyard
