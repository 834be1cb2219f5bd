// What every store promises of keys, revisions and transactions.
#include <atomic>
#include <thread>

#include "tests/contract/store_contract.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Keys : public StoreContract {
 protected:
  std::vector<std::string> Names(const RangeResult& result) {
    std::vector<std::string> names;
    for (const KeyValue& kv : result.kvs) names.push_back(kv.key.substr(kv.key.find('/') + 1));
    return names;
  }
  RangeResult Range(RangeRequest request) {
    auto result = store().Range(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(RangeResult{});
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Keys, testing::ValuesIn(AllStoreKinds()), KindName);

TEST_P(Keys, RaisesTheRevisionByOneForEachTransactionThatChangesSomething) {
  const Revision first = Put("a", "1");
  EXPECT_EQ(Put("a", "2"), first + 1);
  const TxnResult two = Txn({.then = {PutOp{K("b"), "1"}, PutOp{K("c"), "1"}}});
  EXPECT_EQ(two.revision, first + 2);
  EXPECT_EQ(Get("b")->mod_revision, Get("c")->mod_revision);
  EXPECT_EQ(Delete(KeyRange::Key(K("nobody"))), 0);
  EXPECT_EQ(Txn({.then = {GetOp{{.range = All()}}}}).revision, first + 2)
      << "a read has no revision of its own";
  EXPECT_EQ(Delete(All()), 3);
  EXPECT_EQ(store().Get(K("a"))->revision, first + 3);
}

TEST_P(Keys, KeepsCreationModificationAndVersionOfEveryKey) {
  const Revision first = Put("a", "1");
  EXPECT_EQ(*Get("a"), (KeyValue{K("a"), "1", first, first, 1, kNoLease}));
  Put("b", "x");
  const Revision third = Put("a", "2");
  EXPECT_EQ(*Get("a"), (KeyValue{K("a"), "2", first, third, 2, kNoLease}));
  EXPECT_EQ(Delete(KeyRange::Key(K("a"))), 1);
  EXPECT_EQ(Get("a"), std::nullopt);
  const Revision again = Put("a", "3");
  EXPECT_EQ(*Get("a"), (KeyValue{K("a"), "3", again, again, 1, kNoLease})) << "a key made again starts anew";
}

TEST_P(Keys, CountsAPutOfTheSameValueAsAChange) {
  const Revision first = Put("a", "same");
  EXPECT_EQ(Put("a", "same"), first + 1);
  EXPECT_EQ(Get("a")->version, 2);
}

TEST_P(Keys, ReadsThePastAtItsRevision) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  Put("b", "new");
  Delete(KeyRange::Key(K("a")));
  EXPECT_EQ(Get("a", one)->value, "1");
  EXPECT_EQ(Get("a", two)->value, "2");
  EXPECT_EQ(Get("a"), std::nullopt);
  EXPECT_THAT(Names(Range({.range = All(), .revision = two})), ElementsAre("a"));
  EXPECT_THAT(Names(Range({.range = All()})), ElementsAre("b"));
  EXPECT_EQ(Get("a", one - 1), std::nullopt);
}

TEST_P(Keys, RefusesARevisionThatHasNotHappened) {
  const Revision now = Put("a", "1");
  const absl::Status status = store().Get(K("a"), now + 1000).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_FALSE(IsCompacted(status));
  EXPECT_THAT(Message(status), HasSubstr("has not happened yet"));
}

TEST_P(Keys, ListsARangeInByteOrder) {
  for (const char* name : {"b", "a", "ab", "a\xff", "B", "b/2", "b/10", "c"}) Put(name, name);
  EXPECT_THAT(Names(Range({.range = All()})), ElementsAre("B", "a", "ab", "a\xff", "b", "b/10", "b/2", "c"));
  EXPECT_THAT(Names(Range({.range = KeyRange::Prefix(K("b/"))})), ElementsAre("b/10", "b/2"));
  EXPECT_THAT(Names(Range({.range = KeyRange::Prefix(K("a\xff"))})), ElementsAre("a\xff"));
  EXPECT_THAT(Names(Range({.range = KeyRange::Key(K("a"))})), ElementsAre("a"));
  EXPECT_THAT(Names(Range({.range = KeyRange::Between(K("ab"), K("b/2"))})),
              ElementsAre("ab", "a\xff", "b", "b/10"));
  EXPECT_THAT(Names(Range({.range = KeyRange::Between(K("b"), K("a"))})), ElementsAre());
  const RangeResult from = Range({.range = KeyRange::From(K("b/2")), .limit = 2});
  EXPECT_THAT(Names(from), ElementsAre("b/2", "c"));
}

TEST_P(Keys, PagesThroughARangeAtOneRevision) {
  for (const char* name : {"1", "2", "3", "4", "5"}) Put(name, name);
  const RangeResult first = Range({.range = All(), .limit = 2});
  EXPECT_THAT(Names(first), ElementsAre("1", "2"));
  EXPECT_TRUE(first.more);
  Delete(KeyRange::Key(K("4")));
  Put("35", "late");
  RangeRequest rest{.range = All(), .limit = 3, .revision = first.revision};
  rest.range.begin = first.kvs.back().key + '\0';
  const RangeResult second = Range(rest);
  EXPECT_THAT(Names(second), ElementsAre("3", "4", "5"));
  EXPECT_FALSE(second.more) << "the limit was reached exactly";
}

TEST_P(Keys, FindsAndDeletesNothingInAnEmptyRange) {
  Put("a", "1");
  Put("b", "1");
  const std::string zero(1, '\0');
  for (const KeyRange& range :
       {KeyRange::Between(K("b"), K("a")), KeyRange::Between(K("a"), K("a")), KeyRange::Between(K("a"), ""),
        KeyRange::Between(K("a"), zero), KeyRange::Key(""), KeyRange::Between("", zero)}) {
    EXPECT_THAT(Names(Range({.range = range})), ElementsAre());
    EXPECT_EQ(Delete(range), 0);
  }
  EXPECT_THAT(Names(Range({.range = All()})), ElementsAre("a", "b"));
}

TEST_P(Keys, LeavesValuesOutWhenOnlyKeysAreAskedFor) {
  Put("a", "long value");
  const RangeResult result = Range({.range = All(), .keys_only = true});
  ASSERT_EQ(result.kvs.size(), 1u);
  EXPECT_EQ(result.kvs[0].value, "");
  EXPECT_EQ(result.kvs[0].version, 1);
}

TEST_P(Keys, KeepsEveryByteOfKeysAndValues) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  Put(bytes, bytes);
  Put("empty", "");
  EXPECT_EQ(Get(bytes)->value, bytes);
  EXPECT_EQ(Get(bytes)->key, K(bytes));
  EXPECT_EQ(Get("empty")->value, "");
  const std::string long_name(5000, 'n');
  Put(long_name, "v");
  EXPECT_EQ(Get(long_name)->value, "v");
}

struct Case {
  Compare compare;
  bool holds;
};

TEST_P(Keys, ComparesValueVersionAndRevisions) {
  const Revision created = Put("a", "m");
  const Revision modified = Put("a", "n");
  using T = Compare::Target;
  using R = Compare::Relation;
  const auto number = [&](std::string_view name, T target, R relation, std::int64_t operand) {
    return Compare{K(name), target, relation, operand};
  };
  const auto value = [&](std::string_view name, R relation, const char* operand) {
    return Compare{K(name), T::kValue, relation, std::string(operand)};
  };
  const std::vector<Case> cases = {
      {Exists(K("a")), true},
      {Exists(K("none")), false},
      {Absent(K("a")), false},
      {Absent(K("none")), true},
      {ValueIs(K("a"), "n"), true},
      {ValueIs(K("a"), "m"), false},
      {value("a", R::kLess, "o"), true},
      {value("a", R::kGreater, "o"), false},
      {value("a", R::kNotEqual, "m"), true},
      {value("none", R::kEqual, ""), false},
      {value("none", R::kNotEqual, "x"), false},
      {VersionIs(K("a"), 2), true},
      {VersionIs(K("none"), 0), true},
      {number("a", T::kVersion, R::kGreater, 2), false},
      {number("a", T::kVersion, R::kLess, 3), true},
      {CreatedAt(K("a"), created), true},
      {CreatedAt(K("a"), modified), false},
      {ModifiedAt(K("a"), modified), true},
      {ModifiedAt(K("none"), 0), true},
      {number("a", T::kModRevision, R::kNotEqual, created), true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Txn({.compares = {cases[i].compare}}).succeeded, cases[i].holds) << "case " << i;
  }
  EXPECT_FALSE(Txn({.compares = {Exists(K("a")), Absent(K("a"))}}).succeeded) << "all must hold";
}

TEST_P(Keys, TakesOneBranchAndLeavesTheOther) {
  Put("a", "1");
  const TxnRequest request{.compares = {ValueIs(K("a"), "1")},
                           .then = {PutOp{K("a"), "2"}},
                           .otherwise = {GetOp{{.range = KeyRange::Key(K("a"))}}}};
  EXPECT_TRUE(Txn(request).succeeded);
  const TxnResult second = Txn(request);
  EXPECT_FALSE(second.succeeded);
  EXPECT_EQ(std::get<RangeResult>(second.results.at(0)).kvs.at(0).value, "2");
}

TEST_P(Keys, LetsLaterOperationsOfATransactionSeeEarlierOnes) {
  Put("a", "1");
  Put("b", "1");
  Put("c", "1");
  const TxnResult result = Txn({.then = {
                                    PutOp{K("a"), "2"},
                                    GetOp{{.range = All()}},
                                    DeleteOp{KeyRange::Between(K("b"), K("z"))},
                                    DeleteOp{KeyRange::Between(K("b"), K("z"))},
                                    GetOp{{.range = All(), .limit = 1}},
                                }});
  const auto& before = std::get<RangeResult>(result.results.at(1));
  EXPECT_THAT(Names(before), ElementsAre("a", "b", "c"));
  EXPECT_EQ(before.kvs.at(0).value, "2");
  EXPECT_EQ(before.kvs.at(0).mod_revision, result.revision);
  EXPECT_EQ(before.kvs.at(0).version, 2);
  EXPECT_EQ(std::get<DeleteResult>(result.results.at(2)).deleted, 2);
  EXPECT_EQ(std::get<DeleteResult>(result.results.at(3)).deleted, 0);
  const auto& after = std::get<RangeResult>(result.results.at(4));
  EXPECT_THAT(Names(after), ElementsAre("a"));
  EXPECT_FALSE(after.more);
}

TEST_P(Keys, RefusesATransactionThatContradictsItself) {
  const absl::Status twice = store().Txn({.then = {PutOp{K("a"), "1"}, PutOp{K("a"), "2"}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(twice)) << twice;
  const absl::Status both = store().Txn({.then = {PutOp{K("a"), "1"}, DeleteOp{All()}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(both)) << both;
  EXPECT_EQ(Get("a"), std::nullopt);
  EXPECT_TRUE(Txn({.then = {PutOp{K("a"), "1"}}, .otherwise = {PutOp{K("a"), "2"}}}).succeeded)
      << "two branches may put the same key";
}

TEST_P(Keys, DoesAllOfATransactionOrNone) {
  const absl::Status status =
      store().Txn({.then = {PutOp{K("a"), "1"}, PutOp{K("b"), "1", /*lease=*/424242}}}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(Get("a"), std::nullopt);
}

TEST_P(Keys, RefusesWhatIsOverALimitAndSaysWhich) {
  const std::string large(2 << 20, 'x');
  const absl::Status too_large = store().Put(K("a"), large).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_large)) << too_large;
  EXPECT_THAT(Message(too_large), HasSubstr("1.5 MiB request limit"));
  TxnRequest many;
  for (std::size_t i = 0; i <= kMaxTxnOps; ++i) many.then.push_back(PutOp{K(std::to_string(i)), "x"});
  const absl::Status too_many = store().Txn(many).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_many)) << too_many;
  EXPECT_THAT(Message(too_many), HasSubstr("129 operations, above the limit of 128"));
  EXPECT_TRUE(absl::IsInvalidArgument(store().Put("", "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().Get("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store().Range({.range = All(), .limit = -1}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      store().Txn({.compares = {{K("a"), Compare::Target::kValue, Compare::Relation::kEqual, 7}}}).status()));
  EXPECT_THAT(Names(Range({.range = All()})), ElementsAre());
}

TEST_P(Keys, TakesWhatIsJustBelowTheLimits) {
  const std::string large(kMaxRequestBytes - 4096, 'x');
  Put("a", large);
  EXPECT_EQ(Get("a")->value, large);
  TxnRequest many;
  for (std::size_t i = 0; i < kMaxTxnOps; ++i) many.then.push_back(PutOp{K(StrCat("k", i)), "x"});
  EXPECT_TRUE(Txn(many).succeeded);
}

TEST_P(Keys, LosesNoUpdateAmongConcurrentWriters) {
  constexpr int kThreads = 8;
  constexpr int kEach = 25;
  Put("counter", "0");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto now = store().Get(K("counter"));
        ASSERT_TRUE(now.ok()) << now.status();
        const int value = std::stoi(now->kv->value);
        const auto result = store().Txn({.compares = {ModifiedAt(K("counter"), now->kv->mod_revision)},
                                         .then = {PutOp{K("counter"), std::to_string(value + 1)}}});
        ASSERT_TRUE(result.ok()) << result.status();
        if (result->succeeded) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("counter")->value, std::to_string(kThreads * kEach));
  EXPECT_EQ(Get("counter")->version, kThreads * kEach + 1);
}

TEST_P(Keys, FinishesEveryAsynchronousTransactionOnce) {
  constexpr int kCount = 200;
  std::atomic<int> done = 0;
  std::atomic<int> failed = 0;
  Mutex mu;
  CondVar ended;
  for (int i = 0; i < kCount; ++i) {
    store().TxnAsync({.then = {PutOp{K(StrCat("k", i)), std::to_string(i)}}},
                     [&](absl::StatusOr<TxnResult> result) {
                       if (!result.ok() || !result->succeeded) ++failed;
                       MutexLock lock(mu);
                       ++done;
                       ended.SignalAll();
                     });
  }
  store().TxnAsync({.then = {PutOp{"", "x"}}}, [&](const absl::StatusOr<TxnResult>& result) {
    if (!absl::IsInvalidArgument(result.status())) ++failed;
    MutexLock lock(mu);
    ++done;
    ended.SignalAll();
  });
  {
    MutexLock lock(mu);
    while (done <= kCount) ended.Wait(mu);
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Range({.range = All()}).kvs.size(), static_cast<std::size_t>(kCount));
}

TEST_P(Keys, ForgetsWhatWasSupersededBeforeACompaction) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  Put("gone", "1");
  Delete(KeyRange::Key(K("gone")));
  const Revision last = Put("b", "1");
  const absl::Status future = store().Compact(last + 1000);
  EXPECT_TRUE(absl::IsOutOfRange(future)) << future;
  EXPECT_FALSE(IsCompacted(future));
  ASSERT_TRUE(store().Compact(last).ok());

  const absl::Status past = store().Get(K("a"), one).status();
  EXPECT_TRUE(absl::IsOutOfRange(past)) << past;
  EXPECT_TRUE(IsCompacted(past)) << past;
  EXPECT_THAT(Message(past), HasSubstr("list again"));
  EXPECT_TRUE(IsCompacted(store().Range({.range = All(), .revision = two}).status()));
  EXPECT_TRUE(IsCompacted(store().Compact(two)));
  EXPECT_EQ(Get("a", last)->value, "2") << "the revision compacted to can still be read";
  EXPECT_EQ(*Get("a"), (KeyValue{K("a"), "2", one, two, 2, kNoLease}));
  EXPECT_EQ(Get("gone"), std::nullopt);
}

}  // namespace
}  // namespace trainyard::kv
