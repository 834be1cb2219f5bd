// What every store promises of watches.
#include <atomic>
#include <thread>

#include "kv/follower.h"
#include "tests/contract/store_contract.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Watches : public StoreContract {};

INSTANTIATE_TEST_SUITE_P(Stores, Watches, testing::ValuesIn(AllStoreKinds()), KindName);

TEST_P(Watches, ShowWhatHappensFromNowOnInOrder) {
  Put("a", "before");
  const auto watcher = Watch({.range = All()});
  Put("a", "1");
  Put("b", "2");
  Delete(KeyRange::Key(K("a")));
  EXPECT_THAT(NextEvents(*watcher, 3), ElementsAre("put a=1", "put b=2", "delete a"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(watcher->Next(absl::ZeroDuration()).status()));
}

TEST_P(Watches, ShowThePastFromARevisionThenThePresent) {
  Put("a", "0");
  const Revision one = Put("a", "1");
  Delete(KeyRange::Key(K("a")));
  Put("b", "2");
  const auto watcher = Watch({.range = All(), .start_revision = one});
  Put("c", "3");
  EXPECT_THAT(NextEvents(*watcher, 4), ElementsAre("put a=1", "delete a", "put b=2", "put c=3"));
}

TEST_P(Watches, WaitForAStartThatIsStillToCome) {
  const Revision now = Put("a", "1");
  const auto watcher = Watch({.range = All(), .start_revision = now + 3});
  Put("a", "2");
  Put("a", "3");
  Put("a", "4");
  EXPECT_THAT(NextEvents(*watcher, 1), ElementsAre("put a=4"));
}

TEST_P(Watches, KeepToTheirRange) {
  const auto key = Watch({.range = KeyRange::Key(K("a"))});
  const auto prefix = Watch({.range = KeyRange::Prefix(K("a/"))});
  const auto between = Watch({.range = KeyRange::Between(K("a/2"), K("c"))});
  for (const char* name : {"a", "a/1", "a/2", "aa", "b", "c"}) Put(name, "x");
  EXPECT_THAT(NextEvents(*key, 1), ElementsAre("put a=x"));
  EXPECT_THAT(NextEvents(*prefix, 2), ElementsAre("put a/1=x", "put a/2=x"));
  EXPECT_THAT(NextEvents(*between, 3), ElementsAre("put a/2=x", "put aa=x", "put b=x"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(key->Next(absl::ZeroDuration()).status()));
}

TEST_P(Watches, ShowAllOfATransactionInOneBatch) {
  const auto live = Watch({.range = All()});
  const TxnResult txn =
      Txn({.then = {PutOp{K("b"), "1"}, PutOp{K("a"), "1"}, DeleteOp{KeyRange::Key(K("zzz"))}}});
  const auto past = Watch({.range = All(), .start_revision = txn.revision});
  for (const auto& watcher : {live.get(), past.get()}) {
    const auto batch = watcher->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(batch->events.size(), 2u);
    EXPECT_EQ(Show(batch->events[0]), "put b=1") << "in the order of the operations";
    EXPECT_EQ(batch->revision, txn.revision);
    EXPECT_EQ(batch->events[1].kv.mod_revision, txn.revision);
  }
}

TEST_P(Watches, TellWhatWasThereBeforeWhenAsked) {
  const Revision first = Put("a", "1");
  const auto live = Watch({.range = All(), .with_previous = true});
  const auto plain = Watch({.range = All()});
  Put("a", "2");
  Delete(KeyRange::Key(K("a")));
  const auto past = Watch({.range = All(), .start_revision = first, .with_previous = true});
  std::vector<WatchEvent> events;
  for (Watcher* watcher : {live.get(), past.get()}) {
    for (std::size_t wanted = events.size() + (watcher == past.get() ? 3 : 2); events.size() < wanted;) {
      const auto batch = watcher->Next(kPatience);
      ASSERT_TRUE(batch.ok()) << batch.status();
      events.insert(events.end(), batch->events.begin(), batch->events.end());
    }
  }
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].previous->value, "1");
  EXPECT_EQ(events[0].previous->version, 1);
  EXPECT_EQ(events[1].previous->value, "2");
  EXPECT_EQ(events[2].previous, std::nullopt) << "there was nothing before the first put";
  EXPECT_EQ(events[3].previous->value, "1");
  EXPECT_EQ(events[4].previous->value, "2");
  EXPECT_EQ(plain->Next(kPatience)->events.at(0).previous, std::nullopt);
}

TEST_P(Watches, EndWhenCancelledAlsoInTheMiddleOfAWait) {
  const auto watcher = Watch({.range = All()});
  std::thread canceller([&] { watcher->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(watcher->Next(kPatience).status()));
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(watcher->Next().status()));
}

TEST_P(Watches, StayCancelledWhateverHappensAfterwards) {
  const auto watcher = Watch({.range = All()});
  const auto other = Watch({.range = All()});
  watcher->Cancel();
  Put("a", "1");
  EXPECT_THAT(NextEvents(*other, 1), ElementsAre("put a=1"));
  EXPECT_TRUE(absl::IsCancelled(watcher->Next(absl::ZeroDuration()).status()));
}

TEST_P(Watches, GiveAReaderThatWaitsEveryTransactionWhole) {
  constexpr int kTxns = 300;
  const auto watcher = Watch({.range = All()});
  std::thread writer([&] {
    for (int i = 0; i < kTxns; ++i) {
      const std::string value = std::to_string(i);
      Txn({.then = {PutOp{K("a"), value}, PutOp{K("b"), value}, PutOp{K("c"), value}}});
    }
  });
  std::vector<std::string> expected;
  for (int i = 0; i < kTxns; ++i) {
    for (const char* name : {"a", "b", "c"}) expected.push_back(StrCat("put ", name, "=", i));
  }
  std::vector<std::string> seen;
  while (seen.size() < expected.size()) {
    const auto batch = watcher->Next(kPatience);
    if (!batch.ok()) {
      ADD_FAILURE() << batch.status() << " after " << seen.size() << " events";
      break;
    }
    EXPECT_EQ(batch->events.size() % 3, 0u) << "a transaction was split";
    for (const WatchEvent& event : batch->events) seen.push_back(Show(event));
  }
  writer.join();
  EXPECT_EQ(seen, expected);
}

TEST_P(Watches, RefuseARangeThatCanHoldNoKey) {
  EXPECT_TRUE(absl::IsInvalidArgument(store().Watch({.range = KeyRange::Between("b", "a")}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().Watch({.range = KeyRange::Key("")}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().Watch({.range = All(), .start_revision = -1}).status()));
}

TEST_P(Watches, CallOnReadyOnceUntilDrained) {
  std::atomic<int> calls = 0;
  Mutex mu;
  CondVar called;
  const auto watcher = Watch({.range = All(), .on_ready = [&] {
                                MutexLock lock(mu);
                                ++calls;
                                called.SignalAll();
                              }});
  const auto drain = [&] {
    while (watcher->Next(absl::ZeroDuration()).ok()) {
    }
  };
  drain();
  for (int round = 1; round <= 3; ++round) {
    Put("a", "x");
    {
      MutexLock lock(mu);
      while (calls < round) called.Wait(mu);
    }
    Put("a", "y");
    EXPECT_THAT(NextEvents(*watcher, 2), ElementsAre("put a=x", "put a=y"));
    EXPECT_EQ(calls, round);
    drain();
  }
}

TEST_P(Watches, LeaveNothingOutForAReaderThatFallsFarBehind) {
  constexpr int kTxns = 100;
  const auto watcher = Watch({.range = All()});
  int expected = 0;
  for (int i = 0; i < kTxns; ++i) {
    TxnRequest request;
    for (std::size_t j = 0; j < kMaxTxnOps; ++j)
      request.then.push_back(PutOp{K(StrCat("k", j)), std::to_string(expected++)});
    Txn(request);
  }
  int next = 0;
  Revision last = 0;
  while (next < expected) {
    const auto batch = watcher->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_GT(batch->revision, last);
    last = batch->revision;
    for (const WatchEvent& event : batch->events) ASSERT_EQ(event.kv.value, std::to_string(next++));
  }
}

TEST_P(Watches, SayThatTheirHistoryIsCompacted) {
  const Revision first = Put("a", "1");
  const Revision last = Put("a", "2");
  ASSERT_TRUE(store().Compact(last).ok());
  const auto watcher = Watch({.range = All(), .start_revision = first});
  const absl::Status status = watcher->Next(kPatience).status();
  EXPECT_TRUE(IsCompacted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(StrCat("the oldest kept is ", last)));
  EXPECT_TRUE(IsCompacted(watcher->Next(kPatience).status())) << "and say it again";
}

TEST_P(Watches, TellProgressWhileNothingHappens) {
  const auto watcher = Watch({.range = All(), .progress = true});
  const auto silent = Watch({.range = All()});
  const Revision now = store().Put("elsewhere", "1").value();
  Revision told = 0;
  for (int i = 0; i < 1000 && told < now; ++i) {
    LetPass(absl::Minutes(1));
    const auto batch = watcher->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_TRUE(batch->events.empty());
    told = batch->revision;
  }
  EXPECT_GE(told, now);
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent->Next(absl::ZeroDuration()).status()));
  Put("a", "1");
  EXPECT_THAT(NextEvents(*watcher, 1), ElementsAre("put a=1"));
}

class Followers : public StoreContract {
 protected:
  Follower::Update Next(Follower& follower) {
    while (true) {
      auto update = follower.Next(kPatience);
      EXPECT_TRUE(update.ok()) << update.status();
      if (!update.ok()) return Snapshot{};
      const auto* batch = std::get_if<WatchBatch>(&*update);
      if (batch == nullptr || !batch->events.empty()) return *std::move(update);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Followers, testing::ValuesIn(AllStoreKinds()), KindName);

TEST_P(Followers, ListThenWatchWithoutAGap) {
  for (int i = 0; i < 7; ++i) Put(StrCat("k", i), "x");
  Follower follower(store(), All(), {.page = 3});
  const auto snapshot = std::get<Snapshot>(Next(follower));
  EXPECT_EQ(snapshot.kvs.size(), 7u);
  Put("new", "1");
  const auto batch = std::get<WatchBatch>(Next(follower));
  EXPECT_EQ(Show(batch.events.at(0)), "put new=1");
  EXPECT_GT(batch.revision, snapshot.revision);
}

TEST_P(Followers, ListAgainWhenTheirHistoryIsCompacted) {
  const Revision old = Put("a", "1");
  Put("b", "1");
  Delete(KeyRange::Key(K("a")));
  const Revision last = Put("c", "1");
  ASSERT_TRUE(store().Compact(last).ok());
  Follower follower(store(), All(), {.start_revision = old});
  const auto snapshot = std::get<Snapshot>(Next(follower));
  ASSERT_EQ(snapshot.kvs.size(), 2u) << "what was deleted meanwhile is not in it";
  EXPECT_EQ(snapshot.kvs[0].key, K("b"));
  Put("d", "1");
  EXPECT_EQ(Show(std::get<WatchBatch>(Next(follower)).events.at(0)), "put d=1");
}

}  // namespace
}  // namespace trainyard::kv
