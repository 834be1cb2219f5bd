#include "graph/pass/halves.h"

#include "gmock/gmock.h"
#include "graph/op/check.h"
#include "graph/pass/pass_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CutInHalves, HasEachOperatorInOneOfThem) {
  const Programs programs = OneFc({.update = Adam(), .rate = ExponentialDecay(), .decay = L2Decay{0.1}});
  const auto halves = CutInHalves(programs.main);
  ASSERT_TRUE(halves.ok()) << halves.status();
  EXPECT_EQ(halves->compute.main().ops.size() + halves->update.main().ops.size(),
            programs.main.main().ops.size());
  EXPECT_THAT(halves->shared, ElementsAre("fc_b", "fc_w"));
  EXPECT_THAT(halves->sent, ElementsAre("fc_b@GRAD", "fc_w@GRAD"));
  EXPECT_EQ(SentTo(halves->update), halves->sent);
  EXPECT_EQ(halves->loss, "mean_0");
  for (const Program* half : {&halves->compute, &halves->update}) EXPECT_TRUE(CheckProgram(*half).ok());
}

TEST(CutInHalves, RefusesWhatDoesNotLearn) {
  Builder net("net");
  net.Mean(net.Data("x", {3}));
  EXPECT_THAT(std::string(CutInHalves(net.Finish()->main).status().message()), HasSubstr("has no optimizer"));
}

TEST(MakeUpdate, LearnsWhatLearnsAndTakesWhatDoesNot) {
  const auto programs =
      MakeUpdate({{.name = "w", .dims = {2, 3}}, {.name = "mean", .dims = {3}, .learns = false}},
                 {.update = Momentum(), .rate = 0.1});
  ASSERT_TRUE(programs.ok()) << programs.status();
  EXPECT_THAT(SentTo(programs->main), ElementsAre("mean@GRAD", "w@GRAD"));
  EXPECT_THAT(TypesOf(programs->main.main()), ElementsAre("momentum", "moving_average"));
}

TEST(MakeUpdate, SaysWhichVariableCannotBe) {
  EXPECT_THAT(std::string(MakeUpdate({{.name = "", .dims = {1}}}, {}).status().message()),
              HasSubstr("is no name"));
  EXPECT_THAT(
      std::string(
          MakeUpdate({{.name = "w", .dims = {1}}, {.name = "w", .dims = {1}}}, {}).status().message()),
      HasSubstr("w comes twice"));
  EXPECT_THAT(std::string(MakeUpdate({{.name = "w", .dims = {1}, .learns = false}}, {}).status().message()),
              HasSubstr("no variable that learns"));
}

}  // namespace
}  // namespace trainyard::graph
