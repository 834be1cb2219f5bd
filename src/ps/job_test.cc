#include "ps/job.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "graph/build/builder.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/origin.h"
#include "ps/ps_testing.h"

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads x and y, `readers` times.
graph::Programs Reading(int readers, std::uint64_t seed = 3) {
  graph::Builder net("net", {.seed = seed});
  graph::Ref loss;
  for (int i = 0; i < std::max(1, readers); ++i) {
    std::vector<graph::Ref> fields = {net.Data(StrCat("x", i), {4}), net.Data(StrCat("y", i), {1})};
    if (readers > 0) {
      fields = net.Read({.sources = {"data.csv"},
                         .format = "csv",
                         .fields = {{.name = StrCat("a", i), .item = {4}, .begin = 0},
                                    {.name = StrCat("b", i), .item = {1}, .begin = 4}}});
    }
    loss = net.Mean(net.SquareErrorCost(net.Fc(fields[0], 1), fields[1]));
  }
  net.Minimize(loss, {.update = graph::Sgd()});
  absl::StatusOr<graph::Programs> programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return *std::move(programs);
}

class JobTest : public testing::Test {
 protected:
  absl::Status Create(const graph::Graphs& graphs) {
    return CreateJob(*store_, ids_, keys_, {.graphs = graphs, .checkpoint_every = 7});
  }

  ManualClock clock_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  IdSource ids_{1};
  const JobKeys keys_{"default/mnist"};
  const graph::Programs programs_ = Reading(1);
  const graph::Graphs graphs_ = MakeGraphs(programs_, {.trainers = 2, .passes = 5, .pservers = 2});
};

TEST_F(JobTest, IsThereWhole) {
  ASSERT_TRUE(Create(graphs_).ok());
  const JobMeta meta = GetMeta(*store_, keys_)->meta;
  EXPECT_EQ(meta.state, JobState::kWaiting);
  EXPECT_EQ(meta.trainers, 2);
  EXPECT_EQ(meta.least_trainers, 2);
  EXPECT_EQ(meta.most_trainers, 2);
  EXPECT_EQ(meta.pservers, 2);
  EXPECT_EQ(meta.passes, 5);
  EXPECT_EQ(meta.checkpoint_every, 7);
  EXPECT_FALSE(meta.layout.empty());
  EXPECT_THAT(*ListGraphs(*store_, keys_), ElementsAre("trainer-0", "trainer-1", "pserver-0", "pserver-1"));
  EXPECT_EQ(*GetOrigin(*store_, keys_), *graphs_.trainers[0].origin);
}

TEST_F(JobTest, HasTheGraphsThatItsOriginMakes) {
  ASSERT_TRUE(Create(graphs_).ok());
  const JobMeta meta = GetMeta(*store_, keys_)->meta;
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "pserver-1"), graphs_.pservers[1]);
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Prefix(keys_.Desc(""))).ok());
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "pserver-1"), graphs_.pservers[1]);
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "trainer-0"), graphs_.trainers[0]);
  EXPECT_TRUE(absl::IsInvalidArgument(TakeGraph(*store_, keys_, meta, "master-0").status()));
}

TEST_F(JobTest, WithoutAnOriginHasTheGraphsThatAreStored) {
  ASSERT_TRUE(Create(graphs_).ok());
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Prefix(keys_.Program())).ok());
  JobMeta meta = GetMeta(*store_, keys_)->meta;
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "trainer-1"), graphs_.trainers[1]);
  EXPECT_TRUE(absl::IsNotFound(TakeGraph(*store_, keys_, meta, "trainer-2").status()));
  meta.pservers = 3;
  EXPECT_THAT(Message(TakeGraph(*store_, keys_, meta, "trainer-1").status()), HasSubstr("has no program"));
}

TEST_F(JobTest, IsNotBegunTwice) {
  ASSERT_TRUE(Create(graphs_).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Create(graphs_)));
  ASSERT_TRUE(DeleteJob(*store_, keys_).ok());
  EXPECT_TRUE(Create(graphs_).ok());
}

TEST_F(JobTest, TakesThePlaceOfOneThatWasBegunHalf) {
  SteppedStore stepped(*store_);
  for (int writes = 0;; ++writes) {
    int left = writes;
    stepped.before_txn = [&] { return left-- > 0 ? absl::OkStatus() : absl::UnavailableError("gone"); };
    const absl::Status created = CreateJob(stepped, ids_, keys_, {.graphs = graphs_});
    if (created.ok()) break;
    EXPECT_TRUE(absl::IsUnavailable(created)) << created;
    EXPECT_TRUE(absl::IsNotFound(GetMeta(*store_, keys_).status())) << writes;
  }
  const JobMeta meta = GetMeta(*store_, keys_)->meta;
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "pserver-0"), graphs_.pservers[0]);
}

TEST_F(JobTest, LeavesNothingButItsNeighboursWhenItIsDeleted) {
  ASSERT_TRUE(Create(graphs_).ok());
  ASSERT_TRUE(CreateJob(*store_, ids_, {"default/mnist2"}, {.graphs = graphs_}).ok());
  ASSERT_TRUE(store_->Put(keys_.Output("trainer-0", 1), "x").ok());
  ASSERT_TRUE(DeleteJob(*store_, keys_).ok());
  EXPECT_TRUE(store_->Range({.range = kv::KeyRange::Prefix(keys_.Root())})->kvs.empty());
  EXPECT_TRUE(GetMeta(*store_, {"default/mnist2"}).ok());
}

TEST_F(JobTest, FailsOnceAndKeepsItsReason) {
  ASSERT_TRUE(Create(graphs_).ok());
  ASSERT_TRUE(FailJob(*store_, keys_, "trainer-1: no data").ok());
  ASSERT_TRUE(FailJob(*store_, keys_, "something later").ok());
  const JobMeta meta = GetMeta(*store_, keys_)->meta;
  EXPECT_EQ(meta.state, JobState::kFailed);
  EXPECT_EQ(JobFailedError(meta).message(), "the job has failed: trainer-1: no data");
}

TEST_F(JobTest, IsRefusedIfItsGraphsDoNotBelongTogether) {
  const graph::Graphs others = MakeGraphs(Reading(1, 4), {.trainers = 2, .passes = 5, .pservers = 2});
  const auto with = [&](auto change) {
    graph::Graphs graphs = graphs_;
    change(graphs);
    const absl::Status created = Create(graphs);
    EXPECT_TRUE(absl::IsInvalidArgument(created)) << created;
    EXPECT_TRUE(absl::IsNotFound(GetMeta(*store_, keys_).status()));
    return std::string(Message(created));
  };
  EXPECT_THAT(with([&](graph::Graphs& graphs) { graphs.pservers[1] = others.pservers[1]; }),
              HasSubstr("pserver-1 and trainer-0 are of two transpilations"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { graphs.pservers.clear(); }), HasSubstr("has no pserver"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { graphs.trainers.pop_back(); }),
              HasSubstr("there are 1 trainers and 2 pservers, and they were made for 2 and 2"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { graphs.trainers[1] = graphs.trainers[0]; }),
              HasSubstr("trainer-0 is there twice"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { graphs.trainers.erase(graphs.trainers.begin()); }),
              HasSubstr("trainer-0 or another is missing"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { std::swap(graphs.trainers[1], graphs.pservers[1]); }),
              HasSubstr("pserver-1 is among the trainers"));
  EXPECT_THAT(with([](graph::Graphs& graphs) { graphs.pservers[1].origin = nullptr; }),
              HasSubstr("pserver-1 was not made by Transpile()"));
}

TEST_F(JobTest, IsRefusedIfATrainerHasNotOneReader) {
  EXPECT_THAT(Message(Create(MakeGraphs(Reading(0), {}))), HasSubstr("trainer-0 has no `read`"));
  EXPECT_THAT(Message(Create(MakeGraphs(Reading(2), {}))), HasSubstr("reads in two places"));
}

TEST_F(JobTest, IsRefusedIfItsBoundsAreNone) {
  for (const NewJob& job :
       {NewJob{.graphs = graphs_, .least_trainers = 3}, NewJob{.graphs = graphs_, .most_trainers = 1},
        NewJob{.graphs = graphs_, .checkpoint_every = 0}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CreateJob(*store_, ids_, keys_, job)));
  }
}

}  // namespace
}  // namespace trainyard::ps
