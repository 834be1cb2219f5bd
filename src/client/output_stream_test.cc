#include "client/output_stream.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/memory_store.h"

namespace trainyard::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kOutputTimeout = absl::Seconds(30);

class OutputStreamTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(ps::PutMeta(*store_, keys_, {}, 0).ok()); }

  void Append(const std::string& graph, std::int64_t sequence, std::int64_t step, std::int64_t generation = 1,
              bool committed = true) {
    const ps::Output output{.generation = generation,
                            .step = step,
                            .time = absl::UnixEpoch(),
                            .committed = committed,
                            .values = {{.name = "loss", .dims = {1}, .values = {double(step) / 2}},
                                       {.name = "acc", .dims = {1}, .values = {double(step)}}}};
    ASSERT_TRUE(store_->Put(keys_.Output(graph, sequence), ps::EncodeOutput(output)).ok());
  }
  void SetState(ps::JobState state, std::string reason = "") {
    absl::StatusOr<ps::StoredMeta> stored = ps::GetMeta(*store_, keys_);
    ASSERT_TRUE(stored.ok());
    stored->meta.state = state;
    stored->meta.reason = std::move(reason);
    ASSERT_TRUE(ps::PutMeta(*store_, keys_, stored->meta, stored->revision).ok());
  }
  OutputStream Stream(std::vector<std::string> names = {"acc"}, JobLook look = nullptr,
                      bool uncommitted = false) {
    return OutputStream(*store_, keys_, {"trainer-", std::move(names), uncommitted}, std::move(look));
  }

  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const ps::JobKeys keys_{"default/test"};
};

TEST_F(OutputStreamTest, GivesWhatWasThereAndWhatComes) {
  Append("trainer-0", 0, 0);
  OutputStream stream = Stream();
  absl::StatusOr<GraphOutput> first = stream.Next(kOutputTimeout);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->graph, "trainer-0");
  EXPECT_EQ(first->value.name, "acc");
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Next(absl::ZeroDuration()).status()));
  Append("trainer-1", 0, 7);
  EXPECT_EQ(stream.Next(kOutputTimeout)->step, 7);
}

TEST_F(OutputStreamTest, GivesAllNamesIfNoneIsAskedFor) {
  Append("trainer-0", 0, 0);
  OutputStream stream = Stream({});
  EXPECT_EQ(stream.Next(kOutputTimeout)->value.name, "loss");
  EXPECT_EQ(stream.Next(kOutputTimeout)->value.name, "acc");
}

TEST_F(OutputStreamTest, GivesAStepOnceThoughItWasDoneTwice) {
  Append("trainer-0", 0, 0);
  Append("trainer-0", 1, 1);
  Append("trainer-0", 2, 1, 2);
  Append("trainer-0", 3, 2, 2);
  OutputStream stream = Stream();
  for (const std::int64_t step : {0, 1, 2}) EXPECT_EQ(stream.Next(kOutputTimeout)->step, step);
}

TEST_F(OutputStreamTest, GivesCommittedStepsAloneUnlessTheOthersAreAskedFor) {
  Append("trainer-0", 0, 0);
  Append("trainer-0", 1, 1, 1, /*committed=*/false);
  Append("trainer-0", 2, 1);
  Append("trainer-0", 3, 1);  // the trainer and the lead have both written it
  Append("trainer-0", 4, 2);
  OutputStream committed = Stream();
  for (const std::int64_t step : {0, 1, 2}) EXPECT_EQ(committed.Next(kOutputTimeout)->step, step);
  OutputStream all = Stream({"acc"}, nullptr, true);
  for (const auto& [step, counts] : {std::pair(0, true), {1, false}, {1, true}, {2, true}}) {
    const auto next = all.Next(kOutputTimeout);
    EXPECT_EQ(next->step, step);
    EXPECT_EQ(next->committed, counts) << step;
  }
}

TEST_F(OutputStreamTest, EndsWithTheJobWhenNobodyIsLeftToWrite) {
  ASSERT_TRUE(store_->Put(keys_.Pod("trainer-0"), "{}").ok());
  SetState(ps::JobState::kComplete);
  OutputStream stream = Stream();
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Next(absl::Milliseconds(1)).status()));
  Append("trainer-0", 0, 5);
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Key(keys_.Pod("trainer-0"))).ok());
  EXPECT_EQ(stream.Next(kOutputTimeout)->step, 5);
  EXPECT_TRUE(absl::IsOutOfRange(stream.Next(kOutputTimeout).status()));
  EXPECT_TRUE(absl::IsOutOfRange(stream.Next(kOutputTimeout).status())) << "it stays so";
}

TEST_F(OutputStreamTest, SaysWhyTheJobFailed) {
  Append("trainer-0", 0, 0);
  SetState(ps::JobState::kFailed, "trainer-0 made a NaN");
  OutputStream stream = Stream();
  EXPECT_TRUE(stream.Next(kOutputTimeout).ok());
  EXPECT_THAT(Message(stream.Next(kOutputTimeout).status()),
              HasSubstr("default/test has failed: trainer-0 made a NaN"));
}

TEST_F(OutputStreamTest, EndsWhenTheJobWasKilledOrItsPodsCannotBe) {
  OutputStream failing = Stream({}, [] { return absl::FailedPreconditionError("no such image"); });
  EXPECT_THAT(Message(failing.Next(kOutputTimeout).status()), HasSubstr("no such image"));
  OutputStream killed = Stream();
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Key(keys_.Meta())).ok());
  EXPECT_TRUE(absl::IsNotFound(killed.Next(kOutputTimeout).status()));
}

TEST_F(OutputStreamTest, NamesAKeyThatHoldsNoOutput) {
  ASSERT_TRUE(store_->Put(keys_.Output("trainer-0", 0), "nonsense").ok());
  OutputStream stream = Stream();
  EXPECT_THAT(Message(stream.Next(kOutputTimeout).status()), HasSubstr(keys_.Output("trainer-0", 0)));
}

}  // namespace
}  // namespace trainyard::client
