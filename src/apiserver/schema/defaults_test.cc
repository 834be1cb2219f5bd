#include "apiserver/schema/schema_testing.h"
#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

std::string Defaulted(std::string_view schema, std::string_view value) {
  Document document = Json(value);
  EXPECT_TRUE(ApplyDefaults(*SchemaOf(schema), document));
  return PrintJson(document);
}

constexpr std::string_view kNested = R"({"type":"object","properties":{
    "spec":{"type":"object","default":{},"properties":{
        "replicas":{"type":"integer","default":1},
        "policy":{"type":"object","properties":{"kind":{"type":"string","default":"Never"}}},
        "list":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string","default":"TCP"}}}},
        "map":{"type":"object","additionalProperties":{"type":"object","properties":{"q":{"type":"integer","default":7}}}}}}}})";

TEST(ApplyDefaults, FillsWhatIsMissingAlsoInWhatADefaultBrings) {
  EXPECT_EQ(Defaulted(kNested, "{}"), R"({"spec":{"replicas":1}})");
}

TEST(ApplyDefaults, LeavesAloneWhatIsThereAndWhatHasNoParent) {
  EXPECT_EQ(Defaulted(kNested, R"({"spec":{"replicas":0}})"), R"({"spec":{"replicas":0}})");
  EXPECT_EQ(Defaulted(kNested, R"({"spec":{"replicas":3,"policy":{}}})"),
            R"({"spec":{"replicas":3,"policy":{"kind":"Never"}}})");
}

TEST(ApplyDefaults, ReachesIntoListsAndMaps) {
  EXPECT_EQ(Defaulted(kNested, R"({"spec":{"replicas":1,"list":[{},{"p":"UDP"}],"map":{"a":{}}}})"),
            R"({"spec":{"replicas":1,"list":[{"p":"TCP"},{"p":"UDP"}],"map":{"a":{"q":7}}}})");
}

TEST(ApplyDefaults, TakesANullThatIsNotAllowedForMissing) {
  constexpr std::string_view kSchema = R"({"type":"object","properties":{
      "a":{"type":"integer","default":1},"b":{"type":"integer"},"c":{"type":"integer","nullable":true,"default":2},
      "d":{"x-kubernetes-preserve-unknown-fields":true}}})";
  EXPECT_EQ(Defaulted(kSchema, R"({"a":null,"b":null,"c":null,"d":{"x":null}})"),
            R"({"a":1,"c":null,"d":{"x":null}})");
}

TEST(ApplyDefaults, TwiceIsTheSameAsOnce) {
  for (const std::string_view value :
       {"{}", R"({"spec":null})", R"({"spec":{"list":[{},null,3],"map":{"a":null,"b":{}}}})", "[]", "null"}) {
    const std::string once = Defaulted(kNested, value);
    EXPECT_EQ(Defaulted(kNested, once), once) << value;
  }
}

TEST(ApplyDefaults, CountsTheBytesOfWhatItFillsIn) {
  const std::string text(100'000, 'x');
  const auto schema = SchemaOf(
      StrCat(R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{)",
             R"("a":{"type":"string","default":")", text, R"("}}}}}})"));
  Array items;
  for (int i = 0; i < 10'000; ++i) items.push_back(Object());
  Document document = Object{{"l", std::move(items)}};
  EXPECT_FALSE(ApplyDefaults(*schema, document));
  EXPECT_LT(PrintJson(document).size(), std::size_t{10} << 20) << "a gigabyte would have been filled in";
}

TEST(ApplyDefaults, DoesNotLetASmallBodyFillTheMemory) {
  std::string filling = "[0";
  for (int i = 0; i < 20000; ++i) filling += ",0";
  filling += "]";
  const std::string schema =
      R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"},"default":)" +
      filling + "}}}}}}";
  std::string body = R"({"l":[{})";
  for (int i = 0; i < 20000; ++i) body += ",{}";
  body += "]}";
  Document document = Json(body);
  EXPECT_FALSE(ApplyDefaults(*SchemaOf(schema), document));
  EXPECT_LT(PrintJson(document).size(), 20'000'000U);
}

}  // namespace
}  // namespace trainyard::apiserver
