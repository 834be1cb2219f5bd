#include "tasks/codec.h"

#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::tasks {
namespace {

Queue::State SomeState() {
  Queue queue;
  queue.Apply(Begin{.kind = Kind::kTraining, .options = {.records = 100, .records_per_task = 3, .seed = 9}});
  for (WorkerIndex worker = 0; worker < 5; ++worker) queue.Apply(Lease{worker});
  queue.Apply(Fail{1, 2, "no"});
  queue.Apply(Advance{1, 1000});
  return queue.Save();
}

TEST(QueueCodec, RefusesAStateThatIsCut) {
  const std::string whole = Encode(SomeState());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(DecodeState(whole.substr(0, size)).status())) << size;
  EXPECT_TRUE(absl::IsDataLoss(DecodeState(whole + "x").status()));
  EXPECT_EQ(*DecodeState(whole), SomeState());
}

TEST(QueueCodec, RefusesAnotherVersion) {
  std::string bytes = Encode(SomeState());
  bytes[0] = 3;
  EXPECT_EQ(DecodeState(bytes).status().message(),
            "the state of the task queue is of version 3, and 2 can be read");
}

TEST(QueueCodec, ReadsAStateOfBeforeItKnewOnWhomRangesFailed) {
  Queue::State state = SomeState();
  state.failed.clear();
  std::string bytes = Encode(state);
  bytes[0] = 1;
  bytes.pop_back();  // the empty list
  EXPECT_EQ(*DecodeState(bytes), state);
}

RC_GTEST_PROP(QueueCodec, SurvivesAnyBytes, ()) {
  const auto bytes = *rc::gen::arbitrary<std::string>();
  std::string_view rest = bytes;
  while (TakeCommand(rest).ok() && !rest.empty()) {
  }
  if (const auto state = DecodeState(bytes); state.ok()) RC_ASSERT(Encode(*state).size() <= bytes.size());
}

}  // namespace
}  // namespace trainyard::tasks
