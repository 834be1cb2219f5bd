#include "graph/pass/shards.h"

#include <set>

#include "gmock/gmock.h"
#include "graph/op/check.h"
#include "graph/pass/halves.h"
#include "graph/pass/pass_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What learns of a program, and what computing needs of it.
struct Learning {
  Programs programs;
  std::vector<std::string> shared;
};
Learning LearningOf(const Programs& programs) {
  auto halves = CutInHalves(programs.main);
  TY_CHECK(halves.ok(), halves.status().ToString());
  return {{.startup = programs.startup, .main = halves->update}, halves->shared};
}

TEST(CutIntoShards, HasEachElementOfEachParameterOnce) {
  const Learning learning =
      LearningOf(OneFc({.update = Adam(), .rate = ExponentialDecay(), .decay = L2Decay{0.1}}));
  for (const int shards : {1, 2, 3, 7}) {
    const auto cut = CutIntoShards(learning.programs, learning.shared, shards);
    ASSERT_TRUE(cut.ok()) << cut.status();
    ASSERT_EQ(cut->size(), shards);
    std::map<std::string, std::int64_t> elements;
    std::map<std::string, std::int64_t> told;
    for (const Shard& shard : *cut) {
      for (const std::string& name : shard.shared) {
        const Var* const var = shard.programs.main.main().Find(name);
        ASSERT_NE(var, nullptr) << name;
        elements[var->slice ? var->slice->of : name] += var->type.dims.Count();
      }
      for (const Var& gradient : shard.gradients)
        told[gradient.slice ? gradient.slice->of : gradient.name] += gradient.type.dims.Count();
      for (const Program* program : {&shard.programs.main, &shard.programs.startup})
        EXPECT_TRUE(CheckProgram(*program).ok()) << CheckProgram(*program).status();
      std::vector<std::string> wanted;
      for (const Var& gradient : shard.gradients) wanted.push_back(gradient.name);
      std::ranges::sort(wanted);
      EXPECT_EQ(SentTo(shard.programs.main), wanted);
    }
    EXPECT_THAT(elements, ElementsAre(std::pair("fc_b", 1000), std::pair("fc_w", 1000000)));
    EXPECT_THAT(told, ElementsAre(std::pair("fc_b@GRAD", 1000), std::pair("fc_w@GRAD", 1000000)));
  }
}

TEST(CutIntoShards, KeepsWhatNothingLearnsOnTheFirst) {
  Learning learning = LearningOf(OneFc({.update = Sgd()}));
  learning.programs.startup.main().vars.push_back(
      {.name = "table", .type = {.dims = {3}}, .persistable = true});
  learning.shared.push_back("table");
  const auto cut = CutIntoShards(learning.programs, learning.shared, 2);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->front().shared, testing::Contains("table"));
  EXPECT_THAT(cut->back().shared, testing::Not(testing::Contains("table")));
}

TEST(CutIntoShards, CutsModelsThatAreNoPrograms) {
  const auto programs =
      MakeUpdate({{.name = "w", .dims = {200, 100}}, {.name = "mean", .dims = {3}, .learns = false}},
                 {.update = Momentum(), .rate = 0.1});
  ASSERT_TRUE(programs.ok()) << programs.status();
  const auto cut = CutIntoShards(*programs, {"w", "mean"}, 2);
  ASSERT_TRUE(cut.ok()) << cut.status();
  std::set<std::string> shared;
  for (const Shard& shard : *cut) shared.insert(shard.shared.begin(), shard.shared.end());
  EXPECT_THAT(shared, ElementsAre("mean", "w.block0", "w.block1"));
}

TEST(CutIntoShards, LeavesNothingForShardsBeyondTheLastPiece) {
  const auto programs = MakeUpdate({{.name = "w", .dims = {2}}}, {.update = Sgd(), .rate = 0.1});
  const auto cut = CutIntoShards(*programs, {"w"}, 3);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT((*cut)[0].shared, ElementsAre("w"));
  EXPECT_THAT((*cut)[2].shared, IsEmpty());
  EXPECT_THAT((*cut)[2].gradients, IsEmpty());
}

TEST(CutIntoShards, SaysWhatCannotBeDoneInParts) {
  const Learning learning = LearningOf(OneFc({.update = Sgd(), .clip = ClipByGlobalNorm{1.0}}));
  EXPECT_THAT(std::string(CutIntoShards(learning.programs, learning.shared, 2).status().message()),
              HasSubstr("needs all gradients in one place"));
}

}  // namespace
}  // namespace trainyard::graph
