#include "apiserver/schema/schema.h"
#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::HasSubstr;

std::string ParseErrorOf(std::string_view schema) {
  const auto parsed = ParseOpenApiSchema(Json(schema));
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

// A field `f` of an object.
std::string ErrorOfField(std::string_view schema) {
  return ParseErrorOf(std::string(R"({"type":"object","properties":{"f":)") + std::string(schema) + "}}");
}

TEST(ParseOpenApiSchema, KeepsWhatItReads) {
  const SchemaPtr schema = SchemaOf(R"({"type":"object","description":"d","required":["a"],
      "properties":{"a":{"type":"integer","format":"int32","minimum":1,"maximum":5,"exclusiveMaximum":true},
                    "b":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}},
                         "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},
                    "c":{"type":"object","additionalProperties":{"type":"boolean"},"x-kubernetes-map-type":"atomic"},
                    "d":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
                    "e":{"x-kubernetes-preserve-unknown-fields":true,"nullable":true},
                    "f":{"type":"string","default":"x","enum":["x","y"],"pattern":"^[xy]$","maxLength":3}}})");
  EXPECT_EQ(schema->description, "d");
  EXPECT_EQ(schema->required, std::vector<std::string>{"a"});
  const Schema& a = *schema->properties.at("a");
  EXPECT_EQ(a.type, SchemaType::kInteger);
  EXPECT_EQ(a.format, "int32");
  EXPECT_EQ(a.minimum, 1);
  EXPECT_EQ(a.maximum, 5);
  EXPECT_TRUE(a.exclusive_maximum);
  const Schema& b = *schema->properties.at("b");
  EXPECT_EQ(b.list_type, ListType::kMap);
  EXPECT_EQ(b.list_keys, std::vector<std::string>{"k"});
  EXPECT_TRUE(b.unique_keys);
  EXPECT_TRUE(schema->properties.at("c")->atomic_map);
  EXPECT_EQ(schema->properties.at("c")->additional->type, SchemaType::kBoolean);
  EXPECT_EQ(schema->properties.at("d")->type, SchemaType::kIntOrString);
  EXPECT_TRUE(schema->properties.at("e")->preserve_unknown);
  EXPECT_TRUE(schema->properties.at("e")->nullable);
  const Schema& f = *schema->properties.at("f");
  EXPECT_EQ(*f.default_value, Document("x"));
  EXPECT_EQ(f.one_of_values.size(), 2U);
  EXPECT_NE(f.regex, nullptr);
}

TEST(ParseOpenApiSchema, RefusesWhatIsNotStructural) {
  struct Case {
    std::string_view field;
    std::string_view error;
  };
  const Case cases[] = {
      {R"({})", "openAPIV3Schema.properties[f].type: is required for a field"},
      {R"({"type":"array"})", "properties[f].items: is required"},
      {R"({"type":"array","items":{}})", "properties[f].items.type: is required for the items"},
      {R"({"type":"null"})", "use nullable"},
      {R"({"type":"text"})", "unsupported type \"text\""},
      {R"({"type":7})", "properties[f].type: must be a text"},
      {R"({"type":"string","minLength":"x"})", "minLength: must be a whole number"},
      {R"({"$ref":"#/x"})", "$ref: is not supported"},
      {R"({"type":"string","pattern":"("})", "pattern: is no valid regular expression"},
      {R"json({"type":"string","pattern":"(?=x)"})json", "pattern: is no valid regular expression"},
      {R"({"type":"string","anyOf":[{"type":"string"}]})", "anyOf[0].type: must not be given inside"},
      {R"({"type":"string","not":{"nullable":true}})", "not.nullable: must not be given inside"},
      {R"({"type":"string","allOf":[{"oneOf":[{"default":"x"}]}]})", "allOf[0].oneOf[0].default"},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}})",
       "together with properties"},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false})",
       "together with properties"},
      {R"({"type":"object","x-kubernetes-preserve-unknown-fields":false})", "must be true or left out"},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})", "x-kubernetes-list-type: set"},
      {R"({"type":"string","x-kubernetes-list-type":"set"})", "type: must be array"},
      {R"({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bag"})", "atomic, set or map"},
      {R"({"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"set"})",
       "must be atomic for the items"},
      {R"({"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map"})",
       "list-map-keys: is required"},
      {R"({"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]})",
       "\"k\" is no property"},
      {R"({"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}},
           "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]})",
       "must be required or have a default"},
      {R"({"type":"object","x-kubernetes-embedded-resource":true})",
       "is required where x-kubernetes-embedded-resource"},
      {R"({"type":"integer","default":"x"})", "properties[f].default: does not validate"},
      {R"({"type":"object","properties":{"a":{"type":"string"}},"default":{"b":1}})", "unknown field b"},
  };
  for (const Case& each : cases) EXPECT_THAT(ErrorOfField(each.field), HasSubstr(each.error)) << each.field;
}

TEST(ParseOpenApiSchema, WantsAnObjectAtTheRoot) {
  EXPECT_THAT(ParseErrorOf(R"({"type":"string"})"), HasSubstr("must be object at the root"));
  EXPECT_THAT(ParseErrorOf(R"([])"), HasSubstr("must be a schema"));
  EXPECT_THAT(ParseErrorOf(R"({"type":"object","allOf":[{"oneOf":[{"properties":{"a":{"minLength":1}}}]}]})"),
              HasSubstr("allOf[0].oneOf[0].properties[a]: speaks of a field"));
  EXPECT_THAT(ParseErrorOf(R"({"type":"object","additionalProperties":{"type":"string"}})"),
              HasSubstr("at the root"));
  EXPECT_THAT(
      ParseErrorOf(
          R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}})"),
      HasSubstr("name and generateName"));
}

TEST(ParseOpenApiSchema, TellsThatRulesAreNotEvaluatedAndKeepsThem) {
  std::vector<std::string> warnings;
  const auto schema = ParseOpenApiSchema(
      Json(
          R"({"type":"object","properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}}})"),
      &warnings);
  ASSERT_TRUE(schema.ok());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("properties[a].x-kubernetes-validations"));
  EXPECT_THAT(PrintJson(ToOpenApi(**schema)), HasSubstr("self > 1"));
}

TEST(ParseOpenApiSchema, GivesTheRootAndEmbeddedResourcesTheirMetadata) {
  const SchemaPtr schema = SchemaOf(
      R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}},
          "spec":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})");
  for (const auto& path :
       {std::vector<std::string>{"apiVersion"}, {"kind"}, {"spec", "kind"}, {"spec", "metadata"}})
    EXPECT_NE(FindSchema(*schema, path), nullptr);
  EXPECT_EQ(Validate(*schema, Json(R"({"metadata":{"name":"abcd"}})")).size(), 1U);
  EXPECT_EQ(Validate(*schema, Json(R"({"metadata":{"name":"abc"}})")).size(), 0U);
}

TEST(ParseOpenApiSchema, RefusesASchemaWithoutBottom) {
  std::string text = R"({"type":"string"})";
  for (int i = 0; i < kMaxSchemaDepth + 1; ++i) text = R"({"type":"array","items":)" + text + "}";
  EXPECT_THAT(ErrorOfField(text), HasSubstr("levels deep"));
  Document deep = Json(R"({"type":"string"})");
  for (int i = 0; i < 5000; ++i) deep = Object{{"type", "object"}, {"not", std::move(deep)}};
  EXPECT_FALSE(ParseOpenApiSchema(deep).ok());
}

}  // namespace
}  // namespace trainyard::apiserver
