#include "data/recordio/index.h"

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(IndexChunks, CountsWithoutLookingAtPayloads) {
  std::string file = RecordIo({{"12345", "1234"}, {"12"}}, Compressor::kNone);
  file[20] = 'x';
  EXPECT_THAT(IndexChunks(file).value(),
              ElementsAre(ChunkPlace{.offset = 0, .end = 2}, ChunkPlace{.offset = 37, .end = 3}));
}

TEST(IndexChunks, FindsNoneInAnEmptyFile) { EXPECT_THAT(IndexChunks("").value(), IsEmpty()); }

TEST(IndexChunks, TakesNothingBehindTheLastChunk) {
  const std::string file = RecordIo({{"12345"}}, Compressor::kNone);
  for (const std::string garbage : {"x", "\x04\x03\x02\x01", "anything that is longer than a header"}) {
    const auto chunks = IndexChunks(file + garbage);
    EXPECT_EQ(chunks.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(chunks.status()), HasSubstr(StrCat("damaged at byte ", file.size())));
  }
}

TEST(IndexChunks, TakesChunksOfBothLayoutsInOneFile) {
  const std::string file = RecordIo({{"new"}}, Compressor::kSnappy) +
                           OldChunk(Compressor::kNone, 2, Payload({"old", "too"})) +
                           RecordIo({{"new again"}}, Compressor::kGzip);
  EXPECT_EQ(IndexChunks(file).value().back().end, 4u);
  EXPECT_EQ(ReadRecordIo(file).value(), (Records{"new", "old", "too", "new again"}));
}

}  // namespace
}  // namespace trainyard::data
