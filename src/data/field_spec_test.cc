#include "data/field_spec.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr FieldSpec kRawField{};
constexpr FieldSpec kFloats{.type = FieldType::kFloat32};
constexpr FieldSpec kInts{.type = FieldType::kInt64};

FieldSpec Of(FieldSpec field, std::uint64_t elements) {
  field.elements = elements;
  return field;
}

TEST(ParseFieldSpecs, TakesTypesSizesAndDivisors) {
  EXPECT_THAT(ParseFieldSpecs("raw").value(), ElementsAre(kRawField));
  EXPECT_THAT(ParseFieldSpecs("f32x4,i64").value(), ElementsAre(Of(kFloats, 4), kInts));
  EXPECT_THAT(ParseFieldSpecs("f32/255,i64x1,f32x2/0.5").value(),
              ElementsAre(FieldSpec{.type = FieldType::kFloat32, .scale = 1 / 255.0}, Of(kInts, 1),
                          FieldSpec{.type = FieldType::kFloat32, .elements = 2, .scale = 2}));
}

TEST(ParseFieldSpecs, SaysWhatIsWrong) {
  for (const char* text : {"", "f64", "F32", "f32,", "raw/2", "rawx3", "4xf32", " f32"}) {
    EXPECT_THAT(Message(ParseFieldSpecs(text).status()), HasSubstr("a field is raw, or f32 or i64")) << text;
  }
  for (const char* text : {"f32x", "f32x0", "f32x-1", "f32x1e3", "i64x4x4"}) {
    EXPECT_THAT(Message(ParseFieldSpecs(text).status()), HasSubstr("behind x stands how many")) << text;
  }
  for (const char* text : {"f32/", "f32/0", "f32/nan", "f32/inf", "f32/1e-320", "f32/2x4", "f32/2/2"}) {
    EXPECT_THAT(Message(ParseFieldSpecs(text).status()), HasSubstr("behind / stands a number")) << text;
  }
}

TEST(DealFields, GivesEachSourceWhatItsElementsNeed) {
  const std::vector<SourceElements> images = {{"images", 784}, {"labels", 1}};
  EXPECT_THAT(DealFields(std::vector{kFloats, kInts}, images).value(),
              ElementsAre(ElementsAre(Of(kFloats, 784)), ElementsAre(Of(kInts, 1))));
  const std::vector<SourceElements> table = {{"csv", 5}};
  EXPECT_THAT(DealFields(std::vector{Of(kFloats, 4), kInts}, table).value(),
              ElementsAre(ElementsAre(Of(kFloats, 4), Of(kInts, 1))));
  const std::vector<SourceElements> mixed = {{"recordio", std::nullopt}, {"csv", 2}};
  EXPECT_THAT(DealFields(std::vector{kRawField, Of(kInts, 2)}, mixed).value(),
              ElementsAre(ElementsAre(kRawField), ElementsAre(Of(kInts, 2))));
}

TEST(DealFields, SaysWhatDoesNotComeOutEven) {
  const std::vector<SourceElements> table = {{"csv", 5}};
  const auto why = [](const std::vector<FieldSpec>& fields, const std::vector<SourceElements>& sources) {
    return std::string(Message(DealFields(fields, sources).status()));
  };
  EXPECT_EQ(why({Of(kFloats, 4)}, table),
            "the records of csv have 5 elements, and no field takes the last 1");
  EXPECT_EQ(why({Of(kFloats, 4), kRawField}, table),
            "the records of csv have 5 elements, and no field takes the last 1");
  EXPECT_EQ(why({Of(kFloats, 4), Of(kInts, 2)}, table),
            "the records of csv have 5 elements, and a field wants 2 of the last 1");
  EXPECT_EQ(why({kFloats, kInts}, table), "there are 2 fields, and the records need only 1 of them");
  EXPECT_EQ(why({kFloats}, {{"images", 784}, {"labels", 1}}), "no field is left for labels");
  EXPECT_EQ(why({kFloats}, {{"a.rec", std::nullopt}}),
            "the records of a.rec are bytes, not numbers: they can only be raw");
}

}  // namespace
}  // namespace trainyard::data
