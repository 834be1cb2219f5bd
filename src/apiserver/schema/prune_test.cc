#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kPrunedSchema =
    R"({"type":"object","properties":{"spec":{"type":"object","properties":{
    "a":{"type":"integer"},
    "list":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}}}},
    "map":{"type":"object","additionalProperties":{"type":"object","properties":{"c":{"type":"string"}}}},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
            "properties":{"known":{"type":"object","properties":{"d":{"type":"string"}}}}},
    "any":{"x-kubernetes-preserve-unknown-fields":true}}}}})";

TEST(Prune, RemovesWhatIsUnknownAndSaysWhereItStood) {
  Document value =
      Json(R"({"spec":{"x":1,"a":1,"list":[{"b":"1"},{"y":2,"b":"3"}],"map":{"k":{"c":"1","z":1}}},"w":{}})");
  EXPECT_THAT(Prune(*SchemaOf(kPrunedSchema), value),
              ElementsAre("spec.x", "spec.list[1].y", "spec.map.k.z", "w"));
  EXPECT_EQ(PrintJson(value), R"({"spec":{"a":1,"list":[{"b":"1"},{"b":"3"}],"map":{"k":{"c":"1"}}}})");
  EXPECT_THAT(Prune(*SchemaOf(kPrunedSchema), value), IsEmpty());
}

TEST(Prune, KeepsWhatMayBeUnknownButNotBelowWhatIsKnown) {
  Document value = Json(R"({"spec":{"free":{"u":{"v":1},"known":{"d":"1","e":2}},"any":[{"x":1}]}})");
  EXPECT_THAT(Prune(*SchemaOf(kPrunedSchema), value), ElementsAre("spec.free.known.e"));
  EXPECT_EQ(PrintJson(value), R"({"spec":{"free":{"u":{"v":1},"known":{"d":"1"}},"any":[{"x":1}]}})");
}

TEST(Prune, LeavesAValueOfTheWrongTypeToValidation) {
  Document value = Json(R"({"spec":{"a":{"x":1},"list":{"y":1},"map":[{"z":1}]}})");
  EXPECT_THAT(Prune(*SchemaOf(kPrunedSchema), value), IsEmpty());
  EXPECT_EQ(Validate(*SchemaOf(kPrunedSchema), value).size(), 3U);
}

TEST(Prune, KeepsTheTypeAndMetadataOfAResource) {
  Document value =
      Json(R"({"apiVersion":"a/v1","kind":"A","metadata":{"name":"x","labels":{"a":"b"}},"spec":{}})");
  const Document before = value;
  EXPECT_THAT(Prune(*SchemaOf(kPrunedSchema), value), IsEmpty());
  EXPECT_EQ(value, before);
}

TEST(Prune, NamesNoMoreThanTheBudgetPaysFor) {
  const auto schema = SchemaOf(
      R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object",)"
      R"("properties":{"known":{"type":"string"}}}}}})");
  Object below;
  for (int i = 0; i < 10'000; ++i) below["k" + std::to_string(i)] = i;
  Document value = Object{{"m", Object{{std::string(100'000, 'x'), std::move(below)}}}};
  Budget budget;
  EXPECT_LT(Prune(*schema, value, budget).size(), 100U) << "10,000 paths of 100 kB are a gigabyte";
  EXPECT_TRUE(budget.overdrawn());
  EXPECT_LT(PrintJson(value).size(), 200'000U);
}

TEST(Prune, CostsNoMoreThanTheDocumentIsLong) {
  Object object;
  for (int i = 0; i < 200'000; ++i) object["k" + std::to_string(i)] = i;
  Document value = std::move(object);
  EXPECT_EQ(Prune(*SchemaOf(kPrunedSchema), value).size(), 200'000U);
  EXPECT_EQ(PrintJson(value), "{}");
}

}  // namespace
}  // namespace trainyard::apiserver
