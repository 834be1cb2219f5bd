#include "apiserver/schema/schema_testing.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

TEST(FindSchema, StepsThroughListsAndMaps) {
  const SchemaPtr schema = SchemaOf(R"({"type":"object","properties":{
      "l":{"type":"array","items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}}}}},
      "m":{"type":"object","additionalProperties":{"type":"object","properties":{"y":{"type":"integer"}}}}}})");
  EXPECT_EQ(FindSchema(*schema, {})->type, SchemaType::kObject);
  EXPECT_EQ(FindSchema(*schema, {"l", "x"})->type, SchemaType::kBoolean);
  EXPECT_EQ(FindSchema(*schema, {"m", "anything", "y"})->type, SchemaType::kInteger);
  EXPECT_EQ(FindSchema(*schema, {"l", "z"}), nullptr);
  EXPECT_EQ(FindSchema(*schema, {"l", "x", "deeper"}), nullptr);
}

}  // namespace
}  // namespace trainyard::apiserver
