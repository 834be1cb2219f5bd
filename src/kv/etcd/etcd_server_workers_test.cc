#include "kv/etcd/etcd_server_workers.h"

#include <atomic>

#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

TEST(Workers, RunAllThatTheyWereGivenBeforeTheyStop) {
  std::atomic<int> done = 0;
  {
    Workers workers(3);
    for (int i = 0; i < 1000; ++i) workers.Post([&] { ++done; });
  }
  EXPECT_EQ(done, 1000);
}

TEST(Workers, GoOnWhileSomeOfThemWait) {
  Workers workers(2);
  Mutex mu;
  CondVar changed;
  bool released = false;
  workers.Post([&] {
    MutexLock lock(mu);
    while (!released) changed.Wait(mu);
  });
  workers.Post([&] {
    MutexLock lock(mu);
    released = true;
    changed.SignalAll();
  });
  workers.Stop();
  MutexLock lock(mu);
  EXPECT_TRUE(released);
}

TEST(Ticker, TicksUntilItGoes) {
  Mutex mu;
  CondVar changed;
  int ticks = 0;
  {
    const Ticker ticker(absl::Milliseconds(1), [&] {
      MutexLock lock(mu);
      ++ticks;
      changed.SignalAll();
    });
    MutexLock lock(mu);
    while (ticks < 3) changed.Wait(mu);
  }
  EXPECT_GE(ticks, 3);
}

TEST(Budget, LetsInNoMoreCallsAndBytesThanItHas) {
  Budget budget(2, 100);
  EXPECT_TRUE(budget.Enter(60));
  EXPECT_FALSE(budget.Enter(41)) << "too many bytes";
  EXPECT_TRUE(budget.Enter(40));
  EXPECT_FALSE(budget.Enter(0)) << "too many calls";
  EXPECT_FALSE(budget.Grow(1));
  budget.Hold(1000);  // an answer is sent, however much it is
  budget.Leave(1060);
  EXPECT_TRUE(budget.Grow(60));
  EXPECT_FALSE(budget.Enter(1));
  budget.Leave(100);
  EXPECT_TRUE(budget.Enter(100));
}

}  // namespace
}  // namespace trainyard::kv
