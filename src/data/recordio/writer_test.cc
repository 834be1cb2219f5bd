#include "data/recordio/writer.h"

#include <filesystem>

#include "base/hex.h"
#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

std::size_t FilesIn(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// The file that these records are written to.
std::string Written(const Records& records, const RecordIoWriterOptions& options) {
  const TempFolder folder;
  const auto writer = RecordIoWriter::Create(folder / "out.rec", options).value();
  for (const std::string& record : records) EXPECT_TRUE(writer->Write(record).ok());
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_EQ(FilesIn(folder.path()), 1u);
  return ReadBytes(folder / "out.rec");
}

TEST(RecordIoWriter, CutsChunksWhereOthersDo) {
  EXPECT_EQ(
      HexBytes(Written({"12345", "1234", "12"}, {.compressor = Compressor::kNone, .max_chunk_bytes = 10})),
      "04030201873a679500000000110000000200000005000000313233343504000000313233"
      "3404030201"
      "9a5680f2000000000600000001000000020000003132");
  // Exactly full is not too full, and empty records never end a chunk.
  const std::string file =
      Written({"1234", "123456", "", "", "1"}, {.compressor = Compressor::kNone, .max_chunk_bytes = 10});
  EXPECT_EQ(file, RecordIo({{"1234", "123456", "", ""}, {"1"}}, Compressor::kNone));
}

TEST(RecordIoWriter, PacksByDefault) {
  EXPECT_EQ(Written({"Hello", "World,", "RecordIO!"}, {}),
            RecordIo({{"Hello", "World,", "RecordIO!"}}, Compressor::kSnappy));
  EXPECT_EQ(Written({"Hello"}, {.max_chunk_bytes = 0}), RecordIo({{"Hello"}}, Compressor::kSnappy));
}

TEST(RecordIoWriter, MakesAnEmptyFileOfNoRecords) { EXPECT_EQ(Written({}, {}), ""); }

TEST(RecordIoWriter, LeavesOutARecordThatFitsInNoChunk) {
  const TempFolder folder;
  const auto writer = RecordIoWriter::Create(folder / "out.rec", {.max_chunk_bytes = 10}).value();
  ASSERT_TRUE(writer->Write("123456789").ok());
  const absl::Status refused = writer->Write("1234567890");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("a record of 10 bytes is too large"));
  ASSERT_TRUE(writer->Write("1").ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadRecordIo(ReadBytes(folder / "out.rec")).value(), (Records{"123456789", "1"}));
}

TEST(RecordIoWriter, EndsAChunkBeforeItIsTooLargeForReaders) {
  const TempFolder folder;
  const auto writer = RecordIoWriter::Create(folder / "out.rec", {.max_chunk_bytes = kMaxChunkBytes}).value();
  // With its length, four bytes less than a chunk may have: room for one empty record, not for two.
  ASSERT_TRUE(writer->Write(std::string(kMaxChunkBytes - 8, '\0')).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer->Write("").ok());
  ASSERT_TRUE(writer->Close().ok());
  const std::string file = ReadBytes(folder / "out.rec");
  const auto chunks = IndexChunks(file).value();
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].end, 2u);
  EXPECT_EQ(chunks[1].end, 3u);
}

TEST(RecordIoWriter, ReplacesAFileOnlyWhenItsOwnIsComplete) {
  const TempFolder folder;
  WriteBytes(folder / "out.rec", "before");
  {
    const auto writer = RecordIoWriter::Create(folder / "out.rec").value();
    ASSERT_TRUE(writer->Write("record").ok());
    EXPECT_EQ(ReadBytes(folder / "out.rec"), "before");
  }
  EXPECT_EQ(ReadBytes(folder / "out.rec"), "before");
  EXPECT_EQ(FilesIn(folder.path()), 1u);
  const auto writer = RecordIoWriter::Create(folder / "out.rec").value();
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadBytes(folder / "out.rec"), "");
}

TEST(RecordIoWriter, LetsTwoWriteTheSameNameAndKeepsTheLastOneWhole) {
  const TempFolder folder;
  const auto one = RecordIoWriter::Create(folder / "out.rec").value();
  const auto two = RecordIoWriter::Create(folder / "out.rec").value();
  ASSERT_TRUE(one->Write("one").ok());
  ASSERT_TRUE(two->Write("two").ok());
  ASSERT_TRUE(two->Close().ok());
  ASSERT_TRUE(one->Close().ok());
  EXPECT_EQ(ReadRecordIo(ReadBytes(folder / "out.rec")).value(), Records{"one"});
}

TEST(RecordIoWriter, RefusesWhatCannotBecomeAFile) {
  const TempFolder folder;
  EXPECT_THAT(Message(RecordIoWriter::Create(folder.path()).status()), HasSubstr("it is no name of a file"));
  EXPECT_THAT(Message(RecordIoWriter::Create("").status()), HasSubstr("it is no name of a file"));
  EXPECT_THAT(Message(RecordIoWriter::Create(folder / "none/out.rec").status()),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(Message(RecordIoWriter::Create(folder / "out.rec", {.max_chunk_bytes = 1U << 30U}).status()),
              HasSubstr("at most 268435456"));
}

TEST(RecordIoWriter, IsOverAfterClose) {
  const TempFolder folder;
  const auto writer = RecordIoWriter::Create(folder / "out.rec").value();
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_THAT(Message(writer->Write("more")), HasSubstr("is closed already"));
  EXPECT_THAT(Message(writer->Close()), HasSubstr("is closed already"));
}

TEST(RecordIoWriter, RepeatsWhatItFailedOf) {
  const TempFolder folder;
  const auto writer =
      RecordIoWriter::Create(folder / "out.rec", {.compressor = Compressor::kNone, .max_chunk_bytes = 4})
          .value();
  std::filesystem::remove_all(folder.path());
  ASSERT_TRUE(writer->Write("123").ok());
  const absl::Status lost = writer->Close();
  EXPECT_THAT(Message(lost), HasSubstr("cannot rename"));
  EXPECT_EQ(writer->Close(), lost);
  EXPECT_EQ(writer->Write("1"), lost);
}

}  // namespace
}  // namespace trainyard::data
