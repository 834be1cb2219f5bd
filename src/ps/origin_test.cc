#include "ps/origin.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/large_value.h"
#include "kv/memory_store.h"
#include "ps/ps_testing.h"
#include "rapidcheck/gtest.h"

namespace trainyard::ps {
namespace {

using testing::HasSubstr;

class OriginTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  IdSource ids_{1};
  const JobKeys keys_{"default/mnist"};
};

TEST_F(OriginTest, ComesBackAsItWas) {
  const graph::Origin origin{.programs = MakeSmallNet(),
                             .options = {.trainers = 3,
                                         .passes = 7,
                                         .pservers = 2,
                                         .mode = graph::SyncMode::kAsync,
                                         .slice = false,
                                         .min_block_elements = 5,
                                         .dispatch = graph::Dispatch::kHash,
                                         .slots = 4}};
  ASSERT_TRUE(PutOrigin(*store_, ids_, keys_, origin).ok());
  EXPECT_EQ(GetOrigin(*store_, keys_).value(), origin);
}

TEST_F(OriginTest, ThatIsNotThereIsNotFound) {
  const absl::Status status = GetOrigin(*store_, keys_).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("default/mnist"));
}

TEST_F(OriginTest, MakesTheGraphOfACutThatIsNotStored) {
  const graph::Programs programs = MakeSmallNet();
  const graph::Graphs two = MakeGraphs(programs, {.trainers = 2, .pservers = 2, .min_block_elements = 10});
  const graph::Graphs three = MakeGraphs(programs, {.trainers = 3, .pservers = 3, .min_block_elements = 10});
  ASSERT_TRUE(PutOrigin(*store_, ids_, keys_, *two.trainers[0].origin).ok());
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, two.pservers[1]).ok());
  EXPECT_EQ(*TakeGraph(*store_, keys_, {.trainers = 2, .pservers = 2}, "pserver-1"), two.pservers[1]);
  const JobMeta meta{.trainers = 2, .slots = 3, .pservers = 3};
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "pserver-1"), three.pservers[1]);
  EXPECT_EQ(*TakeGraph(*store_, keys_, meta, "trainer-1"), three.trainers[1]);
}

RC_GTEST_PROP(OriginProperties, DamagedHeadsAreErrorsOrOrigins, ()) {
  static const graph::Origin origin{.programs = MakeSmallNet(), .options = {.pservers = 2}};
  ManualClock clock;
  const auto store = kv::NewMemoryStore(clock);
  IdSource ids(1);
  const JobKeys keys{"default/mnist"};
  RC_ASSERT(PutOrigin(*store, ids, keys, origin).ok());
  std::string value = kv::GetLarge(*store, keys.Program()).value()->value;
  const std::size_t head = value.find('\n') + 1;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i)
    value[*rc::gen::inRange<std::size_t>(0, head)] = *rc::gen::arbitrary<char>();
  RC_ASSERT(kv::PutLarge(*store, ids, keys.Program(), value).ok());
  const absl::Status status = GetOrigin(*store, keys).status();
  RC_ASSERT((status.ok() || absl::IsInvalidArgument(status)));
}

}  // namespace
}  // namespace trainyard::ps
