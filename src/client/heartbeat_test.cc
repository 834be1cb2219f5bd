#include <gtest/gtest.h>

#include "base/clock.h"
#include "client/graph_job.h"
#include "kv/memory_store.h"

namespace trainyard::client {
namespace {

class HeartbeatTest : public ::testing::Test {
 protected:
  bool IsThere() { return store_->Get(keys_.Client())->kv.has_value(); }

  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const ps::JobKeys keys_{"default/test"};
};

TEST_F(HeartbeatTest, IsThereAsLongAsTheClientIs) {
  {
    const auto heartbeat = Heartbeat::Start(*store_, keys_, absl::Seconds(10));
    ASSERT_TRUE(heartbeat.ok()) << heartbeat.status();
    EXPECT_TRUE(IsThere());
  }
  EXPECT_FALSE(IsThere());
}

TEST_F(HeartbeatTest, OfOneClientOnly) {
  const auto first = Heartbeat::Start(*store_, keys_, absl::Seconds(10));
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Heartbeat::Start(*store_, keys_, absl::Seconds(10)).status()));
  EXPECT_TRUE(IsThere()) << "the second one took nothing away";
}

TEST_F(HeartbeatTest, GoesOnForLongerThanItsLease) {
  const auto heartbeat = Heartbeat::Start(*store_, keys_, absl::Seconds(1));
  ASSERT_TRUE(heartbeat.ok());
  const SteadyTime enough = Clock::System().Steady() + absl::Milliseconds(2500);
  while (Clock::System().Steady() < enough) ASSERT_TRUE(IsThere());
}

TEST_F(HeartbeatTest, BeginsAgainWhenItsLeaseHasEndedWhileItLives) {
  const auto heartbeat = Heartbeat::Start(*store_, keys_, absl::Seconds(1));
  ASSERT_TRUE(heartbeat.ok());
  ASSERT_TRUE(store_->RevokeLease(store_->Get(keys_.Client())->kv->lease).ok());
  EXPECT_FALSE(IsThere());
  while (!IsThere()) std::this_thread::yield();
}

}  // namespace
}  // namespace trainyard::client
