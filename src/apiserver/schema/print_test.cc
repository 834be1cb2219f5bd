#include "apiserver/schema/print.h"

#include "apiserver/schema/schema_testing.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kSchema = R"({"type":"object","required":["a","n"],"properties":{
    "a":{"type":"integer","format":"int32","minimum":1,"default":2},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"x":{"type":"string"}}},
    "ios":{"x-kubernetes-int-or-string":true},
    "l":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
    "m":{"type":"object","additionalProperties":{"type":"boolean"},"x-kubernetes-map-type":"atomic"},
    "n":{"type":"string","nullable":true,"enum":["a",null]},
    "o":{"type":"string","oneOf":[{"minLength":2},{"pattern":"^x"}]}}})";

Object PropertiesOf(OpenApiVersion version) {
  Document document = ToOpenApi(*SchemaOf(kSchema), version);
  Object& properties = document.as_object()["properties"].as_object();
  for (const auto* key : {"apiVersion", "kind", "metadata"}) EXPECT_TRUE(Remove(properties, key));
  return properties;
}

TEST(ToOpenApi, PrintsWhatWasRead) {
  EXPECT_EQ(Document(PropertiesOf(OpenApiVersion::kV3)), *Find(Json(kSchema), {"properties"}));
}

TEST(ToOpenApi, CanBeReadAgain) {
  const Document once = ToOpenApi(*SchemaOf(kSchema));
  Document written = once;
  ASSERT_TRUE(Remove(*ObjectAt(written, {"properties"}), "metadata"));  // which the server adds
  const auto again = ParseOpenApiSchema(written);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToOpenApi(**again), once);
}

TEST(ToOpenApi, LeavesOutOfV2WhatOldKubectlCannotRead) {
  const Document expected = Json(R"({
    "a":{"type":"integer","format":"int32","minimum":1},
    "free":{"x-kubernetes-preserve-unknown-fields":true},
    "ios":{"x-kubernetes-int-or-string":true},
    "l":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
    "m":{"type":"object","additionalProperties":{"type":"boolean"},"x-kubernetes-map-type":"atomic"},
    "n":{"enum":["a",null]},
    "o":{"type":"string"}})");
  EXPECT_EQ(Document(PropertiesOf(OpenApiVersion::kV2)), expected);
  EXPECT_EQ(PrintJson(*Find(ToOpenApi(*SchemaOf(kSchema), OpenApiVersion::kV2), {"required"})), R"(["a"])");
}

}  // namespace
}  // namespace trainyard::apiserver
