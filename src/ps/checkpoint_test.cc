#include "ps/checkpoint.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/ps_testing.h"
#include "tests/support/fake_file_system.h"

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CheckpointData DataOf(std::int64_t step, std::string layout = "two") {
  CheckpointData data{.step = step, .layout = std::move(layout)};
  data.variables["w"] = graph::Tensor(graph::DataType::kFloat32, {4});
  data.variables["w"].data<float>()[0] = static_cast<float>(step);
  return data;
}

TEST(ChooseStepToSave, GivesTheLastStepOfACompleteJobOrSaysWhatThereIs) {
  const auto kept = [](std::initializer_list<std::int64_t> steps, std::int64_t finite = 1000) {
    GraphCheckpoints checkpoints;
    for (const std::int64_t step : steps)
      checkpoints.kept.push_back({.step = step, .layout = "two", .nonfinite = step > finite});
    return checkpoints;
  };
  const auto choose = [&](JobState state, const std::vector<GraphCheckpoints>& all,
                          std::optional<std::int64_t> wanted = std::nullopt) {
    const auto step =
        ChooseStepToSave({.state = state, .layout = "two", .checkpoint_every = 10, .steps = 40}, all, wanted);
    return step.ok() ? StrCat("step ", *step) : std::string(step.status().message());
  };
  using enum JobState;
  EXPECT_EQ(choose(kComplete, {kept({30, 40}), kept({20, 40})}), "step 40");
  EXPECT_THAT(choose(kComplete, {kept({30, 40}), kept({30})}),
              HasSubstr("of step 40, is missing: the newest that all pservers have is of step 30"));
  EXPECT_THAT(choose(kComplete, {kept({40}), kept({30})}), HasSubstr("there is none that all pservers have"));
  EXPECT_EQ(choose(kComplete, {kept({30, 40}), kept({30})}, 30), "step 30");
  EXPECT_EQ(choose(kRunning, {kept({30, 40}), kept({20, 30})}), "step 30");
  EXPECT_THAT(choose(kRunning, {kept({30}), kept({})}), HasSubstr("there is no checkpoint yet"));
  EXPECT_THAT(choose(kRunning, {kept({30}), kept({30})}, 20), HasSubstr("no checkpoint of step 20"));
  EXPECT_THAT(choose(kComplete, {kept({20, 40}, 30), kept({20, 40})}),
              HasSubstr("step 40 has non-finite values: the last one without is of step 20"));
  EXPECT_EQ(choose(kComplete, {kept({20, 40}, 30), kept({20, 40})}, 40), "step 40");
}

class PublishTest : public testing::Test {
 protected:
  Checkpoint Write(std::string_view graph, std::int64_t step, std::string layout = "two") {
    return WriteCheckpoint("dir", graph, DataOf(step, std::move(layout)), files_).value();
  }
  absl::Status Publish(std::string_view graph, const Checkpoint& checkpoint) {
    return PublishCheckpoint(store_, keys_, graph, {.checkpoint = checkpoint, .pservers = pservers_}, files_);
  }
  Checkpoint WriteAndPublish(std::string_view graph, std::int64_t step, std::string layout = "two") {
    const Checkpoint checkpoint = Write(graph, step, std::move(layout));
    EXPECT_TRUE(Publish(graph, checkpoint).ok());
    return checkpoint;
  }
  GraphCheckpoints Get(const std::string& graph) { return GetCheckpoints(store_, keys_, {graph}).value()[0]; }
  std::vector<std::int64_t> Steps(const std::string& graph) {
    std::vector<std::int64_t> steps;
    for (const Checkpoint& checkpoint : Get(graph).kept) steps.push_back(checkpoint.step);
    return steps;
  }

  ManualClock clock_;
  std::unique_ptr<kv::Store> memory_ = kv::NewMemoryStore(clock_);
  SteppedStore store_{*memory_};
  kv::FakeFileSystem files_;
  JobKeys keys_{"default/mnist"};
  std::vector<std::string> pservers_ = {"pserver-0", "pserver-1"};
};

class CommonCheckpointTest : public PublishTest {
 protected:
  CommonCheckpoint Find(const JobMeta& meta) { return FindCommonCheckpoint(store_, keys_, meta).value(); }
  JobMeta meta_{.trainers = 2, .pservers = 2, .layout = "two"};
};

TEST_F(CommonCheckpointTest, IsTheNewestThatAllHaveInTheLayout) {
  EXPECT_EQ(Find(meta_).step, std::nullopt);
  for (const std::int64_t step : {10, 20}) WriteAndPublish("pserver-0", step);
  WriteAndPublish("pserver-1", 20, "three");
  EXPECT_EQ(Find(meta_).step, std::nullopt);
  WriteAndPublish("pserver-1", 10);
  EXPECT_EQ(Find(meta_).step, 10);
}

TEST_F(CommonCheckpointTest, WithoutStepsIsTheFirstOnesNewestIfAllHaveOne) {
  meta_.mode = graph::SyncMode::kAsync;
  for (const std::int64_t step : {10, 20}) WriteAndPublish("pserver-0", step);
  EXPECT_EQ(Find(meta_).step, std::nullopt);
  WriteAndPublish("pserver-1", 7);
  EXPECT_EQ(Find(meta_).step, 20);
}

TEST_F(CommonCheckpointTest, IsNotGoneBackToOnceItMayBeForgotten) {
  const kv::Revision revision = PutMeta(store_, keys_, meta_, 0).value();
  for (const char* graph : {"pserver-0", "pserver-1"}) WriteAndPublish(graph, 10);
  const CommonCheckpoint before = Find(meta_);
  for (const std::int64_t step : {20, 30}) {
    for (const char* graph : {"pserver-0", "pserver-1"}) WriteAndPublish(graph, step);
  }
  EXPECT_FALSE(PutMetaIf(store_, keys_, meta_, revision, before).value());
  EXPECT_TRUE(PutMetaIf(store_, keys_, meta_, revision, Find(meta_)).value());
  EXPECT_FALSE(PutMetaIf(store_, keys_, meta_, revision, Find(meta_)).value());  // the meta has changed
}

TEST_F(CommonCheckpointTest, OfANewLayoutLetsThoseGoThatTheJobHadMoreOf) {
  for (const char* graph : {"pserver-0", "pserver-1"}) WriteAndPublish(graph, 10);
  const JobMeta one{.pservers = 1, .layout = "one"};
  ASSERT_TRUE(ForgetSurplusCheckpoints(store_, keys_, one, files_).ok());
  EXPECT_THAT(Steps("pserver-1"), ElementsAre(10));
  pservers_ = {"pserver-0"};
  WriteAndPublish("pserver-0", 20, "one");
  ASSERT_TRUE(ForgetSurplusCheckpoints(store_, keys_, one, files_).ok());
  EXPECT_THAT(Steps("pserver-1"), IsEmpty());
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(10, 20));
  EXPECT_EQ(files_.Paths().size(), 2);
}

TEST_F(PublishTest, PointersAreInTheOrderOfTheGraphsAskedFor) {
  const Checkpoint zero = WriteAndPublish("pserver-0", 10);
  const Checkpoint one = WriteAndPublish("pserver-1", 20);
  const auto all = GetCheckpoints(store_, keys_, {"pserver-1", "pserver-7", "pserver-0"}).value();
  ASSERT_EQ(all.size(), 3);
  EXPECT_THAT(all[0].kept, ElementsAre(one));
  EXPECT_THAT(all[1].kept, IsEmpty());
  EXPECT_THAT(all[2].kept, ElementsAre(zero));
}

TEST_F(PublishTest, KeepsAllThatIsNotYetEverybodys) {
  for (const std::int64_t step : {10, 20, 30}) WriteAndPublish("pserver-0", step);
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(10, 20, 30));
  EXPECT_EQ(files_.Paths().size(), 3);
}

TEST_F(PublishTest, ForgetsWhatIsBelowTheLastButOneCommonStep) {
  for (const std::int64_t step : {10, 20, 30}) WriteAndPublish("pserver-0", step);
  for (const std::int64_t step : {10, 20}) WriteAndPublish("pserver-1", step);
  EXPECT_THAT(Steps("pserver-1"), ElementsAre(10, 20));
  const Checkpoint last = WriteAndPublish("pserver-1", 30);
  EXPECT_THAT(Steps("pserver-1"), ElementsAre(20, 30));
  const Checkpoint next = WriteAndPublish("pserver-0", 40);
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(20, 30, 40));
  EXPECT_EQ(files_.Paths().size(), 5);
  for (const Checkpoint& kept : Get("pserver-0").kept) EXPECT_TRUE(ReadCheckpoint(kept, files_).ok());
  for (const Checkpoint& kept : Get("pserver-1").kept) EXPECT_TRUE(ReadCheckpoint(kept, files_).ok());
}

TEST_F(PublishTest, WhoeverLookedJustBeforeCanStillGoBack) {
  for (const char* graph : {"pserver-0", "pserver-1"}) WriteAndPublish(graph, 10);
  WriteAndPublish("pserver-0", 20);
  const auto seen = NewestCommonStep(GetCheckpoints(store_, keys_, pservers_).value(), "two");
  ASSERT_EQ(seen, 10);
  WriteAndPublish("pserver-1", 20);
  EXPECT_THAT(Steps("pserver-0"), testing::Contains(10));
  EXPECT_THAT(Steps("pserver-1"), testing::Contains(10));
}

TEST_F(PublishTest, ReplacesTheSameStepDoneAgain) {
  Checkpoint first = Write("pserver-0", 10);
  CheckpointData again = DataOf(10);
  again.variables["w"].data<float>()[1] = 5;
  ASSERT_TRUE(Publish("pserver-0", first).ok());
  const Checkpoint second = WriteCheckpoint("dir", "pserver-0", again, files_).value();
  EXPECT_TRUE(ReadCheckpoint(first, files_).ok());  // until the pointer has moved
  ASSERT_TRUE(Publish("pserver-0", second).ok());
  EXPECT_THAT(Get("pserver-0").kept, ElementsAre(second));
  EXPECT_THAT(files_.Paths(), ElementsAre(second.file));
}

TEST_F(PublishTest, NeverForgetsTheLastStepThatIsFiniteEverywhere) {
  for (const std::int64_t step : {10, 20, 30, 40, 50}) {
    for (const std::string& graph : pservers_) {
      Checkpoint checkpoint = Write(graph, step);
      checkpoint.nonfinite = step > 20 && graph == "pserver-1";
      ASSERT_TRUE(Publish(graph, checkpoint).ok());
    }
  }
  for (const std::string& graph : pservers_) {
    EXPECT_THAT(Steps(graph), testing::IsSupersetOf({20, 40, 50})) << graph;
    for (const Checkpoint& kept : Get(graph).kept) EXPECT_TRUE(ReadCheckpoint(kept, files_).ok());
  }
  EXPECT_EQ(NewestFiniteStep(GetCheckpoints(store_, keys_, pservers_).value(), "two"), 20);
}

TEST_F(PublishTest, LatestTakesThePlaceOfLaterSteps) {
  for (const std::int64_t step : {30, 40, 50}) WriteAndPublish("pserver-0", step);
  const Checkpoint latest = Write("pserver-0", 35);
  ASSERT_TRUE(PublishCheckpoint(store_, keys_, "pserver-0",
                                {.checkpoint = latest, .pservers = {"pserver-0"}, .latest = true}, files_)
                  .ok());
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(30, 35));
  EXPECT_TRUE(ReadCheckpoint(Get("pserver-0").kept.back(), files_).ok());
}

TEST_F(PublishTest, ToldTwiceIsToldOnce) {
  const Checkpoint checkpoint = WriteAndPublish("pserver-0", 10);
  ASSERT_TRUE(Publish("pserver-0", checkpoint).ok());
  EXPECT_THAT(Get("pserver-0").kept, ElementsAre(checkpoint));
  EXPECT_TRUE(ReadCheckpoint(checkpoint, files_).ok());
}

TEST_F(PublishTest, KeepsAnotherLayoutUntilTheNewOneIsEverybodys) {
  for (const std::string& graph : pservers_) WriteAndPublish(graph, 10, "old");
  WriteAndPublish("pserver-0", 10);
  WriteAndPublish("pserver-0", 20);
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(10, 10, 20));
  WriteAndPublish("pserver-1", 10);
  WriteAndPublish("pserver-1", 20);
  WriteAndPublish("pserver-0", 20);
  for (const std::string& graph : pservers_) {
    for (const Checkpoint& kept : Get(graph).kept) EXPECT_EQ(kept.layout, "two");
    EXPECT_THAT(Steps(graph), ElementsAre(10, 20));
  }
}

TEST_F(PublishTest, DeletesNothingBeforeThePointerIsStored) {
  for (const std::int64_t step : {10, 20}) {
    for (const std::string& graph : pservers_) WriteAndPublish(graph, step);
  }
  WriteAndPublish("pserver-1", 30);
  const Checkpoint next = Write("pserver-0", 30);
  const std::size_t files = files_.Paths().size();
  store_.before_txn = [] { return absl::UnavailableError("away"); };
  EXPECT_TRUE(absl::IsUnavailable(Publish("pserver-0", next)));
  EXPECT_EQ(files_.Paths().size(), files);
  store_.before_txn = [] { return absl::OkStatus(); };
  ASSERT_TRUE(Publish("pserver-0", next).ok());
  EXPECT_LT(files_.Paths().size(), files);
}

TEST_F(PublishTest, SweepsUpWhatAPublisherThatDiedHasLeft) {
  for (const std::int64_t step : {10, 20, 30}) {
    for (const std::string& graph : pservers_) WriteAndPublish(graph, step);
  }
  // The pointer moves, and then nothing is deleted.
  WriteAndPublish("pserver-1", 40);
  const Checkpoint next = Write("pserver-0", 40);
  files_.CutPowerAt(1);
  EXPECT_TRUE(Publish("pserver-0", next).ok());
  files_.RestartProcess();
  const std::string left = "dir/pserver-0-20-";
  const auto is_left = [&](const std::string& path) { return path.starts_with(left); };
  EXPECT_TRUE(std::ranges::any_of(files_.Paths(), is_left));
  WriteAndPublish("pserver-0", 50);
  EXPECT_FALSE(std::ranges::any_of(files_.Paths(), is_left));
}

TEST_F(PublishTest, LeavesFilesOfOthersAlone) {
  for (const char* name : {"dir/pserver-0-x-1.ckpt", "dir/pserver-0-1.ckpt", "dir/pserver-01-1-00000000.ckpt",
                           "dir/pserver-0-1-00000000.ckpt.bak", "dir/notes.txt"}) {
    ASSERT_TRUE(files_.Open(name, kv::FileSystem::Mode::kCreate).ok());
  }
  for (const std::int64_t step : {10, 20, 30}) {
    for (const std::string& graph : pservers_) WriteAndPublish(graph, step);
  }
  EXPECT_EQ(files_.Paths().size(), 5 + 2 * 2 + 1);  // pserver-0 published before pserver-1 had step 30
}

TEST_F(PublishTest, IsNotLostAmongOtherWriters) {
  int left = 3;
  store_.before_txn = [&] {
    if (left-- > 0) {
      EXPECT_TRUE(PublishCheckpoint(*memory_, keys_, "pserver-0",
                                    {.checkpoint = Write("pserver-0", 100 + left), .pservers = pservers_},
                                    files_)
                      .ok());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(Publish("pserver-0", Write("pserver-0", 50)).ok());
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(50, 100, 101, 102));
}

TEST_F(PublishTest, APointerThatIsNoneIsAnErrorThatNamesTheKey) {
  ASSERT_TRUE(memory_->Put(keys_.Checkpoint("pserver-1"), "[]").ok());
  const absl::Status status = GetCheckpoints(store_, keys_, pservers_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(keys_.Checkpoint("pserver-1")));
}

TEST_F(PublishTest, ForgetsStepsThatDidNotHappen) {
  for (const std::int64_t step : {10, 20, 30}) WriteAndPublish("pserver-0", step);
  ASSERT_TRUE(ForgetCheckpointsAbove(store_, keys_, "pserver-0", 10, files_).ok());
  EXPECT_THAT(Steps("pserver-0"), ElementsAre(10));
  EXPECT_EQ(files_.Paths().size(), 1);
  ASSERT_TRUE(ForgetCheckpointsAbove(store_, keys_, "pserver-0", 0, files_).ok());
  EXPECT_THAT(Steps("pserver-0"), IsEmpty());
}

// Whatever the last call was before the power went or the process died, every pointer names a whole file.
TEST_F(PublishTest, SurvivesTheEndOfEverythingBetweenAnyTwoCalls) {
  for (const std::int64_t step : {10, 20}) {
    for (const std::string& graph : pservers_) WriteAndPublish(graph, step);
  }
  WriteAndPublish("pserver-1", 30);
  const kv::FakeFileSystem::Image image = files_.Save();
  const GraphCheckpoints before = Get("pserver-0");
  const auto write_and_publish = [&] {
    const auto written = WriteCheckpoint("dir", "pserver-0", DataOf(30), files_);
    if (written.ok()) (void)Publish("pserver-0", *written);
  };
  const int first = files_.changes();
  write_and_publish();
  const int changes = files_.changes() - first;
  ASSERT_GE(changes, 6);
  IdSource dice(7);
  for (int n = 1; n <= changes + 1; ++n) {
    for (const bool power : {true, false}) {
      files_.Load(image);
      ASSERT_TRUE(memory_->Put(keys_.Checkpoint("pserver-0"), EncodeCheckpoints(before)).ok());
      files_.CutPowerAt(n);
      write_and_publish();
      power ? files_.RestorePower(dice) : files_.RestartProcess();
      const GraphCheckpoints after = Get("pserver-0");
      for (const Checkpoint& kept : after.kept) {
        EXPECT_TRUE(ReadCheckpoint(kept, files_).ok()) << n << ": " << ReadCheckpoint(kept, files_).status();
      }
      EXPECT_EQ(after.kept.back().step, n <= changes - 1 && after == before ? 20 : 30) << n;
      // And life goes on.
      ASSERT_TRUE(Publish("pserver-0", Write("pserver-0", 40)).ok());
      EXPECT_TRUE(ReadCheckpoint(Get("pserver-0").kept.back(), files_).ok());
    }
  }
}

}  // namespace
}  // namespace trainyard::ps
