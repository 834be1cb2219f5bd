#include "data/idx/header.h"

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

TEST(IdxHeader, SaysWhatItemsConsistOf) {
  const auto images = ParseIdxHeader(FromHex("00000803 0000ea60 0000001c 0000001c")).value();
  EXPECT_EQ(images.items, 60000u);
  EXPECT_EQ(images.item_bytes, 784u);
  EXPECT_EQ(images.bytes, 16u);
  EXPECT_EQ(images.shape, (ItemShape{.type = ElementType::kUint8, .dims = {28, 28}}));
  const auto labels = ParseIdxHeader(FromHex("00000801 0000ea60")).value();
  EXPECT_EQ(labels.item_bytes, 1u);
  EXPECT_EQ(labels.FileBytes(), 60008u);
  EXPECT_EQ(labels.shape, ItemShape{.type = ElementType::kUint8});
}

TEST(IdxHeader, KnowsEveryType) {
  const std::pair<const char*, std::uint64_t> types[] = {{"08", 1}, {"09", 1}, {"0b", 2},
                                                         {"0c", 4}, {"0d", 4}, {"0e", 8}};
  for (const auto& [code, bytes] : types) {
    EXPECT_EQ(ParseIdxHeader(FromHex(StrCat("0000", code, "01 00000001"))).value().item_bytes, bytes) << code;
  }
}

TEST(IdxHeader, SaysWhatIsWrong) {
  for (const char* start : {"", "000008", "00010801 00000001", "00000a01 00000001", "00000800"}) {
    EXPECT_THAT(Message(ParseIdxHeader(FromHex(start)).status()), HasSubstr("this is no IDX file")) << start;
  }
  EXPECT_THAT(Message(ParseIdxHeader(FromHex("00000802 00000001 0000")).status()),
              HasSubstr("damaged at byte 10: the file ends within its header of 12 bytes"));
}

TEST(IdxHeader, MayNotClaimItemsThatNoFileHas) {
  EXPECT_THAT(Message(ParseIdxHeader(FromHex("00000802 00000001 00000000")).status()),
              HasSubstr("damaged at byte 8: a dimension of 0"));
  EXPECT_FALSE(ParseIdxHeader(FromHex("00000e03 ffffffff ffffffff ffffffff")).ok());
  EXPECT_TRUE(ParseIdxHeader(FromHex("00000802 ffffffff 80000000")).ok());
}

}  // namespace
}  // namespace trainyard::data
