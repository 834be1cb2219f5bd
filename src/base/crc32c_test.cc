#include "base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(Crc32c, MatchesThePublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, ContinuesFromTheChecksumOfWhatCameBefore) {
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), Crc32c("123456789"));
}

}  // namespace
}  // namespace trainyard
