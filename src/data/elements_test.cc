#include "data/elements.h"

#include <cstdint>

#include "data/data_testing.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

TEST(ParseElement, TakesNumbersAsPeopleWriteThem) {
  float number = 0;
  for (const char* text : {"2.5", " 2.5\t", "+2.5", "25e-1", "2.50"}) {
    EXPECT_TRUE(ParseElement(text, 1, number)) << text;
    EXPECT_EQ(number, 2.5F) << text;
  }
  EXPECT_TRUE(ParseElement("1e-999", 1, number));
  EXPECT_EQ(number, 0.0F);
  EXPECT_TRUE(ParseElement("51", 1 / 255.0, number));
  EXPECT_EQ(number, 0.2F);
  std::int64_t whole = 0;
  EXPECT_TRUE(ParseElement("9223372036854775807", 1, whole));
  EXPECT_EQ(whole, INT64_MAX);
  EXPECT_TRUE(ParseElement("3.0", 1, whole));
  EXPECT_EQ(whole, 3);
  EXPECT_TRUE(ParseElement("5", 0.5, whole));
  EXPECT_EQ(whole, 2);
}

TEST(ParseElement, RefusesWhatIsNoNumberOrTooLarge) {
  float number = 0;
  for (const char* text : {"", "x", "1,5", "1e999", "nan", "inf", "+-1", "1 2", "0x10"}) {
    EXPECT_FALSE(ParseElement(text, 1, number)) << text;
    EXPECT_FALSE(ParseElement(text, 2, number)) << text;
  }
  EXPECT_FALSE(ParseElement("1e38", 10, number));
  std::int64_t whole = 0;
  for (const char* text : {"", "1.5", "9223372036854775808", "1e19"})
    EXPECT_FALSE(ParseElement(text, 1, whole)) << text;
}

TEST(LoadBig, ReadsNumbersAsIdxHasThem) {
  EXPECT_EQ(LoadBig<std::int16_t>(FromHex("fffe").data()), -2);
  EXPECT_EQ(LoadBig<float>(FromHex("3fc00000").data()), 1.5F);
  EXPECT_EQ(WithElementType(ElementType::kInt32, [](auto zero) { return sizeof zero; }), 4u);
}

}  // namespace
}  // namespace trainyard::data
