#include "data/recordio/verifier.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Found {
  std::uint64_t chunks = 0;
  std::uint64_t records = 0;
  std::vector<std::string> damages;  // "20-54 damaged at byte ..."
};

Found Verify(std::string_view file, std::uint64_t max_chunk_bytes = kMaxChunkBytes) {
  ChunkVerifier verifier(file, max_chunk_bytes);
  Found found;
  while (!verifier.done()) {
    const std::uint64_t begin = verifier.offset();
    const absl::Status status = verifier.Next();
    EXPECT_GT(verifier.offset(), begin);
    EXPECT_LE(verifier.offset(), file.size());
    if (!status.ok()) found.damages.push_back(StrCat(begin, "-", verifier.offset(), " ", Message(status)));
  }
  found.chunks = verifier.chunks();
  found.records = verifier.records();
  return found;
}

std::string ThreeChunks(Compressor compressor) {
  return RecordIo({{"one", "two"}, {std::string(100, 'x'), "", "four"}, {"five"}}, compressor);
}

TEST(ChunkVerifier, CountsWhatIsWhole) {
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    const Found found = Verify(ThreeChunks(compressor));
    EXPECT_EQ(found.chunks, 3u);
    EXPECT_EQ(found.records, 6u);
    EXPECT_THAT(found.damages, IsEmpty());
  }
  EXPECT_EQ(Verify("").chunks, 0u);
  EXPECT_EQ(Verify(OldChunk(Compressor::kNone, 1, Payload({"Hello"}))).records, 1u);
}

TEST(ChunkVerifier, FindsEveryFlippedBitAndReadsTheOtherChunks) {
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    const std::string good = ThreeChunks(compressor);
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      const Found found = Verify(bad);
      EXPECT_EQ(found.damages.size(), 1u) << bit;
      EXPECT_EQ(found.chunks, 2u) << bit << " " << found.damages.front();
    }
  }
}

TEST(ChunkVerifier, FindsEveryCutButThoseBetweenChunks) {
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    const std::string good = ThreeChunks(compressor);
    std::size_t whole = 0;
    for (std::size_t size = 0; size < good.size(); ++size) {
      const Found found = Verify(std::string_view(good).substr(0, size));
      if (found.damages.empty()) ++whole;
      EXPECT_LE(found.damages.size(), 1u) << size;
    }
    EXPECT_EQ(whole, 3u);  // before each chunk
  }
}

TEST(ChunkVerifier, NamesEachOfManyDamages) {
  std::string file = ThreeChunks(Compressor::kNone);
  const std::size_t second = 20 + 14;
  file[25] ^= 1;           // a payload
  file[second + 12] ^= 1;  // the size of another
  const Found found = Verify(file + "rest");
  EXPECT_THAT(
      found.damages,
      ElementsAre(HasSubstr("0-34 damaged at byte 0: the checksum of the chunk does not match"),
                  HasSubstr("34-170 damaged at byte 34: "),
                  AllOf(HasSubstr("198-202 damaged at byte 198"), HasSubstr("the file ends 4 bytes on"))));
  EXPECT_EQ(found.chunks, 1u);
}

TEST(ChunkVerifier, FindsAWholeChunkBetweenTwoThatHaveLostTheirHeaders) {
  std::string file = ThreeChunks(Compressor::kNone);
  const std::size_t last = file.size() - 28;
  file[0] ^= 1;
  file[last] ^= 1;
  const Found found = Verify(file);
  EXPECT_THAT(found.damages, ElementsAre(HasSubstr("0-34 "), HasSubstr("170-198 ")));
  EXPECT_EQ(found.records, 3u);
}

TEST(ChunkVerifier, DoesNotTakeTheBytesOfARecordForChunks) {
  // A record that is itself RecordIO.
  std::string file = RecordIo({{RecordIo({{"inner"}}, Compressor::kNone), "x"}, {"next"}}, Compressor::kNone);
  file[file.size() - 30] ^= 1;  // the "x"
  const Found found = Verify(file);
  EXPECT_EQ(found.damages.size(), 1u);
  EXPECT_EQ(found.records, 1u);
}

TEST(ChunkVerifier, ReadsBytesThatAllLookLikeChunksOnlyAFewTimes) {
  // Every twenty bytes a header that says it has half of the file; read for each, this would take minutes.
  std::string file;
  constexpr std::uint32_t kHeaders = 400000;
  for (std::uint32_t i = 0; i < kHeaders; ++i) {
    for (const std::uint32_t field : {kRecordIoMagic, 0U, 0U, kHeaders * 10 + 3, 1U})
      AppendLittle32(field, file);
  }
  EXPECT_EQ(Verify(file).chunks, 0u);
}

TEST(ChunkVerifier, UnpacksNoMoreThanItMay) {
  const std::string file = RecordIo({{std::string(100000, 'x')}, {"small"}}, Compressor::kGzip);
  const Found found = Verify(file, 50000);
  EXPECT_THAT(found.damages, ElementsAre(HasSubstr("at most 50000 are allowed")));
  EXPECT_EQ(found.chunks, 1u);
}

}  // namespace
}  // namespace trainyard::data
