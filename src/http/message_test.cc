#include "http/message.h"

#include <gtest/gtest.h>

namespace trainyard::http {
namespace {

TEST(Response, FindsAHeaderInAnyLetterCase) {
  const Response response{.headers = {{"Retry-After", "3"}, {"retry-after", "4"}, {"X", ""}}};
  EXPECT_EQ(response.Header("retry-AFTER"), "3");
  EXPECT_EQ(response.Header("Retry"), "");
  EXPECT_EQ(response.Header("X"), "");
}

TEST(PercentEncoded, LeavesOnlyTheUnreservedAsTheyAre) {
  EXPECT_EQ(PercentEncoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncoded("a=b,c in (d/e) +%"), "a%3Db%2Cc%20in%20%28d%2Fe%29%20%2B%25");
  EXPECT_EQ(PercentEncoded("\xc3\xa9"), "%C3%A9");
}

TEST(PercentDecoded, GivesBackEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const bool query : {false, true}) EXPECT_EQ(PercentDecoded(PercentEncoded(all), query).value(), all);
}

TEST(PercentDecoded, TakesAPlusForASpaceOnlyInAQuery) {
  EXPECT_EQ(PercentDecoded("a+b%2b", true).value(), "a b+");
  EXPECT_EQ(PercentDecoded("a+b%2b", false).value(), "a+b+");
}

TEST(PercentDecoded, RefusesWhatIsCutOffOrNoNumber) {
  for (const char* wrong : {"%", "a%2", "%zz", "%+1", "%-1", "% 1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PercentDecoded(wrong, true).status())) << wrong;
  }
}

}  // namespace
}  // namespace trainyard::http
