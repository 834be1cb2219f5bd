#include "base/document.h"

#include <bit>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

Document Parse(std::string_view json) { return ParseJson(json).value(); }

TEST(ParseJson, GivesBackWhatItWasGiven) {
  for (const char* json : {R"({"b":1,"a":[true,false,null,"x"],"c":{}})", "[]", "\"\\u0001\\\"\\\\\"", "-5",
                           "9223372036854775807", "18446744073709551615", "0.5", "\"\xc3\xa9\""}) {
    EXPECT_EQ(PrintJson(Parse(json)), json);
  }
}

TEST(ParseJson, KeepsTheOrderOfKeysAndTheLastOfTwins) {
  EXPECT_EQ(PrintJson(Parse(R"({"z":1,"a":2,"z":3})")), R"({"z":3,"a":2})");
}

TEST(ParseJson, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1"},
      {"{\"a\":\n  x}", "line 2, column 3"},
      {"{} {}", "more follows the document at line 1, column 4"},
      {"{\"a\":1", "incomplete"},
      {"\"\xff\"", "line 1, column 2"},
      {"{'a':1}", "line 1, column 2"},
      {"[1,]", "line 1, column 4"},
  };
  for (const auto& [json, error] : cases) {
    const absl::Status status = ParseJson(json).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << json;
    EXPECT_THAT(Message(status), HasSubstr(error)) << json;
  }
}

TEST(ParseJson, BoundsTheDepth) {
  const auto nested = [](std::size_t depth) {
    return StrCat(std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_TRUE(ParseJson(nested(kMaxDocumentDepth)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(nested(kMaxDocumentDepth + 1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(std::string(1000000, '[')).status()));
}

TEST(PrintJson, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(PrintJson(Parse("[0.5,1.5e10,1e-7,1.25e25,-0.001,100.0]")),
            "[0.5,15000000000,1e-7,1.25e+25,-0.001,100]");
  EXPECT_EQ(PrintJson(Parse("[0.0,-0.0,-0.0e3]")), "[0,0,0]");
}

TEST(ParseJson, ReadsEveryNumberToTheNearestDoubleSoThatItComesBack) {
  for (const char* json : {"0.30000000000000004", "1.2345678901234567", "5e-324", "1.7976931348623157e+308",
                           "1.25e+25", "123456.78901234567", "2.2250738585072014e-308"}) {
    EXPECT_EQ(PrintJson(Parse(json)), json);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    EXPECT_EQ(Parse(PrintJson(Document(number))).to_number<double>(), number);
  }
  EXPECT_EQ(Parse("1e-400").to_number<double>(), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson("[1e400]").status()));
}

TEST(PrintJson, EscapesWhatJsonMust) {
  EXPECT_EQ(PrintJson(Document("a\"\\\n\x01\x7f/")), "\"a\\\"\\\\\\n\\u0001\x7f/\"");
}

TEST(Find, WalksOnlyThroughObjects) {
  const Document document = Parse(R"({"a":{"b":{"c":"x"}},"n":1,"t":true,"l":[1],"u":18446744073709551615})");
  EXPECT_EQ(StringAt(document, {"a", "b", "c"}), "x");
  EXPECT_EQ(StringAt(document, {"a", "b", "d"}, "else"), "else");
  EXPECT_EQ(StringAt(document, {"n"}, "else"), "else");
  EXPECT_EQ(Find(document, {"n", "b"}), nullptr);
  EXPECT_EQ(Find(document, {}), &document);
  EXPECT_EQ(Find(document.get_object(), {"a", "b"}), Find(document, {"a", "b"}));
  EXPECT_EQ(Find(document.get_object(), {"n", "b"}), nullptr);
  EXPECT_EQ(IntAt(document, {"n"}), 1);
  EXPECT_EQ(IntAt(document, {"u"}), std::nullopt);
  EXPECT_EQ(IntAt(document, {"t"}), std::nullopt);
  EXPECT_TRUE(BoolAt(document, {"t"}));
  EXPECT_TRUE(BoolAt(document, {"missing"}, true));
  EXPECT_EQ(ArrayAt(document, {"l"})->size(), 1u);
  EXPECT_EQ(ArrayAt(document, {"a"}), nullptr);
  EXPECT_EQ(ObjectAt(document, {"l"}), nullptr);
}

TEST(MakeObjectAt, MakesWhatIsMissingAndReplacesWhatIsInTheWay) {
  Document document = Parse(R"({"a":1,"b":{"x":2}})");
  MakeObjectAt(document, {"a", "c"})["d"] = 3;
  MakeObjectAt(document, {"b"})["y"] = 4;
  EXPECT_EQ(PrintJson(document), R"({"a":{"c":{"d":3}},"b":{"x":2,"y":4}})");
  Document text("x");
  MakeObjectAt(text, {})["a"] = 1;
  EXPECT_EQ(PrintJson(text), R"({"a":1})");
}

TEST(Remove, KeepsTheOrderOfTheOthers) {
  Document document = Parse(R"({"a":1,"b":2,"c":3})");
  EXPECT_TRUE(Remove(document.get_object(), "a"));
  EXPECT_FALSE(Remove(document.get_object(), "a"));
  EXPECT_EQ(PrintJson(document), R"({"b":2,"c":3})");
}

}  // namespace
}  // namespace trainyard
