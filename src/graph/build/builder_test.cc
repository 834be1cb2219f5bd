#include "graph/build/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::graph {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const Builder& net) { return std::string(net.Finish().status().message()); }

TEST(Builder, TellsTheFirstThingThatWentWrong) {
  Builder net("net");
  const Ref x = net.Data("x", {3});
  const Ref wrong = net.Activation(x, "swoosh");
  net.Mean(net.Fc(wrong, 4));
  EXPECT_THAT(ErrorOf(net), HasSubstr("there is no activation \"swoosh\": use relu"));
}

TEST(Builder, SaysWhichArgumentIsWrong) {
  const auto error = [](const std::function<void(Builder&, const Ref&)>& use) {
    Builder net("net");
    const Ref x = net.Data("x", {3});
    use(net, x);
    return ErrorOf(net);
  };
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Fc(x, 0); }),
              HasSubstr("each dim must be known and above 0"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Fc(x, 2, {.num_flatten_dims = 2}); }),
              HasSubstr("num_flatten_dims is 2"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Conv2d(x, 2, 3); }),
              HasSubstr("must be [batch, channels, height, width]"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Dropout(x, 1); }),
              HasSubstr("dropout_prob must be in [0, 1)"));
  EXPECT_THAT(error([](Builder& net, const Ref&) { net.Data("x", {1}); }), HasSubstr("\"x\" is taken"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Embedding(x, 10, 2); }),
              HasSubstr("Ids must be dense i64"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Concat({x, net.Data("y", {2, 2})}, 1); }),
              HasSubstr("it cannot join"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Minimize(net.Mean(x), {}); }),
              HasSubstr("depends on no parameter"));
  EXPECT_THAT(error([](Builder& net, const Ref& x) { net.Minimize(net.Mean(net.Fc(x, 1)), {.rate = -1.0}); }),
              HasSubstr("the learning rate must be above 0"));
  EXPECT_THAT(error([](Builder& net, const Ref&) { net.Mean({"nothing"}); }), HasSubstr("nothing"));
}

TEST(Builder, SharesAParameterByItsName) {
  Builder net("net");
  const Ref ids = net.Data("ids", {1}, DataType::kInt64);
  EmbeddingOptions options;
  options.weight.name = "shared";
  net.Embedding(ids, 10, 4, options);
  net.Embedding(ids, 10, 4, options);
  ASSERT_TRUE(net.Finish().ok());
  EXPECT_EQ(net.Finish()->startup.main().ops.size(), 1);
  net.Embedding(ids, 10, 5, options);
  EXPECT_THAT(ErrorOf(net), HasSubstr("taken by a variable of another shape"));
}

TEST(Builder, GivesEachInitialiserASeedOfItsOwnThatFollowsFromTheBuilders) {
  const auto seeds = [](std::uint64_t seed) {
    Builder net("net", {.seed = seed});
    net.Fc(net.Fc(net.Data("x", {4}), 4), 4);
    std::vector<std::int64_t> found;
    const auto built = net.Finish();
    for (const Op& op : built->startup.main().ops) {
      if (op.type == "uniform_random") found.push_back(op.Int("seed"));
    }
    return found;
  };
  EXPECT_NE(seeds(1)[0], seeds(1)[1]);
  EXPECT_EQ(seeds(1), seeds(1));
  EXPECT_NE(seeds(1), seeds(2));
}

TEST(Builder, ReadsTheFieldsOfRecords) {
  Builder net("net");
  const std::vector<Ref> fields =
      net.Read({.sources = {"images", "labels"},
                .batch_size = 32,
                .fields = {{.name = "image", .item = {784}, .scale = 1.0 / 255},
                           {.name = "label", .item = {1}, .type = DataType::kInt64, .source = 1}}});
  ASSERT_TRUE(net.Finish().ok()) << net.Finish().status();
  EXPECT_EQ(net.Find(fields[1])->type, (VarType{.data_type = DataType::kInt64, .dims = {kUnknownDim, 1}}));
  Builder bad("bad");
  bad.Read({.sources = {"images"}, .batch_size = 1, .fields = {{.name = "label", .item = {1}, .source = 1}}});
  EXPECT_THAT(ErrorOf(bad), HasSubstr("field label comes from source 1, and there are 1"));
}

}  // namespace
}  // namespace trainyard::graph
