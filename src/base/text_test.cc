#include "base/text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(Text, IsShortenedBetweenCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc...");
  EXPECT_EQ(Shortened("ab\xc3\xa4", 3), "ab...");
  EXPECT_EQ(Shortened("", 0), "");
}

TEST(StrCat, TakesEveryKindOfTextAndWholeNumber) {
  EXPECT_EQ(
      StrCat("a", std::string("b"), std::string_view("c"), absl::string_view("d"), 'e', -1, 2u, INT64_MIN),
      "abcde-12-9223372036854775808");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(Split("a,,b,", ','), testing::ElementsAre("a", "", "b", ""));
  EXPECT_THAT(Split("", ','), testing::ElementsAre(""));
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(ParseNumber<int>("-12"), -12);
  EXPECT_EQ(ParseNumber<int>("12x"), std::nullopt);
  EXPECT_EQ(ParseNumber<int>(""), std::nullopt);
  EXPECT_EQ(ParseNumber<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(ParseNumber<std::uint32_t>("ff", 16), 255u);
}

TEST(Escaped, ShowsWhatATerminalWouldNot) {
  EXPECT_EQ(Escaped("a\n\"\\\x01"), R"(a\n\"\\\x01)");
  EXPECT_EQ(Escaped("ü"), "ü");
  EXPECT_EQ(Escaped("\xfc"), R"(\xfc)");
}

TEST(Table, AlignsColumnsAndPadsNoneAtTheEnd) {
  EXPECT_EQ(Table({{"A", "LONG", "Z"}, {"abc", "d", "e"}}, 2), "A    LONG  Z\nabc  d     e\n");
  EXPECT_EQ(Table({}, 2), "");
}

TEST(FormatBytes, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(64ull << 20), "64 MiB");
}

}  // namespace
}  // namespace trainyard
