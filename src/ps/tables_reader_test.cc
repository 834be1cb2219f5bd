#include "ps/tables_reader.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::ps {
namespace {

using testing::HasSubstr;

Document Json(std::string_view text) { return ParseJson(text).value(); }

TEST(ObjectReader, TellsTheFirstThingThatIsWrong) {
  const Document document = Json(R"({"a":1,"b":"x"})");
  ObjectReader reader(document);
  EXPECT_EQ(reader.Int("a", 0), 1);
  EXPECT_EQ(reader.Int("b", 5), 5);
  EXPECT_EQ(reader.Text("c"), "");
  EXPECT_EQ(Message(reader.Finish()), "b is no whole number");
}

TEST(ObjectReader, RefusesFieldsThatNobodyAskedFor) {
  const Document document = Json(R"({"a":1,"b":2})");
  ObjectReader reader(document);
  reader.Int("a", 0);
  EXPECT_THAT(Message(reader.Finish()), HasSubstr("\"b\""));
  reader.OptionalInt("b", 0);
  EXPECT_TRUE(reader.Finish().ok());
}

TEST(ObjectReader, ReadsNothingOfWhatIsNoObject) {
  for (const char* text : {"null", "[]", "3", "\"x\""}) {
    const Document document = Json(text);
    ObjectReader reader(document);
    EXPECT_EQ(reader.Text("a"), "");
    EXPECT_TRUE(reader.List("a").empty());
    EXPECT_TRUE(reader.Map("a").empty());
    EXPECT_EQ(reader.OptionalInt("a", 0), std::nullopt);
    EXPECT_EQ(Message(reader.Finish()), "it is no JSON object");
  }
}

TEST(ObjectReader, BoundsDims) {
  const Document document = Json(R"({"a":[2,0,3],"b":[1048576,1048576,2],"c":[-1]})");
  ObjectReader good(document);
  EXPECT_EQ(good.Dims("a"), (graph::Dims{2, 0, 3}));
  for (const char* name : {"b", "c"}) {
    ObjectReader reader(document);
    reader.Dims(name);
    EXPECT_THAT(Message(reader.Finish()), HasSubstr(name)) << name;
  }
}

}  // namespace
}  // namespace trainyard::ps
