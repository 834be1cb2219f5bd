#include "base/json.h"

#include <limits>

#include "gtest/gtest.h"

namespace trainyard {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

TEST(AppendJsonString, EscapesWhatWouldEndOrBreakTheString) {
  EXPECT_EQ(Quoted("a\"b\\c\n\t\r\x01"), R"("a\"b\\c\n\t\r\u0001")");
  EXPECT_EQ(Quoted(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(Quoted("żółw 🐢"), "\"żółw 🐢\"");
}

TEST(AppendJsonString, ReplacesEveryByteThatIsNotUtf8) {
  EXPECT_EQ(Quoted("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "overlong";
  EXPECT_EQ(Quoted("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "cut off";
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80")) << "surrogate";
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80")) << "beyond Unicode";
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf"));
}

TEST(JsonObject, KeepsOrderAndTypes) {
  const std::string json = JsonObject()
                               .Add("b", true)
                               .Add("a", 7)
                               .Add("s", "x")
                               .Add("d", 0.5)
                               .Add("inf", std::numeric_limits<double>::infinity())
                               .AddRaw("l", "[1]")
                               .Str();
  EXPECT_EQ(json, R"({"b":true,"a":7,"s":"x","d":0.5,"inf":null,"l":[1]})");
}

}  // namespace
}  // namespace trainyard
