#include "graph/pass/transpile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/codec.h"
#include "graph/op/check.h"
#include "graph/pass/pass_testing.h"

namespace trainyard::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const Optimizer kSgd{.update = Sgd(), .rate = 0.1};

Graphs Made(const Programs& programs, const TranspileOptions& options) {
  absl::StatusOr<Graphs> graphs = Transpile(programs, options);
  EXPECT_TRUE(graphs.ok()) << graphs.status();
  if (!graphs.ok()) return {};
  for (const std::vector<Graph>* side : {&graphs->trainers, &graphs->pservers}) {
    for (const Graph& graph : *side) {
      for (const Program* program : {&graph.startup, &graph.main}) {
        const absl::StatusOr<Program> read = Decode(Encode(*program));
        EXPECT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(*read, *program);
        EXPECT_TRUE(CheckProgram(*program).ok()) << CheckProgram(*program).status();
      }
    }
  }
  return *std::move(graphs);
}

TEST(Transpile, MakesATrainerThatSendsEachGradientWhenItIsThere) {
  const Graphs graphs = Made(OneFc(kSgd), {.trainers = 2, .passes = 5, .pservers = 2});
  ASSERT_EQ(graphs.trainers.size(), 2);
  const Graph& trainer = graphs.trainers[0];
  EXPECT_THAT(TypesOf(trainer.main.main()), ElementsAre("iterate"));
  EXPECT_EQ(trainer.main.main().ops[0].Int("passes"), 5);
  EXPECT_THAT(TypesOf(trainer.main.blocks[1]),
              ElementsAre("mul", "elementwise_add", "square_error_cost", "mean", "fill_constant", "mean_grad",
                          "square_error_cost_grad", "elementwise_add_grad", "send", "mul_grad", "split_byref",
                          "send", "send_barrier", "recv", "recv", "fetch_barrier", "concat"));
  EXPECT_THAT(trainer.send_var_graph_map,
              UnorderedElementsAre(Pair("fc_w@GRAD.block0.trainer_0", "pserver-0"),
                                   Pair("fc_w@GRAD.block1.trainer_0", "pserver-1"),
                                   Pair("fc_b@GRAD.trainer_0", "pserver-0")));
  EXPECT_THAT(trainer.recv_var_graph_map,
              UnorderedElementsAre(Pair("fc_w.block0", "pserver-0"), Pair("fc_w.block1", "pserver-1"),
                                   Pair("fc_b", "pserver-0")));
}

TEST(Transpile, MakesATrainersStartupThatTakesTheParametersFromThePservers) {
  const Graphs graphs = Made(OneFc(kSgd), {.trainers = 2, .pservers = 2});
  EXPECT_THAT(TypesOf(graphs.trainers[1].startup.main()),
              ElementsAre("fill_constant", "split_byref", "fill_constant", "recv", "recv", "fetch_barrier",
                          "concat"));
}

TEST(Transpile, MakesAPserverWithOneBlockForEachPiece) {
  const Graphs graphs = Made(OneFc(kSgd), {.trainers = 2, .pservers = 2});
  const Graph& pserver = graphs.pservers[0];
  EXPECT_THAT(TypesOf(pserver.main.main()), ElementsAre("listen_and_serv"));
  const Op& serve = pserver.main.main().ops[0];
  EXPECT_THAT(serve.StringList("gradients"), ElementsAre("fc_w@GRAD.block0", "fc_b@GRAD"));
  ASSERT_EQ(serve.Blocks("optimize_blocks").size(), 2);
  for (const int block : serve.Blocks("optimize_blocks")) {
    EXPECT_THAT(TypesOf(pserver.main.blocks[static_cast<std::size_t>(block)]),
                ElementsAre("sum", "scale", "sgd"));
  }
  EXPECT_EQ(pserver.main.main().Find("fc_w.block0")->type.dims, (Dims{500, 1000}));
  EXPECT_EQ(graphs.pservers[1].main.main().Find("fc_w.block1")->slice, (Slice{"fc_w", {1000, 1000}, 500000}));
  EXPECT_EQ(graphs.pservers[1].main.main().Find("fc_b"), nullptr);
}

TEST(Transpile, NeedsNoMeanForOneTrainerOrWithoutSync) {
  for (const TranspileOptions& options :
       {TranspileOptions{.trainers = 1, .pservers = 1},
        TranspileOptions{.trainers = 3, .pservers = 1, .mode = SyncMode::kAsync}}) {
    const Graphs graphs = Made(OneFc(kSgd), options);
    const Op& serve = graphs.pservers[0].main.main().ops[0];
    for (const int block : serve.Blocks("optimize_blocks")) {
      EXPECT_THAT(TypesOf(graphs.pservers[0].main.blocks[static_cast<std::size_t>(block)]),
                  ElementsAre("sgd"));
    }
    EXPECT_TRUE(graphs.trainers[0].send_var_graph_map.contains("fc_w@GRAD"));
  }
}

TEST(Transpile, HasRoomForTrainersThatMayComeLater) {
  const Programs programs = OneFc(kSgd);
  const Graphs one = Made(programs, {.trainers = 1, .pservers = 2, .slots = 3});
  const Graphs three = Made(programs, {.trainers = 3, .pservers = 2});
  EXPECT_EQ(one.trainers[0], three.trainers[0]);
  EXPECT_EQ(one.pservers, three.pservers);
}

TEST(Transpile, MakesOneGraphOfAnotherCutAsItMakesAll) {
  const Programs programs = OneFc(kSgd);
  const Graphs before = Made(programs, {.trainers = 2, .pservers = 2});
  const Graphs after = Made(programs, {.trainers = 4, .pservers = 3});
  for (const std::vector<Graph>* side : {&after.trainers, &after.pservers}) {
    for (const Graph& graph : *side) {
      const auto made = TranspileOne(*before.trainers[1].origin, graph.cut, graph.role, graph.index);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(*made, graph);
    }
  }
}

TEST(Transpile, TellsGraphsOfOneOriginFromThoseOfAnother) {
  const Programs programs = OneFc(kSgd);
  const Graphs graphs = Made(programs, {.trainers = 2, .pservers = 2});
  EXPECT_EQ(graphs.trainers[0].origin, graphs.pservers[1].origin);
  EXPECT_EQ(*graphs.trainers[0].origin, *Made(programs, {.trainers = 2, .pservers = 2}).trainers[0].origin);
  EXPECT_FALSE(*graphs.trainers[0].origin == *Made(programs, {.pservers = 2}).trainers[0].origin);
  EXPECT_FALSE(*graphs.trainers[0].origin ==
               *Made(OneFc({.update = Adam()}), {.trainers = 2, .pservers = 2}).trainers[0].origin);
}

TEST(Transpile, WithoutSyncHasNoBarriers) {
  const Graphs graphs = Made(OneFc(kSgd), {.trainers = 2, .pservers = 2, .mode = SyncMode::kAsync});
  const std::vector<std::string> types = TypesOf(graphs.trainers[0].main.blocks[1]);
  EXPECT_THAT(std::vector<std::string>(types.end() - 4, types.end()),
              ElementsAre("send", "recv", "recv", "concat"));
}

TEST(Transpile, GivesAccumulatorsTheNamesAndShapesOfTheirPieces) {
  const Graphs graphs = Made(OneFc({.update = Adam(), .rate = 0.01}), {.trainers = 2, .pservers = 2});
  const Graph& pserver = graphs.pservers[1];
  EXPECT_THAT(TypesOf(pserver.main.blocks[1]), ElementsAre("sum", "scale", "adam", "scale", "scale"));
  const Var* moment = pserver.main.main().Find("fc_w_moment1.block1");
  ASSERT_NE(moment, nullptr);
  EXPECT_EQ(moment->type.dims, (Dims{500, 1000}));
  EXPECT_TRUE(moment->persistable);
  EXPECT_EQ(pserver.main.main().Find("fc_w_beta1_pow.block1")->type.dims, (Dims{1}));
}

TEST(Transpile, KeepsDecayAndClippingWithTheUpdate) {
  Optimizer optimizer{.update = Momentum(), .rate = 0.1, .decay = L2Decay{0.01}, .clip = ClipByValue{-1, 1}};
  const Graphs graphs = Made(OneFc(optimizer), {.trainers = 2, .pservers = 1});
  EXPECT_THAT(TypesOf(graphs.pservers[0].main.blocks[1]),
              ElementsAre("sum", "scale", "clip_values", "scale", "sum", "momentum"));
}

TEST(Transpile, RunsTheScheduleOnEveryPserverFirst) {
  Optimizer optimizer{.update = Sgd(), .rate = ExponentialDecay{}};
  const Graphs graphs = Made(OneFc(optimizer), {.trainers = 2, .pservers = 2});
  for (const Graph& pserver : graphs.pservers) {
    const Op& serve = pserver.main.main().ops[0];
    ASSERT_EQ(serve.Blocks("schedule_blocks").size(), 1);
    EXPECT_THAT(TypesOf(pserver.main.blocks[static_cast<std::size_t>(serve.Blocks("schedule_blocks")[0])]),
                ElementsAre("learning_rate", "increment"));
  }
}

TEST(Transpile, InitialisesASliceByItsPlaceInTheWhole) {
  const Graphs graphs = Made(OneFc(kSgd, {.initializer = Uniform{-1, 1, 5}}), {.trainers = 1, .pservers = 2});
  const Op& initial = graphs.pservers[1].startup.main().ops[0];
  EXPECT_EQ(initial.type, "uniform_random");
  EXPECT_THAT(initial.IntList("shape"), ElementsAre(500, 1000));
  EXPECT_EQ(initial.Int("offset"), 500000);
  EXPECT_EQ(initial.Int("seed"), 5);
}

TEST(Transpile, DoesNotCutAParameterThatIsClippedByItsNorm) {
  const Graphs graphs =
      Made(OneFc({.update = Sgd(), .rate = 0.1, .clip = ClipByNorm{1}}), {.trainers = 2, .pservers = 2});
  EXPECT_EQ(graphs.trainers[0].send_var_graph_map.size(), 2);
}

TEST(Transpile, RefusesWhatNeedsAllGradientsInOnePlace) {
  const auto graphs = Transpile(OneFc({.update = Sgd(), .rate = 0.1, .clip = ClipByGlobalNorm{1}}),
                                {.trainers = 2, .pservers = 2});
  EXPECT_THAT(std::string(graphs.status().message()),
              HasSubstr("clip by value or by the norm of each parameter instead"));
}

TEST(Transpile, SaysWhichOptionIsWrong) {
  EXPECT_THAT(std::string(Transpile(OneFc(kSgd), {.trainers = 0}).status().message()),
              HasSubstr("trainers_num must be from 1"));
  EXPECT_THAT(std::string(Transpile(OneFc(kSgd), {.pservers = -1}).status().message()),
              HasSubstr("pservers_num must be from 1"));
}

TEST(Transpile, LeavesAPserverWithNothingIfThereIsTooLittle) {
  Builder net("net");
  const Ref loss = net.Mean(net.Fc(net.Data("x", {3}), 1, {.with_bias = false}));
  net.Minimize(loss, kSgd);
  const Graphs graphs = Made(*net.Finish(), {.trainers = 2, .pservers = 3});
  EXPECT_TRUE(graphs.pservers[2].main.main().ops[0].Blocks("optimize_blocks").empty());
}

TEST(Transpile, PutsTheRowsOfADistributedTableOnThePserversInTurn) {
  Builder net("net");
  const Ref ids = net.Data("ids", {1}, DataType::kInt64);
  EmbeddingOptions options{.sparse = true, .distributed = true};
  options.weight.name = "table";
  net.Minimize(net.Mean(net.Embedding(ids, 101, 8, options)), kSgd);
  const Graphs graphs = Made(*net.Finish(), {.trainers = 2, .pservers = 2});
  EXPECT_THAT(TypesOf(graphs.trainers[1].main.blocks[1]),
              ElementsAre("split_ids", "prefetch", "merge_ids", "mean", "fill_constant", "mean_grad",
                          "lookup_rows_grad", "split_ids", "send", "send_barrier", "fetch_barrier"));
  EXPECT_THAT(graphs.trainers[1].send_var_graph_map,
              UnorderedElementsAre(Pair("table@GRAD.trainer_1.pserver_0", "pserver-0"),
                                   Pair("table@GRAD.trainer_1.pserver_1", "pserver-1")));
  const Graph& pserver = graphs.pservers[1];
  EXPECT_EQ(pserver.main.main().Find("table.pserver_1")->type.dims, (Dims{51, 8}));
  EXPECT_EQ(pserver.startup.main().ops[1].Int("row_stride"), 2);
  EXPECT_EQ(pserver.startup.main().ops[1].Int("offset"), 8);
  EXPECT_THAT(pserver.main.main().ops[0].StringList("tables"), ElementsAre("table"));
  EXPECT_EQ(graphs.trainers[0].main.main().Find("table"), nullptr);
}

TEST(Transpile, ShufflesWholeParametersBySeed) {
  Builder net("net", {.seed = 11});
  Ref h = net.Data("x", {100});
  for (int i = 0; i < 8; ++i) h = net.Fc(h, 100);
  net.Minimize(net.Mean(h), kSgd);
  const Graphs graphs = Made(*net.Finish(), {.trainers = 1, .pservers = 2, .slice = false});
  int weights_on_first = 0;
  for (const auto& [name, graph] : graphs.trainers[0].recv_var_graph_map)
    weights_on_first += name.find(".w_") != std::string::npos && graph == "pserver-0" ? 1 : 0;
  EXPECT_GT(weights_on_first, 0);
  EXPECT_LT(weights_on_first, 8);
}

}  // namespace
}  // namespace trainyard::graph
