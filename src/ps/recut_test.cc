#include <functional>
#include <set>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/checkpoint.h"
#include "ps/ps_testing.h"

namespace trainyard::ps {
namespace {

using graph::Tensor;
using testing::HasSubstr;

constexpr std::int64_t kTableRows = 11;

// Without ".block0" and ".pserver_0".
std::string Stem(const std::string& name) {
  for (const char* mark : {".block", ".pserver_"}) {
    if (const std::size_t at = name.find(mark); at != std::string::npos) return name.substr(0, at);
  }
  return name;
}

// A number for each element of each variable of the program before it was cut.
float Numbered(const std::string& variable, std::int64_t element) {
  return static_cast<float>(std::hash<std::string>()(variable) % 1000 * 1000 +
                            static_cast<std::size_t>(element));
}

// What a pserver's variable holds. Rows beyond the table's end are -1.
Tensor CutByHand(const graph::Var& var, int pserver, int pservers) {
  Tensor tensor(var.type.data_type, var.type.dims);
  const bool shard = var.name.ends_with(StrCat(".pserver_", pserver)) && var.type.dims.rank() == 2;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    float value = Numbered(Stem(var.name), i);
    if (var.slice) value = Numbered(var.slice->of, var.slice->offset + i);
    if (shard) {
      const std::int64_t row = i / var.type.dims[1] * pservers + pserver;
      value = row < kTableRows ? Numbered(Stem(var.name), row * var.type.dims[1] + i % var.type.dims[1]) : -1;
    }
    if (tensor.type() == graph::DataType::kFloat32) tensor.data<float>()[i] = value;
    if (tensor.type() == graph::DataType::kInt64)
      tensor.data<std::int64_t>()[i] = static_cast<std::int64_t>(value);
  }
  return tensor;
}

CheckpointData DataOf(const graph::Graph& graph, int pservers) {
  CheckpointData data;
  for (const graph::Var& var : graph.main.main().vars) {
    if (var.persistable) data.variables[var.name] = CutByHand(var, graph.index, pservers);
  }
  return data;
}

OldLayout LayoutOf(const graph::Graphs& graphs) {
  OldLayout layout;
  for (const graph::Graph& pserver : graphs.pservers) {
    layout.mains.push_back(pserver.main);
    layout.data.push_back(DataOf(pserver, static_cast<int>(graphs.pservers.size())));
  }
  return layout;
}

template <typename T>
void ExpectSame(const Tensor& actual, const Tensor& expected, const std::string& name) {
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    if (expected.data<T>()[i] == T(-1)) continue;  // of no row
    ASSERT_EQ(actual.data<T>()[i], expected.data<T>()[i]) << name << " element " << i;
  }
}

struct Case {
  int from = 1;
  int to = 1;
  graph::Optimizer optimizer;
  graph::SyncMode mode = graph::SyncMode::kSync;
};

graph::Graphs GraphsOf(const Case& c, int pservers) {
  return MakeGraphs(MakeSmallNet({.optimizer = c.optimizer, .table_rows = kTableRows}),
                    {.trainers = 2, .pservers = pservers, .mode = c.mode, .min_block_elements = 2});
}

void ExpectRecut(const Case& c) {
  const OldLayout old = LayoutOf(GraphsOf(c, c.from));
  for (const graph::Graph& pserver : GraphsOf(c, c.to).pservers) {
    const auto made = Recut(pserver.main.main().vars, c.to, old);
    ASSERT_TRUE(made.ok()) << made.status();
    const CheckpointData expected = DataOf(pserver, c.to);
    ASSERT_EQ(made->size(), expected.variables.size());
    for (const auto& [name, tensor] : *made) {
      const Tensor& wanted = expected.variables.at(name);
      ASSERT_EQ(tensor.dims(), wanted.dims()) << name;
      ASSERT_EQ(tensor.type(), wanted.type()) << name;
      if (tensor.type() == graph::DataType::kInt64) {
        ExpectSame<std::int64_t>(tensor, wanted, name);
      } else {
        ExpectSame<float>(tensor, wanted, name);
      }
    }
  }
}

TEST(Recut, PutsEveryElementWhereTheNewLayoutHasIt) {
  const graph::Optimizer optimizers[] = {
      {.update = graph::Sgd()},
      {.update = graph::Momentum()},
      {.update = graph::Adam(), .rate = graph::ExponentialDecay()},
      {.update = graph::RmsProp()},
  };
  for (const graph::Optimizer& optimizer : optimizers) {
    for (int from = 1; from <= 5; ++from) {
      for (int to = 1; to <= 5; ++to) {
        SCOPED_TRACE(StrCat(from, " to ", to));
        ASSERT_NO_FATAL_FAILURE(ExpectRecut({from, to, optimizer}));
      }
    }
  }
}

// A program that was not transpiled has everything whole: what an executor saves and loads.
TEST(Recut, CutsAWholeProgramsVariablesAndPutsThemTogetherAgain) {
  for (const int pservers : {1, 2, 3, 5}) {
    SCOPED_TRACE(StrCat(pservers, " pservers"));
    const graph::Programs programs =
        MakeSmallNet({.optimizer = {.update = graph::Adam()}, .table_rows = kTableRows});
    const graph::Graphs graphs =
        MakeGraphs(programs, {.trainers = 2, .pservers = pservers, .min_block_elements = 2});
    OldLayout whole{.mains = {programs.main}};
    CheckpointData& data = whole.data.emplace_back();
    for (const graph::Var& var : programs.main.main().vars) {
      if (var.persistable) data.variables[var.name] = CutByHand(var, 0, 1);
    }
    for (const graph::Graph& pserver : graphs.pservers) {
      const auto cut = Recut(pserver.main.main().vars, pservers, whole);
      ASSERT_TRUE(cut.ok()) << cut.status();
      for (const auto& [name, wanted] : DataOf(pserver, pservers).variables) {
        if (name != graph::kShare) ExpectSame<float>(cut->at(name), wanted, name);
      }
    }
    const auto together = Recut(programs.main.main().vars, 1, LayoutOf(graphs));
    ASSERT_TRUE(together.ok()) << together.status();
    EXPECT_EQ(together->size(), data.variables.size());
    for (const auto& [name, wanted] : data.variables) ExpectSame<float>(together->at(name), wanted, name);
  }
}

TEST(Recut, WorksOnSlicesShardsWholesAndAccumulators) {
  // That the network of the other tests has all of them.
  std::set<std::string> names;
  int slices = 0;
  for (const graph::Graph& pserver : GraphsOf({.optimizer = {.update = graph::Adam()}}, 3).pservers) {
    for (const graph::Var& var : pserver.main.main().vars) {
      if (!var.persistable) continue;
      names.insert(Stem(var.name));
      if (var.slice) ++slices;
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"fc_w", "fc_b", "table", graph::kShare}));
  EXPECT_GE(names.size(), 4 + 3 * 4 + 1);  // and two moments and two powers of each, and the rate
  EXPECT_GE(slices, 3 * 3);
}

TEST(Recut, GivesEachVariableMemoryOfItsOwn) {
  const Case c{.from = 1, .to = 3, .optimizer = {.update = graph::Adam()}};
  const OldLayout old = LayoutOf(GraphsOf(c, 1));
  std::set<const void*> memory;
  for (const CheckpointData& data : old.data) {
    for (const auto& [name, tensor] : data.variables) memory.insert(tensor.raw());
  }
  for (const graph::Graph& pserver : GraphsOf(c, 3).pservers) {
    const auto made = Recut(pserver.main.main().vars, 3, old).value();
    for (const auto& [name, tensor] : made) EXPECT_TRUE(memory.insert(tensor.raw()).second) << name;
    // The next graph's may be where these have been.
    for (const auto& [name, tensor] : made) memory.erase(tensor.raw());
  }
}

TEST(Recut, LeavesOutTheShareIfTheOldGraphsHadNone) {
  const Case async{
      .from = 2, .to = 2, .optimizer = {.update = graph::Sgd()}, .mode = graph::SyncMode::kAsync};
  const Case sync{.from = 2, .to = 2, .optimizer = {.update = graph::Sgd()}};
  const auto made =
      Recut(GraphsOf(sync, 2).pservers[0].main.main().vars, 2, LayoutOf(GraphsOf(async, 2))).value();
  EXPECT_FALSE(made.contains(graph::kShare));
  EXPECT_FALSE(made.empty());
}

class BrokenRecut : public testing::Test {
 protected:
  absl::Status Status() { return Recut(variables_, 3, old_).status(); }

  Case case_{.from = 2, .to = 3, .optimizer = {.update = graph::Adam()}};
  OldLayout old_ = LayoutOf(GraphsOf(case_, 2));
  std::vector<graph::Var> variables_ = GraphsOf(case_, 3).pservers[1].main.main().vars;
};

TEST_F(BrokenRecut, NamesTheElementsThatAreMissing) {
  old_.data[1].variables.erase("fc_w.block1");
  const absl::Status status = Status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("of fc_w are in none"));
}

TEST_F(BrokenRecut, NamesTheShardThatIsMissing) {
  old_.data[1].variables.erase("table.pserver_1");
  const absl::Status status = Status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("table.pserver_1"));
}

TEST_F(BrokenRecut, NamesTheVariableThatIsMissing) {
  variables_.push_back({.name = "new", .type = {.dims = {3}}, .persistable = true});
  const absl::Status status = Status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("new is in none"));
}

TEST_F(BrokenRecut, RefusesVariablesOfOtherDims) {
  for (graph::Var& var : variables_) {
    if (var.slice && var.slice->of == "fc_w") var.slice->whole = {9, 9};
  }
  const absl::Status status = Status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("fc_w is [9, 9] and was [7, 5]"));
}

TEST_F(BrokenRecut, RefusesRowsOfAnotherWidth) {
  for (graph::Var& var : variables_) {
    if (var.name == "table.pserver_1") var.type.dims = {4, 8};
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Status()));
}

TEST_F(BrokenRecut, RefusesACheckpointThatIsNotOfItsProgram) {
  old_.data[0].variables["fc_w.block0"] = Tensor(graph::DataType::kFloat32, {1, 5});
  EXPECT_TRUE(absl::IsInvalidArgument(Status()));
  old_.data.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(Status()));
}

}  // namespace
}  // namespace trainyard::ps
