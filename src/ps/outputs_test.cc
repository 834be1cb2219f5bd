#include "ps/outputs.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/ps_testing.h"
#include "ps/step_outputs.h"

namespace trainyard::ps {
namespace {

using graph::DataType;
using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputsTest : public testing::Test {
 protected:
  std::unique_ptr<Outputs> Open(OutputOptions options = {}) {
    return std::make_unique<Outputs>(store_, clock_, keys_, "trainer-0", options);
  }
  static void Append(Outputs& outputs, float value) {
    outputs.Append({.time = absl::FromUnixSeconds(1000), .values = {{"loss", {1}, {value}}}});
  }
  static void AppendMany(Outputs& outputs, int from, int to) {
    for (int i = from; i < to; ++i) Append(outputs, static_cast<float>(i));
  }
  // Flushes while time goes on: a try that fails just now puts the next one off.
  absl::Status FlushedInTime(Outputs& outputs) {
    auto flushed = std::async(std::launch::async, [&] { return outputs.Flush(absl::InfiniteDuration()); });
    while (flushed.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      clock_.Advance(absl::Milliseconds(50));
    return flushed.get();
  }
  std::vector<Output> Written() {
    std::vector<Output> outputs;
    for (const kv::KeyValue& kv : Stored()) outputs.push_back(DecodeOutput(kv.value).value());
    return outputs;
  }
  std::vector<kv::KeyValue> Stored() {
    return memory_->Range({.range = kv::KeyRange::Prefix(keys_.Outputs("trainer-0"))})->kvs;
  }
  std::vector<double> Values() {
    std::vector<double> values;
    for (const Output& output : Written()) values.push_back(output.values.at(0).values.at(0));
    return values;
  }
  static std::vector<double> Counted(int from, int to) {
    std::vector<double> values;
    for (int i = from; i < to; ++i) values.push_back(i);
    return values;
  }

  ManualClock clock_{absl::FromUnixSeconds(1000)};
  std::unique_ptr<kv::Store> memory_ = kv::NewMemoryStore(clock_);
  SteppedStore store_{*memory_};
  JobKeys keys_{"default/mnist"};
};

class StepOutputsTest : public OutputsTest {
 protected:
  std::vector<Output> Settled() {
    EXPECT_TRUE(outputs_->Flush(absl::InfiniteDuration()).ok());
    return Written();
  }
  const std::unique_ptr<Outputs> outputs_ = Open();
  StepOutputs steps_{*outputs_, clock_};
};

TEST_F(StepOutputsTest, AreWrittenTogetherUnderTheirPlace) {
  Tensor loss(DataType::kFloat32, {2});
  loss.data<float>()[1] = 0.5F;
  Tensor right(DataType::kInt64, {});
  right.data<std::int64_t>()[0] = 7;
  Tensor done(DataType::kBool, {1});
  done.data<bool>()[0] = true;
  steps_.Begin(2, 3, 400);
  ASSERT_TRUE(steps_.Append({{"loss", &loss}, {"right", &right}}).ok());
  ASSERT_TRUE(steps_.Append({{"done", &done}}).ok());
  EXPECT_THAT(Settled(), IsEmpty()) << "nothing is known of the step yet";
  const Output output{.generation = 2,
                      .pass = 3,
                      .step = 400,
                      .time = absl::FromUnixSeconds(1000),
                      .values = {{"loss", {2}, {0, 0.5}}, {"right", {}, {7}}, {"done", {1}, {1}}}};
  EXPECT_EQ(steps_.Pending(), EncodeOutput(output));
  steps_.Begin(2, 3, 401);
  EXPECT_THAT(Settled(), ElementsAre(output));
  EXPECT_EQ(Stored()[0].key, keys_.Output("trainer-0", 0));
}

TEST_F(StepOutputsTest, SayWhetherTheirStepWasCommitted) {
  const Tensor loss(DataType::kFloat32, {1});
  for (const std::int64_t step : {5, 6, 7}) {
    steps_.Begin(1, 0, step);
    ASSERT_TRUE(steps_.Append({{"loss", &loss}}).ok());
    if (step == 6) steps_.Resume(6);  // it joined again and does the step again
    if (step == 7) steps_.Resume(8);  // it joined again after its contribution had been taken
  }
  std::vector<std::pair<std::int64_t, bool>> settled;
  for (const Output& output : Settled()) settled.emplace_back(output.step, output.committed);
  EXPECT_THAT(settled, ElementsAre(std::pair(5, true), std::pair(6, false), std::pair(7, true)));
}

TEST_F(StepOutputsTest, KeepTheFirstNumbersOfLargeTensors) {
  const Tensor large(DataType::kFloat32, {3, 1000});
  ASSERT_TRUE(steps_.Append({{"w", &large}}).ok());
  steps_.Settle(true);
  EXPECT_EQ(Settled().at(0).values[0].dims, (graph::Dims{3, 1000}));
  EXPECT_EQ(Written().at(0).values[0].values.size(), kMaxOutputValues);
}

TEST_F(StepOutputsTest, OfManyVariablesFitTheStoreOrAreErrors) {
  Tensor large(DataType::kFloat32, {2000});
  for (float& value : large.span<float>()) value = -1.2345678e-30F;
  const std::vector<std::pair<std::string, const Tensor*>> many(500, {"variable", &large});
  ASSERT_TRUE(steps_.Append(many).ok());
  steps_.Settle(true);
  EXPECT_EQ(Settled().at(0).values.size(), 500);
  const std::vector<std::pair<std::string, const Tensor*>> too_many(20000, {"variable", &large});
  EXPECT_TRUE(absl::IsInvalidArgument(steps_.Append(too_many)));
  steps_.Settle(false);
}

TEST_F(OutputsTest, OfAGraphThatIsGoneAreAppendedForIt) {
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  std::vector<std::string> texts;
  for (const double value : {1, 2})
    texts.push_back(EncodeOutput({.time = absl::FromUnixSeconds(1000), .values = {{"loss", {1}, {value}}}}));
  ASSERT_TRUE(AppendOutputs(*memory_, keys_, "trainer-0", texts).ok());
  Append(*outputs, 3);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_EQ(Values(), Counted(0, 4));
}

TEST_F(OutputsTest, AreWrittenInGroups) {
  std::atomic<int> transactions = 0;
  store_.before_txn = [&] {
    ++transactions;
    return absl::OkStatus();
  };
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_EQ(transactions, 1);
  // Time stands still: nothing is written until it is asked for.
  AppendMany(*outputs, 1, 251);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_EQ(transactions, 4);
  EXPECT_EQ(Values(), Counted(0, 251));
}

TEST_F(OutputsTest, AreWrittenByThemselvesWhenTheirTimeHasCome) {
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  const auto watcher = *memory_->Watch({.range = kv::KeyRange::Prefix(keys_.Outputs("trainer-0"))});
  Append(*outputs, 1);
  EXPECT_EQ(Values(), Counted(0, 1));
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(watcher->Next()->events.size(), 1);
  EXPECT_EQ(Values(), Counted(0, 2));
}

TEST_F(OutputsTest, OlderThanTheHistoryAreDeleted) {
  const auto outputs = Open({.history = 5});
  for (int i = 0; i < 12; ++i) {
    Append(*outputs, static_cast<float>(i));
    if (i % 4 == 0) {
      ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
    }
  }
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_EQ(Values(), Counted(7, 12));
}

TEST_F(OutputsTest, GoOnWhereAnEarlierIncarnationEnded) {
  for (int i = 0; i < 3; ++i) {
    const auto outputs = Open();
    AppendMany(*outputs, 600 * i, 600 * (i + 1));
  }
  EXPECT_EQ(Values(), Counted(0, 1800));
  EXPECT_EQ(Stored().back().key, keys_.Output("trainer-0", 1799));
}

TEST_F(OutputsTest, OfOtherGraphsDoNotCount) {
  ASSERT_TRUE(memory_->Put(keys_.Output("trainer-00", 70), "x").ok());
  ASSERT_TRUE(memory_->Put(keys_.Output("trainer-1", 80), "x").ok());
  ASSERT_TRUE(memory_->Put(keys_.Outputs("trainer-0") + "x", "x").ok());
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_TRUE(memory_->Get(keys_.Output("trainer-0", 0), 0)->kv.has_value());
}

TEST_F(OutputsTest, AreNotLostWhileTheStoreIsAway) {
  std::atomic<bool> reads_fail = true;
  std::atomic<bool> writes_fail = true;
  std::atomic<int> failures = 0;
  const auto step = [&failures](const std::atomic<bool>& fails) {
    if (!fails) return absl::OkStatus();
    ++failures;
    return absl::UnavailableError("away");
  };
  store_.before_read = [&] { return step(reads_fail); };
  store_.before_txn = [&] { return step(writes_fail); };
  const auto outputs = Open();
  AppendMany(*outputs, 0, 30);
  while (failures < 5) clock_.Advance(absl::Milliseconds(50));
  AppendMany(*outputs, 30, 60);
  reads_fail = false;
  while (failures < 10) clock_.Advance(absl::Milliseconds(50));
  writes_fail = false;
  ASSERT_TRUE(FlushedInTime(*outputs).ok());
  EXPECT_EQ(Values(), Counted(0, 60));
}

TEST_F(OutputsTest, AreTriedAgainAtLongerAndLongerIntervals) {
  constexpr std::size_t kTries = 9;
  std::vector<SteadyTime> tries;
  std::atomic<std::size_t> tried = 0;
  store_.before_txn = [&] {
    if (tried == kTries) return absl::OkStatus();
    tries.push_back(clock_.Steady());
    ++tried;
    return absl::UnavailableError("away");
  };
  const auto outputs = Open();
  Append(*outputs, 0);
  while (tried < kTries) clock_.Advance(absl::Milliseconds(10));
  ASSERT_TRUE(FlushedInTime(*outputs).ok());
  absl::Duration wait = absl::Milliseconds(100);
  for (std::size_t i = 1; i < kTries; ++i) {
    EXPECT_GE(tries[i] - tries[i - 1], wait) << i;
    wait = std::min(wait * 2, absl::Seconds(5));
  }
}

TEST_F(OutputsTest, AreWrittenOnceIfAnAnswerIsLost) {
  std::atomic<int> lost = 3;
  store_.after_txn = [&] {
    return lost-- > 0 ? absl::UnknownError("the connection broke") : absl::OkStatus();
  };
  const auto outputs = Open();
  AppendMany(*outputs, 0, 150);
  while (lost > 0) clock_.Advance(absl::Milliseconds(50));
  ASSERT_TRUE(FlushedInTime(*outputs).ok());
  EXPECT_EQ(Values(), Counted(0, 150));
}

TEST_F(OutputsTest, DoNotWriteOverThoseOfAnotherIncarnation) {
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  {
    Outputs other(*memory_, clock_, keys_, "trainer-0");
    AppendMany(other, 1, 6);
  }
  AppendMany(*outputs, 6, 9);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  EXPECT_EQ(Values(), Counted(0, 9));
}

TEST_F(OutputsTest, AreAllWrittenIfTheLeadHasWrittenSomeOfThem) {
  const auto outputs = Open();
  Append(*outputs, 0);
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  bool lead_came_first = false;
  store_.before_txn = [&] {
    const Output first{.time = absl::FromUnixSeconds(1000), .values = {{"loss", {1}, {1}}}};
    return std::exchange(lead_came_first, true)
               ? absl::OkStatus()
               : AppendOutputs(*memory_, keys_, "trainer-0", {EncodeOutput(first)});
  };
  AppendMany(*outputs, 1, 4);
  ASSERT_TRUE(FlushedInTime(*outputs).ok());
  EXPECT_THAT(Values(), ElementsAre(0, 1, 1, 2, 3));
}

TEST_F(OutputsTest, OldestThatWaitAreDroppedIfThereAreTooMany) {
  std::atomic<bool> away = true;
  std::atomic<int> failures = 0;
  store_.before_txn = [&] {
    ++failures;
    return away ? absl::UnavailableError("away") : absl::OkStatus();
  };
  const auto outputs = Open({.most_waiting = 10});
  Append(*outputs, -1);
  while (failures == 0) std::this_thread::yield();
  AppendMany(*outputs, 0, 100);
  away = false;
  ASSERT_TRUE(outputs->Flush(absl::InfiniteDuration()).ok());
  std::vector<double> expected = Counted(90, 100);
  expected.insert(expected.begin(), -1);  // it was on its way
  EXPECT_EQ(Values(), expected);
}

TEST_F(OutputsTest, ThatAreLeftAreWrittenInTheEnd) {
  {
    const auto outputs = Open();
    AppendMany(*outputs, 0, 350);
  }
  EXPECT_EQ(Values(), Counted(0, 350));
}

TEST_F(OutputsTest, HoldUpTheEndForASecondAtMost) {
  store_.before_txn = [&] {
    clock_.Advance(absl::Seconds(2));
    return absl::UnavailableError("away");
  };
  {
    const auto outputs = Open();
    Append(*outputs, 0);
  }
  EXPECT_THAT(Values(), IsEmpty());
}

TEST_F(OutputsTest, ThatCannotBeFlushedInTimeSayWhy) {
  std::atomic<bool> burns = true;
  std::atomic<int> failures = 0;
  store_.before_txn = [&] {
    ++failures;
    return burns ? absl::UnavailableError("the store is on fire") : absl::OkStatus();
  };
  const auto outputs = Open();
  ASSERT_TRUE(outputs->Flush(absl::ZeroDuration()).ok());
  Append(*outputs, 0);
  while (failures < 2) clock_.Advance(absl::Milliseconds(50));
  const absl::Status status = outputs->Flush(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr("trainer-0"));
  EXPECT_THAT(Message(status), HasSubstr("the store is on fire"));
  burns = false;
}

}  // namespace
}  // namespace trainyard::ps
