#include "kv/memory_store.h"

#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

TEST(MemoryStore, RepeatsItselfFromTheSameSeedAndClock) {
  const auto run = [] {
    ManualClock clock;
    const auto store = NewMemoryStore(clock, 5);
    std::string log;
    const Lease lease = *store->GrantLease(absl::Seconds(10));
    log += std::to_string(lease.id);
    EXPECT_TRUE(store->Put("a", "1", lease.id).ok());
    clock.Advance(absl::Seconds(9));
    log += store->Get("a", 0)->kv ? " there" : " gone";
    clock.Advance(absl::Seconds(1));
    log += store->Get("a", 0)->kv ? " there" : " gone";
    return log;
  };
  EXPECT_EQ(run(), run());
  EXPECT_TRUE(run().ends_with(" there gone"));
}

TEST(MemoryStore, DoesNothingBehindItsCallersBack) {
  ManualClock clock;
  const auto store = NewMemoryStore(clock);
  const Lease lease = *store->GrantLease(absl::Seconds(1));
  ASSERT_TRUE(store->Put("a", "1", lease.id).ok());
  int ready = 0;
  const auto watcher = *store->Watch({.range = KeyRange::Key("a"), .on_ready = [&] { ++ready; }});
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(ready, 0);
  store->Tick();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(watcher->Next(absl::ZeroDuration())->events.at(0).type, WatchEvent::Type::kDelete);
}

}  // namespace
}  // namespace trainyard::kv
