#include "data/crc32.h"

#include <string>

#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

TEST(Crc32, MatchesThePublishedVectors) {
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32(std::string(32, '\0')), 0x190a55adu);
  EXPECT_EQ(Crc32(""), 0u);
}

TEST(Crc32, ContinuesFromTheChecksumOfWhatCameBefore) {
  EXPECT_EQ(Crc32("6789", Crc32("12345")), Crc32("123456789"));
}

}  // namespace
}  // namespace trainyard::data
