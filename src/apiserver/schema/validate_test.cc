#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using kube::Cause;
using testing::ElementsAre;
using testing::IsEmpty;

// What is wrong with a value of spec.f.
std::vector<Cause> CausesOf(std::string_view field, std::string_view value) {
  const SchemaPtr schema = SchemaOf(
      StrCat(R"({"type":"object","properties":{"spec":{"type":"object","properties":{"f":)", field, "}}}}"));
  return Validate(*schema, Json(StrCat(R"({"spec":{"f":)", value, "}}")));
}

TEST(Validate, SaysWhichTypeAFieldMustHave) {
  EXPECT_THAT(CausesOf(R"({"type":"integer"})", R"("x")"),
              ElementsAre(Cause{"FieldValueTypeInvalid", "spec.f",
                                R"(Invalid value: "x": spec.f in body must be of type integer: "string")"}));
  EXPECT_THAT(
      CausesOf(R"({"type":"string"})", R"({"a":1})"),
      ElementsAre(Cause{"FieldValueTypeInvalid", "spec.f",
                        R"(Invalid value: "object": spec.f in body must be of type string: "object")"}));
  EXPECT_THAT(CausesOf(R"({"type":"string"})", "null"),
              ElementsAre(Cause{"FieldValueTypeInvalid", "spec.f",
                                R"(Invalid value: "null": spec.f in body must be of type string: "null")"}));
}

TEST(Validate, ListsTheValuesThatAreSupported) {
  EXPECT_THAT(CausesOf(R"({"type":"string","enum":["A","B"]})", R"("Foo")"),
              ElementsAre(Cause{"FieldValueNotSupported", "spec.f",
                                R"(Unsupported value: "Foo": supported values: "A", "B")"}));
  EXPECT_THAT(CausesOf(R"({"type":"number","enum":[1,2.5]})", "1.0"), IsEmpty());
}

TEST(Validate, NamesWhatIsRequired) {
  EXPECT_THAT(CausesOf(R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"}}})", "{}"),
              ElementsAre(Cause{"FieldValueRequired", "spec.f.a", "Required value"}));
}

TEST(Validate, HoldsValuesToTheirBounds) {
  struct Case {
    std::string_view field;
    std::string_view value;
    std::string_view message;  // empty: nothing is wrong
  };
  const Case cases[] = {
      {R"({"type":"integer","maximum":10})", "10", ""},
      {R"({"type":"integer","maximum":10})", "11",
       "Invalid value: 11: spec.f in body should be less than or equal to 10"},
      {R"({"type":"integer","maximum":10,"exclusiveMaximum":true})", "10",
       "Invalid value: 10: spec.f in body should be less than 10"},
      {R"({"type":"number","minimum":0.5})", "0.25",
       "Invalid value: 0.25: spec.f in body should be greater than or equal to 0.5"},
      {R"({"type":"number","minimum":0.5,"exclusiveMinimum":true})", "0.5",
       "Invalid value: 0.5: spec.f in body should be greater than 0.5"},
      {R"({"type":"number","multipleOf":0.1})", "0.3", ""},
      {R"({"type":"integer","multipleOf":4})", "6",
       "Invalid value: 6: spec.f in body should be a multiple of 4"},
      {R"({"type":"integer"})", "3.0", ""},
      {R"({"type":"integer"})", "18446744073709551615", ""},
      {R"({"type":"integer","format":"int32"})", "-2147483648", ""},
      {R"({"type":"integer","format":"int32"})", "2147483648",
       "Invalid value: 2147483648: spec.f in body must be of type int32"},
      {R"({"type":"string","maxLength":2})", R"("äöü")", "Too long: may not be longer than 2"},
      {R"({"type":"string","maxLength":3})", R"("äöü")", ""},
      {R"({"type":"string","minLength":1})", R"("")",
       R"(Invalid value: "": spec.f in body should be at least 1 chars long)"},
      {R"({"type":"string","pattern":"^a+$"})", R"("aab")",
       R"(Invalid value: "aab": spec.f in body should match '^a+$')"},
      {R"({"type":"string","pattern":"a"})", R"("xay")", ""},
      {R"({"type":"string","format":"date-time"})", R"("2020-02-30T00:00:00Z")",
       R"(Invalid value: "2020-02-30T00:00:00Z": spec.f in body must be of type date-time: "2020-02-30T00:00:00Z")"},
      {R"({"type":"string","format":"made-up"})", R"("x")", ""},
      {R"({"type":"array","items":{"type":"string"},"minItems":2})", R"(["a"])",
       "Invalid value: 1: spec.f in body should have at least 2 items"},
      {R"({"type":"array","items":{"type":"string"},"maxItems":1})", R"(["a","b"])",
       "Too many: 2: must have at most 1 items"},
      {R"({"type":"object","additionalProperties":{"type":"string"},"maxProperties":1})",
       R"({"a":"","b":""})", "Too many: 2: must have at most 1 items"},
      {R"({"type":"object","additionalProperties":{"type":"string"},"minProperties":1})", "{}",
       "Invalid value: 0: spec.f in body should have at least 1 properties"},
      {R"({"x-kubernetes-int-or-string":true})", R"("50%")", ""},
      {R"({"x-kubernetes-int-or-string":true})", "5", ""},
      {R"({"x-kubernetes-int-or-string":true})", "true",
       R"(Invalid value: true: spec.f in body must be of type integer,string: "boolean")"},
      {R"({"type":"string","nullable":true})", "null", ""},
      {R"({"x-kubernetes-preserve-unknown-fields":true})", R"([{"a":null}])", ""},
  };
  for (const Case& each : cases) {
    const auto causes = CausesOf(each.field, each.value);
    if (each.message.empty()) {
      EXPECT_THAT(causes, IsEmpty()) << each.field << " " << each.value << ": " << causes[0].message;
    } else {
      ASSERT_EQ(causes.size(), 1U) << each.field << " " << each.value;
      EXPECT_EQ(causes[0].message, each.message);
    }
  }
}

TEST(Validate, GivesItemsTheirIndex) {
  const auto causes =
      CausesOf(R"({"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}})",
               R"([{"n":1},{"n":"x"}])");
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].field, "spec.f[1].n");
}

TEST(Validate, FindsDuplicatesInSetsAndMaps) {
  EXPECT_THAT(CausesOf(R"({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"})",
                       R"(["a","b","a"])"),
              ElementsAre(Cause{"FieldValueDuplicate", "spec.f[2]", R"(Duplicate value: "a")"}));
  constexpr std::string_view kMap =
      R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["p","q"],
      "items":{"type":"object","required":["p"],"properties":{"p":{"type":"integer"},"q":{"type":"string","default":"T"}}}})";
  EXPECT_THAT(CausesOf(kMap, R"([{"p":1,"q":"T"},{"p":1,"q":"U"},{"q":"T","p":1}])"),
              ElementsAre(Cause{"FieldValueDuplicate", "spec.f[2]", R"(Duplicate value: {"p":1,"q":"T"})"}));
}

TEST(Validate, WeighsAlternatives) {
  constexpr std::string_view kOneOf =
      R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
      "oneOf":[{"required":["a"]},{"required":["b"]}]})";
  EXPECT_THAT(CausesOf(kOneOf, R"({"a":"1"})"), IsEmpty());
  EXPECT_EQ(
      CausesOf(kOneOf, R"({"a":"1","b":"2"})").at(0).message,
      R"(Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives)");
  const auto none = CausesOf(kOneOf, "{}");
  ASSERT_EQ(none.size(), 2U);
  EXPECT_EQ(none[0].message,
            R"(Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found none valid)");
  EXPECT_EQ(none[1].field, "spec.f.a");

  constexpr std::string_view kAnyOf =
      R"({"type":"integer","anyOf":[{"maximum":1},{"minimum":9}],"not":{"enum":[0]}})";
  EXPECT_THAT(CausesOf(kAnyOf, "1"), IsEmpty());
  EXPECT_THAT(CausesOf(kAnyOf, "9"), IsEmpty());
  EXPECT_EQ(CausesOf(kAnyOf, "5").at(0).message,
            R"(Invalid value: "": "spec.f" must validate at least one schema (anyOf))");
  EXPECT_EQ(CausesOf(kAnyOf, "0").at(0).message,
            R"(Invalid value: "": "spec.f" must not validate the schema (not))");
  EXPECT_EQ(CausesOf(R"({"type":"integer","allOf":[{"maximum":1},{"minimum":0}]})", "5").size(), 1U);
}

TEST(Validate, StopsAtTheBound) {
  const SchemaPtr schema =
      SchemaOf(R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}})");
  Array items(1000, Document(1));
  const Document value = Object{{"l", items}};
  EXPECT_EQ(Validate(*schema, value).size(), 16U);
  EXPECT_EQ(Validate(*schema, value, 3).size(), 3U);
}

// Each level twice what is below it would be 2^60 checks.
TEST(Validate, CostsNoMoreThanTheSchemaIsLong) {
  std::string schema = R"({"maximum":1})";
  for (int i = 0; i < 55; ++i) schema = StrCat(R"({"oneOf":[)", schema, "]}");
  EXPECT_FALSE(CausesOf(StrCat(R"({"type":"integer",)", schema.substr(1)), "5").empty());
}

TEST(Validate, ShowsNoMoreThanAPieceOfALongValue) {
  const std::string value = StrCat('"', std::string(100'000, 'x'), '"');
  const auto causes = CausesOf(R"({"type":"integer"})", value);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_LT(causes[0].message.size(), 1000U);
}

}  // namespace
}  // namespace trainyard::apiserver
