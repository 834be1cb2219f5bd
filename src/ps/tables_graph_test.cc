#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "graph/ir/codec.h"
#include "gtest/gtest.h"
#include "kv/large_value.h"
#include "kv/memory_store.h"
#include "ps/ps_testing.h"
#include "ps/tables.h"
#include "rapidcheck/gtest.h"

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GraphTablesTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  IdSource ids_{1};
  JobKeys keys_{"default/mnist"};
  graph::Graphs graphs_ =
      MakeGraphs(MakeSmallNet(), {.trainers = 2, .pservers = 2, .min_block_elements = 10});
};

TEST_F(GraphTablesTest, GraphsComeBackAsTheyWere) {
  graphs_.trainers[1].resource = {.cpu = "500m", .gpu = "1", .memory = "1Gi"};
  for (const auto* group : {&graphs_.trainers, &graphs_.pservers}) {
    for (const graph::Graph& graph : *group) {
      ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graph).ok());
      EXPECT_EQ(GetGraph(*store_, keys_, graph.id).value(), graph);
    }
  }
}

TEST_F(GraphTablesTest, BeginWithJsonForPeople) {
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graphs_.trainers[0]).ok());
  const auto value = kv::GetLarge(*store_, keys_.Desc("trainer-0")).value();
  EXPECT_TRUE(value->value.starts_with(R"({"version":1,"id":"trainer-0","role":"trainer","index":0,)"));
}

TEST_F(GraphTablesTest, AGraphThatIsNotThereIsNotFound) {
  const absl::Status status = GetGraph(*store_, keys_, "trainer-7").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("trainer-7"));
}

TEST_F(GraphTablesTest, GraphsAboveTheStoresLimitComeBackAsTheyWere) {
  graph::Graph large = graphs_.trainers[0];
  graph::Ints numbers(400000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) << 20;
  const graph::Op fill{
      .type = "assign_value",
      .outputs = {{"Out", {"large"}}},
      .attrs = {{"shape", graph::Ints{400000}}, {"values", graph::Floats(numbers.begin(), numbers.end())}}};
  large.startup.main().vars.push_back({.name = "large", .type = {.dims = {400000}}, .persistable = true});
  large.startup.main().ops.push_back(fill);
  ASSERT_GT(graph::Encode(large.startup).size(), kv::kMaxRequestBytes);
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, large).ok());
  EXPECT_EQ(GetGraph(*store_, keys_, large.id).value(), large);
  EXPECT_THAT(ListGraphs(*store_, keys_).value(), ElementsAre("trainer-0"));
}

TEST_F(GraphTablesTest, AReaderNeverMixesTwoPuts) {
  graph::Graph other = graphs_.trainers[0];
  other.startup.seed = other.main.seed = 99;
  other.resource.cpu = "2";
  // Another put at each of the reader's steps.
  for (int at = 0; at < 3; ++at) {
    ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graphs_.trainers[0]).ok());
    SteppedStore stepped(*store_);
    int reads = 0;
    stepped.before_read = [&] {
      if (reads++ == at) {
        EXPECT_TRUE(PutGraph(*store_, ids_, keys_, other).ok());
      }
      return absl::OkStatus();
    };
    const graph::Graph read = GetGraph(stepped, keys_, "trainer-0").value();
    EXPECT_TRUE(read == graphs_.trainers[0] || read == other) << at;
  }
}

TEST_F(GraphTablesTest, AreListedByRoleAndNumber) {
  EXPECT_THAT(ListGraphs(*store_, keys_).value(), IsEmpty());
  for (const int index : {10, 2}) {
    graph::Graph graph = graphs_.trainers[0];
    graph.index = index;
    graph.id = graph::GraphId(graph.role, index);
    ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graph).ok());
  }
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graphs_.pservers[1]).ok());
  ASSERT_TRUE(PutGraph(*store_, ids_, {"default/mnist2"}, graphs_.trainers[0]).ok());
  EXPECT_THAT(ListGraphs(*store_, keys_).value(), ElementsAre("trainer-2", "trainer-10", "pserver-1"));
}

TEST_F(GraphTablesTest, AreListedAcrossPages) {
  const int count = 2100;
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(store_->Put(keys_.Desc(graph::GraphId(graph::GraphRole::kTrainer, i)), "x").ok());
  }
  const std::vector<std::string> listed = ListGraphs(*store_, keys_).value();
  ASSERT_EQ(listed.size(), count);
  EXPECT_EQ(listed[1999], "trainer-1999");
}

TEST_F(GraphTablesTest, AKeyThatIsNoGraphsIsAnError) {
  for (const char* id : {"trainer-01", "trainer--1", "trainer", "master-0", "trainer-0x"}) {
    const JobKeys keys{id};
    ASSERT_TRUE(store_->Put(keys.Desc(id), "x").ok());
    EXPECT_TRUE(absl::IsInvalidArgument(ListGraphs(*store_, keys).status())) << id;
  }
}

TEST_F(GraphTablesTest, AGraphUnderAnothersKeyIsAnErrorThatNamesTheKey) {
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graphs_.trainers[0]).ok());
  const auto value = kv::GetLarge(*store_, keys_.Desc("trainer-0")).value();
  ASSERT_TRUE(kv::PutLarge(*store_, ids_, keys_.Desc("trainer-1"), value->value).ok());
  const absl::Status status = GetGraph(*store_, keys_, "trainer-1").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(keys_.Desc("trainer-1")));
}

TEST_F(GraphTablesTest, OperatorsThatDoNotExistAreErrors) {
  graph::Graph graph = graphs_.pservers[0];
  graph.main.main().ops.back().type = "listen_and_serve";
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graph).ok());
  const absl::Status status = GetGraph(*store_, keys_, "pserver-0").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("main program"));
}

TEST_F(GraphTablesTest, ProgramsThatAreCutAreErrors) {
  ASSERT_TRUE(PutGraph(*store_, ids_, keys_, graphs_.pservers[0]).ok());
  const std::string value = kv::GetLarge(*store_, keys_.Desc("pserver-0")).value()->value;
  for (const std::size_t size : {value.size() - 1, value.size() / 2, std::size_t{0}}) {
    ASSERT_TRUE(kv::PutLarge(*store_, ids_, keys_.Desc("pserver-0"), value.substr(0, size)).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(GetGraph(*store_, keys_, "pserver-0").status())) << size;
  }
}

RC_GTEST_PROP(GraphTableProperties, DamagedHeadsAreErrorsOrGraphs, ()) {
  static const graph::Graph graph = MakeGraphs(MakeSmallNet(), {.pservers = 2}).trainers[0];
  ManualClock clock;
  const auto store = kv::NewMemoryStore(clock);
  IdSource ids(1);
  const JobKeys keys{"default/mnist"};
  RC_ASSERT(PutGraph(*store, ids, keys, graph).ok());
  std::string value = kv::GetLarge(*store, keys.Desc(graph.id)).value()->value;
  const std::size_t head = value.find('\n') + 1;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    value[*rc::gen::inRange<std::size_t>(0, head)] = *rc::gen::arbitrary<char>();
  }
  RC_ASSERT(kv::PutLarge(*store, ids, keys.Desc(graph.id), value).ok());
  const absl::Status status = GetGraph(*store, keys, graph.id).status();
  RC_ASSERT((status.ok() || absl::IsInvalidArgument(status)));
}

}  // namespace
}  // namespace trainyard::ps
