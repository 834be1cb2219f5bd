// What every store promises of leases.
#include "tests/contract/store_contract.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;

class Leases : public StoreContract {
 protected:
  Lease Grant(absl::Duration ttl) {
    const auto lease = store().GrantLease(ttl);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.value_or(Lease{});
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Leases, testing::ValuesIn(AllStoreKinds()), KindName);

TEST_P(Leases, TakeTheirKeysWithThemInOneTransaction) {
  const Lease lease = Grant(absl::Hours(1));
  Put("a", "1", lease.id);
  Put("b", "1", lease.id);
  const Revision last = Put("c", "1");
  EXPECT_EQ(Get("a")->lease, lease.id);
  const auto watcher = Watch({.range = All()});
  ASSERT_TRUE(store().RevokeLease(lease.id).ok());
  const auto batch = watcher->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.size(), 2u);
  EXPECT_EQ(batch->revision, last + 1);
  EXPECT_EQ(Get("a"), std::nullopt);
  EXPECT_EQ(Get("b"), std::nullopt);
  EXPECT_EQ(Get("c")->value, "1");
}

TEST_P(Leases, EndByThemselvesWhenNobodyKeepsThemAlive) {
  const Lease lease = Grant(absl::Seconds(1));
  EXPECT_GE(lease.ttl, absl::Seconds(1));
  Put("a", "1", lease.id);
  const auto watcher = Watch({.range = All()});
  LetPass(lease.ttl);
  EXPECT_THAT(NextEvents(*watcher, 1), ElementsAre("delete a"));
  const absl::Status late = store().KeepAlive(lease.id).status();
  EXPECT_TRUE(absl::IsNotFound(late)) << late;
}

TEST_P(Leases, LastAsLongAsTheyAreKeptAlive) {
  const Lease kept = Grant(absl::Seconds(2));
  const Lease left = Grant(absl::Seconds(2));
  Put("kept", "1", kept.id);
  Put("left", "1", left.id);
  const auto watcher = Watch({.range = All()});
  std::vector<std::string> seen;
  // Until the one that was granted at the same time has ended, and then some.
  for (int after = 0; after < 3;) {
    LetPass(absl::Milliseconds(500));
    const auto ttl = store().KeepAlive(kept.id);
    ASSERT_TRUE(ttl.ok()) << ttl.status();
    EXPECT_GE(*ttl, absl::Seconds(1));
    const auto batch = watcher->Next(absl::Milliseconds(200));
    if (batch.ok()) {
      for (const WatchEvent& event : batch->events) seen.push_back(Show(event));
    }
    if (!seen.empty()) ++after;
  }
  EXPECT_THAT(seen, ElementsAre("delete left"));
  EXPECT_EQ(Get("kept")->value, "1");
}

TEST_P(Leases, EndWhileOthersWriteWithoutWaiting) {
  Mutex mu;
  CondVar changed;
  int under_way = 0;
  int failed = 0;
  const Lease lease = Grant(absl::Seconds(1));
  Put("leased", "1", lease.id);
  const auto watcher = Watch({.range = KeyRange::Key(K("leased"))});
  bool ended = false;
  for (int i = 0; !ended; ++i) {
    {
      MutexLock lock(mu);
      while (under_way >= 16) changed.Wait(mu);
      ++under_way;
    }
    store().TxnAsync({.then = {PutOp{K(StrCat("k", i % 50)), "x"}}},
                     [&](const absl::StatusOr<TxnResult>& result) {
                       MutexLock lock(mu);
                       failed += result.ok() ? 0 : 1;
                       --under_way;
                       changed.SignalAll();
                     });
    LetPass(absl::Milliseconds(1));
    ended = watcher->Next(absl::ZeroDuration()).ok();
  }
  MutexLock lock(mu);
  while (under_way > 0) changed.Wait(mu);
  EXPECT_EQ(failed, 0);
}

TEST_P(Leases, LetGoOfAKeyThatIsPutWithoutThem) {
  const Lease first = Grant(absl::Hours(1));
  const Lease second = Grant(absl::Hours(1));
  Put("free", "1", first.id);
  Put("moved", "1", first.id);
  Put("free", "2");
  Put("moved", "2", second.id);
  ASSERT_TRUE(store().RevokeLease(first.id).ok());
  EXPECT_EQ(Get("free")->value, "2");
  EXPECT_EQ(Get("moved")->lease, second.id);
  ASSERT_TRUE(store().RevokeLease(second.id).ok());
  EXPECT_EQ(Get("moved"), std::nullopt);
}

TEST_P(Leases, AreNotFoundOnceTheyHaveEnded) {
  const Lease lease = Grant(absl::Hours(1));
  ASSERT_TRUE(store().RevokeLease(lease.id).ok());
  EXPECT_TRUE(absl::IsNotFound(store().RevokeLease(lease.id)));
  EXPECT_TRUE(absl::IsNotFound(store().KeepAlive(lease.id).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Put(K("a"), "1", lease.id).status()));
  EXPECT_EQ(Get("a"), std::nullopt);
}

TEST_P(Leases, ChangeNothingWhenTheyEndWithoutKeys) {
  const Lease lease = Grant(absl::Hours(1));
  const Revision before = Put("a", "1");
  ASSERT_TRUE(store().RevokeLease(lease.id).ok());
  EXPECT_EQ(Put("a", "2"), before + 1);
}

TEST_P(Leases, RefuseATimeToLiveThatMakesNoSense) {
  EXPECT_TRUE(absl::IsInvalidArgument(store().GrantLease(absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().GrantLease(absl::Seconds(-5)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().GrantLease(absl::InfiniteDuration()).status()));
}

}  // namespace
}  // namespace trainyard::kv
