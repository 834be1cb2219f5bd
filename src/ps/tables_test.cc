#include "ps/tables.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/ps_testing.h"

namespace trainyard::ps {
namespace {

using testing::HasSubstr;

class TablesTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  JobKeys keys_{"default/mnist"};
};

TEST(JobKeys, AreThoseOfTheTables) {
  const JobKeys keys{"default/mnist"};
  EXPECT_EQ(keys.Root(), "trainyard/jobs/default/mnist/");
  EXPECT_EQ(keys.Meta(), "trainyard/jobs/default/mnist/meta");
  EXPECT_EQ(keys.Client(), "trainyard/jobs/default/mnist/client");
  EXPECT_EQ(keys.Desc("trainer-0"), "trainyard/jobs/default/mnist/graph_program_desc/trainer-0");
  EXPECT_EQ(keys.Pod("trainer-0"), "trainyard/jobs/default/mnist/graph_pod/trainer-0");
  EXPECT_EQ(keys.Incarnation("pserver-1"), "trainyard/jobs/default/mnist/graph_incarnation/pserver-1");
  EXPECT_EQ(keys.Checkpoint("pserver-1"), "trainyard/jobs/default/mnist/graph_checkpoint/pserver-1");
}

TEST(JobKeys, OfOutputsSortByNumber) {
  const JobKeys keys{"a/b"};
  EXPECT_TRUE(keys.Output("g", 1).starts_with(keys.Outputs("g")));
  std::int64_t before = 0;
  for (const std::int64_t sequence : {std::int64_t{9}, std::int64_t{10}, std::int64_t{1000000}, INT64_MAX}) {
    EXPECT_LT(keys.Output("g", before), keys.Output("g", sequence));
    before = sequence;
  }
}

TEST_F(TablesTest, MetaIsPutOnlyByWhoKnowsTheLast) {
  EXPECT_TRUE(absl::IsNotFound(GetMeta(*store_, keys_).status()));
  const kv::Revision first = PutMeta(*store_, keys_, {.trainers = 2}, 0).value();
  EXPECT_TRUE(absl::IsAborted(PutMeta(*store_, keys_, {.trainers = 3}, 0).status()));
  const StoredMeta stored = GetMeta(*store_, keys_).value();
  EXPECT_EQ(stored.meta.trainers, 2);
  EXPECT_EQ(stored.revision, first);
  const kv::Revision second = PutMeta(*store_, keys_, {.trainers = 4}, first).value();
  EXPECT_GT(second, first);
  EXPECT_TRUE(absl::IsAborted(PutMeta(*store_, keys_, {.trainers = 5}, first).status()));
  EXPECT_EQ(GetMeta(*store_, keys_)->meta.trainers, 4);
}

TEST_F(TablesTest, MetaThatIsNoneIsAnErrorThatNamesTheKey) {
  ASSERT_TRUE(store_->Put(keys_.Meta(), "{}").ok());
  const absl::Status status = GetMeta(*store_, keys_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(keys_.Meta()));
}

TEST_F(TablesTest, IncarnationsCountUpForEachGraph) {
  EXPECT_EQ(NextIncarnation(*store_, keys_, "trainer-0").value(), 1);
  EXPECT_EQ(NextIncarnation(*store_, keys_, "trainer-0").value(), 2);
  EXPECT_EQ(NextIncarnation(*store_, keys_, "trainer-1").value(), 1);
}

TEST_F(TablesTest, NoTwoGetTheSameIncarnation) {
  SteppedStore stepped(*store_);
  bool first = true;
  stepped.before_txn = [&] {
    if (std::exchange(first, false)) {
      EXPECT_EQ(NextIncarnation(*store_, keys_, "trainer-0").value(), 1);
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(NextIncarnation(stepped, keys_, "trainer-0").value(), 2);
}

TEST_F(TablesTest, IncarnationsThatAreNoNumbersAreErrors) {
  for (const char* text : {"", "x", "-1", "1.5", "9223372036854775807"}) {
    ASSERT_TRUE(store_->Put(keys_.Incarnation("trainer-0"), text).ok());
    const absl::Status status = NextIncarnation(*store_, keys_, "trainer-0").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr(keys_.Incarnation("trainer-0")));
  }
}

TEST(NewestCommonStep, IsOfTheLayoutAndOfAllGraphs) {
  const auto at = [](std::int64_t step, std::string layout) {
    return Checkpoint{.step = step, .layout = std::move(layout)};
  };
  EXPECT_EQ(NewestCommonStep({}, "a"), std::nullopt);
  EXPECT_EQ(NewestCommonStep({{{at(1, "a")}}, {}}, "a"), std::nullopt);
  EXPECT_EQ(NewestCommonStep({{{at(1, "a"), at(2, "a"), at(3, "a")}}, {{at(2, "a")}}}, "a"), 2);
  EXPECT_EQ(NewestCommonStep({{{at(1, "a"), at(2, "b")}}, {{at(1, "a"), at(2, "a")}}}, "a"), 1);
  EXPECT_EQ(NewestCommonStep({{{at(1, "a")}}}, "b"), std::nullopt);
}

}  // namespace
}  // namespace trainyard::ps
