#include "data/recordio/layout.h"

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

std::string_view WhyNoLayout(std::string_view file) {
  static absl::Status kept;
  kept = ParseChunkHeader(file, 0).status();
  return Message(kept);
}

TEST(ChunkHeader, IsReadInBothLayouts) {
  EXPECT_EQ(ParseChunkHeader(FromHex("04030201 1cdf4421 00000000 04000000 01000000 00000000"), 0).value(),
            (ChunkHeader{.checksum = 0x2144df1c, .bytes = 4, .records = 1}));
  EXPECT_EQ(ParseChunkHeader(FromHex("04030201 01000000 f604bf55 01000000 09000000 05000000 48656c6c6f"), 0)
                .value(),
            (ChunkHeader{.layout = Layout::kOld, .checksum = 0x55bf04f6, .bytes = 9, .records = 1}));
}

TEST(ChunkHeader, IsWrittenAsItIsRead) {
  const ChunkHeader header{.compressor = Compressor::kGzip, .checksum = 0x01020304, .bytes = 7, .records = 5};
  std::string file(kChunkHeaderBytes + header.bytes, 'x');
  StoreChunkHeader(header, file.data());
  EXPECT_EQ(ParseChunkHeader(file, 0).value(), header);
}

TEST(ChunkHeader, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(WhyNoLayout("x"),
              HasSubstr("damaged at byte 0: the header of a chunk is expected, but the file ends"));
  EXPECT_THAT(WhyNoLayout(std::string(30, 'x')), HasSubstr("does not begin like one"));
  EXPECT_THAT(WhyNoLayout(FromHex("04030201 00000000 03000000 04000000 01000000 00000000")),
              HasSubstr("damaged at byte 8: no compressor has the number 3"));
  EXPECT_THAT(WhyNoLayout(FromHex("04030201 00000000 00000000 05000000 01000000 00000000")),
              HasSubstr("says that 5 bytes follow its header, but 4 do"));
  EXPECT_THAT(WhyNoLayout(FromHex("04030201 00000000 00000000 04000000 00000000 00000000")),
              HasSubstr("0 records in 4 bytes"));
  EXPECT_THAT(WhyNoLayout(FromHex("04030201 00000000 00000000 00000000 01000000")),
              HasSubstr("1 records in 0 bytes"));
}

TEST(ChunkHeader, MayNotClaimMoreRecordsThanThereIsRoomFor) {
  EXPECT_THAT(WhyNoLayout(FromHex("04030201 00000000 00000000 04000000 02000000 00000000")),
              HasSubstr("says that it has 2 records, but 4 bytes are the most"));
  const std::string packed = FromHex("04030201 00000000 01000000 04000000 11000000 00000000");
  EXPECT_TRUE(ParseChunkHeader(packed, 0, 17 * 4).ok());
  EXPECT_FALSE(ParseChunkHeader(packed, 0, 17 * 4 - 1).ok());
}

}  // namespace
}  // namespace trainyard::data
