#include "graph/ir/codec.h"

#include <rapidcheck.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "graph/ir/dump.h"
#include "graph/ir/validate.h"

namespace trainyard::graph {
namespace {

using testing::HasSubstr;

Program Sample() {
  Program program{.id = "sample", .seed = 42};
  program.main().vars = {
      {.name = "x", .type = {.dims = {kUnknownDim, 4}}, .stop_gradient = true},
      {.name = "w.block1",
       .type = {.dims = {2, 3}},
       .persistable = true,
       .parameter = true,
       .slice = Slice{"w", {4, 3}, 6}},
      {.name = "ids",
       .type = {.kind = VarKind::kSparseRows, .data_type = DataType::kFloat32, .dims = {100, 8}}},
      {.name = "out", .type = {.data_type = DataType::kInt64, .dims = {1}}}};
  program.main().ops = {{.type = "anything",
                         .inputs = {{"X", {"x", "w.block1"}}, {"Empty", {}}},
                         .outputs = {{"Out", {"out"}}},
                         .attrs = {{"flag", true},
                                   {"int", std::int64_t{-7}},
                                   {"float", 0.1},
                                   {"text", std::string("a\"b\n")},
                                   {"ints", Ints{1, -2}},
                                   {"floats", Floats{0.5, 1e300}},
                                   {"texts", Strings{"", "b"}},
                                   {"block", BlockRef{1}},
                                   {"blocks", std::vector<BlockRef>{{1}, {2}}}},
                         .role = Role::kRpc,
                         .parameter = "w"}};
  program.AddBlock(0);
  program.AddBlock(1);
  return program;
}

std::string ErrorOf(const absl::StatusOr<Program>& program) {
  return std::string(program.status().message());
}

TEST(ProgramCodec, GivesBackWhatWasWritten) {
  const absl::StatusOr<Program> read = Decode(Encode(Sample()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Sample());
  EXPECT_EQ(Encode(*read), Encode(Sample()));
}

TEST(ProgramCodec, RefusesBytesThatAreNoProgram) {
  EXPECT_THAT(ErrorOf(Decode("hello")), HasSubstr("malformed program"));
  EXPECT_THAT(ErrorOf(Decode("")), HasSubstr("version 0 is not 1"));
}

TEST(ProgramCodec, NeverCrashesOnAFlippedOrCutProgram) {
  const std::string good = Encode(Sample());
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const absl::StatusOr<Program> read = Decode(bad);
      EXPECT_TRUE(!read.ok() || Validate(*read).ok());
    }
    const absl::StatusOr<Program> cut = Decode(good.substr(0, i));
    EXPECT_TRUE(!cut.ok() || Validate(*cut).ok());
  }
}

RC_GTEST_PROP(ProgramCodec, TakesAnyBytesWithoutHarm, (const std::string& bytes)) {
  const absl::StatusOr<Program> read = Decode(bytes);
  RC_ASSERT((!read.ok() || Validate(*read).ok()));
}

TEST(Validate, NamesTheRuleThatIsBroken) {
  const auto broken = [](const std::function<void(Program&)>& change) {
    Program program = Sample();
    change(program);
    return std::string(Validate(program).message());
  };
  EXPECT_THAT(broken([](Program& p) { p.blocks.clear(); }), HasSubstr("no block"));
  EXPECT_THAT(broken([](Program& p) { p.blocks[1].parent = 2; }),
              HasSubstr("block 1 has the parent 2, which does not come before it"));
  EXPECT_THAT(broken([](Program& p) { p.main().vars.push_back(p.main().vars[0]); }),
              HasSubstr("variable x comes twice"));
  EXPECT_THAT(broken([](Program& p) { p.main().vars[0].name = "a b"; }), HasSubstr("which is no name"));
  for (const Attr& bad : {Attr(std::nan("")), Attr(Floats{1.0, std::nan("")})}) {
    EXPECT_THAT(broken([&](Program& p) { p.main().ops[0].attrs["min"] = bad; }),
                HasSubstr("its attribute min is not a number"));
  }
  EXPECT_THAT(
      broken([](Program& p) { p.main().vars[0].type.dims = {std::int64_t{1} << 30, std::int64_t{1} << 30}; }),
      HasSubstr("too many elements"));
  EXPECT_THAT(broken([](Program& p) { p.main().vars[0].type.dims = {-2}; }), HasSubstr("a dim of -2"));
  EXPECT_THAT(broken([](Program& p) { p.main().vars[1].slice->offset = 7; }),
              HasSubstr("beyond the end of w"));
  EXPECT_THAT(broken([](Program& p) { p.main().ops[0].inputs["X"] = {"nobody"}; }),
              HasSubstr("operator 0 (anything): slot X names \"nobody\", and there is no such variable"));
  EXPECT_THAT(broken([](Program& p) { p.main().ops[0].attrs["block"] = BlockRef{0}; }),
              HasSubstr("runs block 0"));
  EXPECT_THAT(broken([](Program& p) { p.main().ops[0].attrs["block"] = BlockRef{9}; }),
              HasSubstr("there is no such block"));
}

TEST(Validate, LetsNoBlockRunItself) {
  Program program;
  const int inner = program.AddBlock(0);
  program.blocks[static_cast<std::size_t>(inner)].ops = {
      {.type = "while", .attrs = {{"block", BlockRef{inner}}}}};
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("not inside block 1"));
}

TEST(Print, ShowsAProgramAsPeopleReadIt) {
  Program program{.id = "net", .seed = 1};
  program.main().vars = {{.name = "w", .type = {.dims = {2}}, .persistable = true, .parameter = true},
                         {.name = "y", .type = {.dims = {2}}}};
  program.main().ops = {
      {.type = "scale", .inputs = {{"X", {"w"}}}, .outputs = {{"Out", {"y"}}}, .attrs = {{"scale", 0.5}}}};
  EXPECT_EQ(Print(program),
            "program net seed 1\n"
            "block 0\n"
            "  param w f32[2]\n"
            "  var y f32[2]\n"
            "  forward scale(X=w) -> Out=y {scale=0.5}\n");
}

}  // namespace
}  // namespace trainyard::graph
