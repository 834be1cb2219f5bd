#include "data/recordio/chunk.h"

#include <snappy.h>

#include "base/hex.h"
#include "base/status.h"
#include "data/crc32.h"
#include "data/data_testing.h"
#include "data/recordio/snappy_frames.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

const Records kHello = {"Hello", "World,", "RecordIO!"};

struct Example {
  const char* name;
  Compressor compressor;
  std::vector<Records> chunks;
  const char* hex;
};
// What the other implementations write.
const Example kExamples[] = {
    {"two chunks",
     Compressor::kNone,
     {{"12345", "1234"}, {"12"}},
     "04030201 873a6795 00000000 11000000 02000000 05000000 3132333435 04000000 31323334"
     "04030201 9a5680f2 00000000 06000000 01000000 02000000 3132"},
    {"plain",
     Compressor::kNone,
     {kHello},
     "04030201 148c74a1 00000000 20000000 03000000"
     "05000000 48656c6c6f 06000000 576f726c642c 09000000 5265636f7264494f21"},
    {"snappy",
     Compressor::kSnappy,
     {kHello},
     "04030201 af2219b2 01000000 5a000000 03000000 ff060000734e61507059"
     "01080000d9c69c43 05000000 010900008aeeb9be 48656c6c6f"
     "010800001c03ee55 06000000 010a0000629913bc 576f726c642c"
     "01080000a5b1b5a7 09000000 010d000097a1a571 5265636f7264494f21"},
    {"an empty record", Compressor::kNone, {{""}}, "04030201 1cdf4421 00000000 04000000 01000000 00000000"},
};

TEST(ChunkEncoder, WritesTheBytesThatOthersWrite) {
  for (const Example& example : kExamples) {
    EXPECT_EQ(HexBytes(RecordIo(example.chunks, example.compressor)), HexBytes(FromHex(example.hex)))
        << example.name;
  }
}

TEST(LoadedChunk, ReadsTheBytesThatOthersWrite) {
  for (const Example& example : kExamples) {
    Records records;
    for (const Records& chunk : example.chunks) records.insert(records.end(), chunk.begin(), chunk.end());
    EXPECT_EQ(ReadRecordIo(FromHex(example.hex)).value(), records) << example.name;
  }
}

TEST(LoadedChunk, ReadsFramesThatSpanRecords) {
  const std::string payload = FromHex(
      "ff060000734e61507059 01240000 2daf42ab 05000000 48656c6c6f 06000000 576f726c642c"
      "09000000 5265636f7264494f21");
  const std::string header = FromHex("04030201 4c76a44b 01000000 32000000 03000000");
  EXPECT_EQ(ReadRecordIo(header + payload).value(), kHello);
}

TEST(LoadedChunk, ReadsTheOldLayout) {
  const std::string example = FromHex("04030201 01000000 f604bf55 01000000 09000000 05000000 48656c6c6f");
  EXPECT_EQ(OldChunk(Compressor::kNone, 1, Payload({"Hello"})), example);
  EXPECT_EQ(ReadRecordIo(example).value(), Records{"Hello"});

  const Records records = {"Hello", "", std::string(100000, 'x')};
  std::string block;
  snappy::Compress(Payload(records).data(), Payload(records).size(), &block);
  EXPECT_EQ(ReadRecordIo(OldChunk(Compressor::kSnappy, 3, block)).value(), records);
  std::string gzip;
  GzipWriter writer(gzip);
  writer.Add(Payload(records));
  writer.Finish();
  EXPECT_EQ(ReadRecordIo(OldChunk(Compressor::kGzip, 3, gzip)).value(), records);
}

TEST(LoadedChunk, CopiesNothingThatIsNotCompressed) {
  const std::string file = RecordIo({kHello}, Compressor::kNone);
  Scratch scratch;
  LoadedChunk chunk(scratch);
  ASSERT_TRUE(chunk.Load(file, 0).ok());
  EXPECT_EQ(static_cast<const void*>(chunk[0].data()), file.data() + 24);
  EXPECT_EQ(scratch.unpacked.capacity(), 0u);
}

TEST(LoadedChunk, ReadsManyRecordsOverManyBlocks) {
  Records records;
  for (int i = 0; i < 30000; ++i) records.push_back(std::string(static_cast<std::size_t>(i % 41), 'a'));
  records.push_back(std::string(300000, 'b'));
  records.emplace_back();
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    EXPECT_EQ(ReadRecordIo(RecordIo({records}, compressor)).value(), records);
  }
}

// Every value of every byte, and every cut: an error, or the same records.
void ExpectDamageFound(const std::string& file, const Records& records) {
  ASSERT_EQ(ReadRecordIo(file).value(), records);
  std::string damaged = file;
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int value = 1; value < 256; ++value) {
      damaged[at] = static_cast<char>(file[at] ^ value);
      const auto read = ReadRecordIo(damaged, 1 << 20);
      if (read.ok()) {
        ASSERT_EQ(*read, records) << "byte " << at << " xor " << value;
      } else {
        ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
        ASSERT_THAT(Message(read.status()), HasSubstr("damaged at byte "));
      }
    }
    damaged[at] = file[at];
  }
  for (std::size_t length = 1; length < file.size(); ++length) {
    const auto read = ReadRecordIo(std::string_view(file).substr(0, length));
    if (read.ok()) {
      // Cut between two chunks, it is another file that is whole.
      ASSERT_LT(read->size(), records.size());
      ASSERT_EQ(*read, Records(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(read->size())));
      ASSERT_EQ(IndexChunks(file).value()[1].offset, length);
    }
  }
}

TEST(LoadedChunk, NeverReadsSomethingElseFromDamage) {
  const Records records = {"12345", "", "1234", "12"};
  for (const auto compressor : {Compressor::kNone, Compressor::kSnappy, Compressor::kGzip}) {
    ExpectDamageFound(RecordIo({{"12345", "", "1234"}, {"12"}}, compressor), records);
  }
  const std::string text(60, 'x');
  ExpectDamageFound(RecordIo({{text, "y"}}, Compressor::kSnappy), {text, "y"});
  ExpectDamageFound(OldChunk(Compressor::kNone, 4, Payload(records)), records);
  std::string block;
  snappy::Compress(Payload(records).data(), Payload(records).size(), &block);
  ExpectDamageFound(OldChunk(Compressor::kSnappy, 4, block), records);
}

// A chunk of the new layout around any payload, its checksum right.
std::string NewChunk(Compressor compressor, std::uint32_t records, std::string_view payload) {
  std::string chunk(kChunkHeaderBytes, '\0');
  StoreChunkHeader({.compressor = compressor,
                    .checksum = Crc32(payload),
                    .bytes = static_cast<std::uint32_t>(payload.size()),
                    .records = records},
                   chunk.data());
  return chunk.append(payload);
}

TEST(LoadedChunk, BelievesTheHeaderOnlyIfTheRecordsAgree) {
  const std::string payload = Payload({"a", "b"});
  EXPECT_TRUE(ReadRecordIo(NewChunk(Compressor::kNone, 2, payload)).ok());
  EXPECT_THAT(
      Message(ReadRecordIo(NewChunk(Compressor::kNone, 1, payload)).status()),
      HasSubstr("damaged at byte 0: the header of the chunk says that it has 1 records, but 1 leave"));
  EXPECT_FALSE(ReadRecordIo(NewChunk(Compressor::kNone, 2, payload + "xyz")).ok());
  EXPECT_FALSE(ReadRecordIo(NewChunk(Compressor::kNone, 2, payload.substr(0, 9))).ok());
  EXPECT_FALSE(ReadRecordIo(NewChunk(Compressor::kNone, 1, FromHex("ffffffff 61"))).ok());
}

std::string Zeros(std::size_t size) {
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(std::string(size, '\0'));
  writer.Finish();
  return packed;
}

TEST(LoadedChunk, AllocatesNoMoreThanItMayForABomb) {
  constexpr std::uint64_t kMost = 1 << 20;
  Scratch scratch;
  LoadedChunk chunk(scratch);
  std::string lying = Zeros(4 * kMost);
  StoreLittle32(7, lying.data() + lying.size() - 4);
  for (const std::string& payload :
       {Zeros(4 * kMost), Zeros(kMost + 4), Zeros(4 * kMost) + Zeros(8), lying}) {
    const absl::Status status = chunk.Load(NewChunk(Compressor::kGzip, 9, payload), 0, kMost);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_LE(scratch.unpacked.capacity(), kMost + kSnappySlop);
    EXPECT_LE(scratch.offsets.capacity(), kMost / 4 + 1);
  }
  EXPECT_TRUE(chunk.Load(NewChunk(Compressor::kGzip, kMost / 4, Zeros(kMost)), 0, kMost).ok());
  EXPECT_EQ(chunk.size(), kMost / 4);
}

TEST(LoadedChunk, RefusesSnappyThatUnpacksToTooMuchBeforeItUnpacks) {
  Scratch scratch;
  LoadedChunk chunk(scratch);
  std::string frames;
  AppendSnappyMark(frames);
  AppendSnappyFrames(std::string(2 << 20, '\0'), frames);
  EXPECT_THAT(Message(chunk.Load(NewChunk(Compressor::kSnappy, 9, frames), 0, 1 << 20)),
              HasSubstr("unpacks to 2097152 bytes or more, and at most 1048576 are allowed"));
  // A block that says it has 4 GiB.
  EXPECT_FALSE(chunk.Load(OldChunk(Compressor::kSnappy, 9, FromHex("ffffffff0f 00000000")), 0).ok());
  EXPECT_EQ(scratch.unpacked.capacity(), 0u);
}

TEST(LoadedChunk, IsEmptyAfterDamage) {
  Scratch scratch;
  LoadedChunk chunk(scratch);
  std::string file = RecordIo({kHello}, Compressor::kNone);
  ASSERT_TRUE(chunk.Load(file, 0).ok());
  file.back() = 'x';
  EXPECT_THAT(Message(chunk.Load(file, 0)), HasSubstr("the checksum of the chunk does not match"));
  EXPECT_EQ(chunk.size(), 0u);
}

}  // namespace
}  // namespace trainyard::data
