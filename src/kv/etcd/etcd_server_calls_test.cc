#include "kv/etcd/etcd_server_calls.h"

#include <atomic>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/disk/embedded_store.h"
#include "kv/memory_store.h"
#include "tests/support/temp_folder.h"

namespace trainyard::kv {
namespace {

class EtcdCallsTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<LocalStore> store_ = NewMemoryStore(clock_);
  Workers workers_{2};
  EtcdCalls calls_{*store_, workers_};
};

TEST_F(EtcdCallsTest, FindsTheOldestRevisionThatIsKept) {
  EXPECT_EQ(*calls_.OldestKept(), 1);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(store_->Put("a", "x").ok());
  for (const Revision compacted : {2, 3, 17, 30, 31}) {
    ASSERT_TRUE(store_->Compact(compacted).ok());
    EXPECT_EQ(*calls_.OldestKept(), compacted);
  }
}

TEST_F(EtcdCallsTest, HasTheSameIdsForTheSameStore) {
  EtcdCalls again(*store_, workers_);
  EXPECT_EQ(calls_.Header(1).cluster_id(), again.Header(1).cluster_id());
  EXPECT_NE(calls_.Header(1).cluster_id(), calls_.Header(1).member_id());
}

TEST_F(EtcdCallsTest, TellsOfNoMemberBeforeItKnowsWhereItIs) {
  absl::StatusOr<etcdserverpb::MemberListResponse> members;
  const auto keep = [&](absl::StatusOr<etcdserverpb::MemberListResponse> answer) {
    members = std::move(answer);
  };
  calls_.Do(etcdserverpb::MemberListRequest(), keep);
  EXPECT_TRUE(absl::IsUnavailable(members.status()));
  calls_.SetClientUrl("http://127.0.0.1:1");
  calls_.Do(etcdserverpb::MemberListRequest(), keep);
  EXPECT_EQ(members->members(0).clienturls(0), "http://127.0.0.1:1");
}

TEST(EtcdCalls, AnswerEachOfManyWritesThatAreUnderWayTogether) {
  constexpr int kPuts = 500;
  const testing_support::TempFolder folder;
  const auto store = OpenEmbeddedStore(folder / "store");
  ASSERT_TRUE(store.ok()) << store.status();
  std::atomic<int> answered = 0;
  {
    Workers workers(4);
    EtcdCalls calls(**store, workers);
    for (int i = 0; i < kPuts; ++i) {
      workers.Post([&, i] {
        etcdserverpb::PutRequest put;
        put.set_key(StrCat("k", i));
        calls.Do(put, [&](const absl::StatusOr<etcdserverpb::PutResponse>& answer) {
          EXPECT_TRUE(answer.ok()) << answer.status();
          ++answered;
          answered.notify_all();
        });
      });
    }
    for (int seen = 0; seen < kPuts; seen = answered) answered.wait(seen);
  }
  EXPECT_EQ((*store)->Range({.range = KeyRange::Prefix("k"), .keys_only = true})->kvs.size(),
            static_cast<std::size_t>(kPuts));
}

}  // namespace
}  // namespace trainyard::kv
