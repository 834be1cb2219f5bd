#include "data/open.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "data/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::TempFolder;

class OpenRecordsTest : public ::testing::Test {
 protected:
  std::string Make(std::string_view name, std::string_view bytes) {
    WriteBytes(folder_ / name, bytes);
    return folder_ / name;
  }

  absl::StatusOr<Records> Read(const std::vector<std::string>& paths, const OpenOptions& options = {}) {
    TY_ASSIGN_OR_RETURN(const auto source, OpenRecords(paths, options));
    return ReadAll(*source);
  }

  std::string WhyNot(const std::vector<std::string>& paths, const OpenOptions& options = {}) {
    return std::string(Message(Read(paths, options).status()));
  }

  TempFolder folder_;
};

TEST_F(OpenRecordsTest, TellsFormatsByTheirFirstBytes) {
  EXPECT_EQ(Read({Make("a", RecordIo({{"x", "y"}}, Compressor::kSnappy))}).value(), (Records{"x", "y"}));
  EXPECT_EQ(Read({Make("b", FromHex("00000801 00000002 6162"))}).value(), (Records{"a", "b"}));
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(FromHex("00000801 00000002 6162"));
  writer.Finish();
  EXPECT_EQ(Read({Make("c.gz", packed)}).value(), (Records{"a", "b"}));
  EXPECT_EQ(Read({Make("d.csv", "a\nb")}).value(), (Records{"a", "b"}));
  EXPECT_EQ(Read({Make("e", "")}).value(), Records{});
  EXPECT_EQ(WhyNot({Make("f", "a\nb")}),
            StrCat("cannot tell what ", folder_ / "f", " is by its first bytes: say recordio, csv or idx"));
  EXPECT_EQ(Read({folder_ / "f"}, {.format = Format::kCsv}).value(), (Records{"a", "b"}));
  packed.clear();
  GzipWriter other(packed);
  other.Add("a,b");
  other.Finish();
  EXPECT_THAT(WhyNot({Make("g.gz", packed)}), HasSubstr("g.gz is packed by gzip"));
}

TEST_F(OpenRecordsTest, ReadsManyFilesAsOneSequence) {
  Make("data-1", RecordIo({{"0", "1"}, {"2"}}, Compressor::kNone));
  Make("data-2", "");
  Make("data-3", RecordIo({{"3", ""}, {"5", "6"}}, Compressor::kGzip));
  Make("last", RecordIo({{"7"}}, Compressor::kSnappy));
  const Records all = {"0", "1", "2", "3", "", "5", "6", "7"};
  const auto source = OpenRecords({folder_ / "data-*", folder_ / "last"}).value();
  ASSERT_EQ(source->Count(), all.size());
  // Every range, with one cursor for all and with one for each.
  const auto cursor = source->NewCursor();
  for (std::uint64_t first = 0; first <= all.size(); ++first) {
    for (std::uint64_t count = 0; first + count <= all.size(); ++count) {
      const Records expected(all.begin() + static_cast<std::ptrdiff_t>(first),
                             all.begin() + static_cast<std::ptrdiff_t>(first + count));
      EXPECT_EQ(ReadRange(*cursor, {first, count}).value(), expected) << first << " " << count;
      EXPECT_EQ(ReadRange(*source->NewCursor(), {first, count}).value(), expected) << first << " " << count;
    }
  }
}

TEST_F(OpenRecordsTest, ReadsNothingBeyondTheLastRecord) {
  const auto source = OpenRecords({Make("a", RecordIo({{"x", "y"}}, Compressor::kNone))}).value();
  const auto cursor = source->NewCursor();
  for (const RecordRange range :
       {RecordRange{2, 1}, RecordRange{0, 3}, RecordRange{1, UINT64_MAX}, RecordRange{3, 0}}) {
    EXPECT_EQ(ReadRange(*cursor, range).status().code(), absl::StatusCode::kOutOfRange);
  }
  EXPECT_EQ(Message(ReadRange(*cursor, {1, 2}).status()),
            "no 2 records from number 1 on: there are 2, from 0 on");
}

TEST_F(OpenRecordsTest, ReturnsTheVisitorsErrorAsItIsAndGoesOnAfterwards) {
  const auto source = OpenRecords({Make("a", RecordIo({{"x", "y", "z"}}, Compressor::kNone))}).value();
  const auto cursor = source->NewCursor();
  std::string seen;
  const absl::Status status = cursor->Read({0, 3}, [&](std::string_view record) {
    seen += record;
    return record == "y" ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_EQ(seen, "xy");
  EXPECT_EQ(ReadRange(*cursor, {1, 2}).value(), (Records{"y", "z"}));
}

TEST_F(OpenRecordsTest, HandsOutTheBytesOfTheFileItself) {
  const std::vector<std::string> paths[] = {
      {Make("a", RecordIo({{"x", "y"}}, Compressor::kNone))},
      {Make("b.csv", "x\ny\n")},
      {Make("c", FromHex("00000801 00000002 6162"))},
  };
  for (const auto& files : paths) {
    const auto source = OpenRecords(files).value();
    const auto one = source->NewCursor();
    const auto two = source->NewCursor();
    std::vector<const char*> places;
    const auto note = [&](std::string_view record) {
      places.push_back(record.data());
      return absl::OkStatus();
    };
    ASSERT_TRUE(one->Read({0, 2}, note).ok());
    ASSERT_TRUE(two->Read({0, 2}, note).ok());
    EXPECT_EQ(places[0], places[2]);
    EXPECT_EQ(places[1], places[3]);
  }
}

TEST_F(OpenRecordsTest, SaysWhereARecordLies) {
  const std::string rec = Make("a", RecordIo({{"0", "1"}, {"2", "3"}}, Compressor::kNone));
  EXPECT_EQ(OpenRecords({rec, rec}).value()->Where(7), StrCat(rec, ": record 1 of the chunk at byte 30"));
  const std::string csv = Make("b.csv", "x\n1\n\"2\n3\"\n4\n");
  EXPECT_EQ(OpenRecords({csv}, {.csv = {.header = true}}).value()->Where(2), StrCat(csv, ": line 5"));
}

TEST_F(OpenRecordsTest, KnowsTheShapeThatFilesHaveInCommon) {
  const std::string one = Make("one", FromHex("00000d02 00000001 00000001 00000000"));
  const std::string two = Make("two", FromHex("00000d02 00000002 00000001 0000000000000000"));
  const std::string other = Make("other", FromHex("00000d01 00000001 00000000"));
  EXPECT_EQ(*OpenRecords({one, two}).value()->Shape(),
            (ItemShape{.type = ElementType::kFloat32, .dims = {1}}));
  EXPECT_EQ(WhyNot({one, two, other}),
            StrCat("the items of ", other, " have another shape or type than those of ", one));
  EXPECT_EQ(OpenRecords({Make("a.csv", "x")}).value()->Shape(), nullptr);
}

TEST_F(OpenRecordsTest, RefusesWhatCannotBeOneSequence) {
  const std::string rec = Make("a.rec", RecordIo({{"x"}}, Compressor::kNone));
  const std::string csv = Make("b.csv", "x");
  EXPECT_EQ(WhyNot({rec, csv}), StrCat(csv, " is csv, but ", rec, " is recordio: read them one by one"));
  EXPECT_THAT(WhyNot({}), HasSubstr("no record files are named"));
  EXPECT_THAT(WhyNot({folder_ / "none"}), AllOf(HasSubstr("cannot open"), HasSubstr("No such file")));
  EXPECT_THAT(WhyNot({folder_ / "none-*"}), HasSubstr("no file matches"));
  EXPECT_THAT(WhyNot({csv}, {.csv = {.delimiter = '"'}}), HasSubstr("cannot be the delimiter"));
}

TEST_F(OpenRecordsTest, NamesTheFileAndTheByteOfAnyDamage) {
  const std::string bytes = RecordIo({{"12345", "1234"}, {"12"}}, Compressor::kNone);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    EXPECT_THAT(WhyNot({Make("a", damaged)}, {.format = Format::kRecordIo}),
                HasSubstr(StrCat(folder_ / "a", ": damaged at byte ")))
        << at;
  }
}

TEST_F(OpenRecordsTest, ReadsTheChunksBeforeDamage) {
  std::string bytes = RecordIo({{"0", "1"}, {"2"}}, Compressor::kNone);
  bytes.back() = 'x';
  const auto source = OpenRecords({Make("a", bytes)}).value();
  const auto cursor = source->NewCursor();
  EXPECT_EQ(ReadRange(*cursor, {0, 2}).value(), (Records{"0", "1"}));
  EXPECT_EQ(Message(ReadRange(*cursor, {1, 2}).status()),
            StrCat(folder_ / "a", ": damaged at byte 30: the checksum of the chunk does not match"));
  EXPECT_EQ(ReadRange(*cursor, {0, 2}).value(), (Records{"0", "1"}));
}

TEST_F(OpenRecordsTest, ReadsNoFileThatWasCutSinceItWasOpened) {
  const std::string paths[] = {
      Make("a.rec", RecordIo({{"0", "1"}, {std::string(10000, 'x')}}, Compressor::kNone)),
      Make("b.csv", StrCat("0\n1\n", std::string(10000, 'x'))),
      Make("c.idx", FromHex("00000801 00002710") + std::string(10000, 'x')),
  };
  for (const std::string& path : paths) {
    const auto source = OpenRecords({path}).value();
    const auto cursor = source->NewCursor();
    ASSERT_TRUE(ReadRange(*cursor, {0, 1}).ok());
    std::filesystem::resize_file(path, 12);
    for (const auto& read : {ReadRange(*cursor, {0, 3}), ReadAll(*source), ReadRange(*cursor, {1, 1})}) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(Message(read.status()), HasSubstr(StrCat(path, ": it ends at byte 12")));
    }
    (void)source->Where(2);
  }
}

TEST_F(OpenRecordsTest, HasMoreFilesThanItKeepsOpen) {
  std::vector<std::string> paths;
  Records all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(StrCat(i));
    paths.push_back(Make(StrCat("f", i), RecordIo({{all.back()}}, Compressor::kSnappy)));
  }
  const auto source = OpenRecords(paths).value();
  EXPECT_EQ(ReadAll(*source).value(), all);
  std::filesystem::remove(paths[3]);
  EXPECT_THAT(Message(ReadRange(*source->NewCursor(), {0, 10}).status()),
              HasSubstr(StrCat("cannot open ", paths[3], ": No such file")));
}

TEST_F(OpenRecordsTest, IsReadByManyThreadsAtOnce) {
  std::vector<std::string> paths;
  Records all;
  for (int file = 0; file < 100; ++file) {
    std::vector<Records> chunks;
    for (int i = 0; i < 40; ++i) {
      all.push_back(StrCat(file, "-", i));
      if (i % 10 == 0) chunks.emplace_back();
      chunks.back().push_back(all.back());
    }
    paths.push_back(Make(StrCat("f", file), RecordIo(chunks, static_cast<Compressor>(file % 3))));
  }
  const auto source = OpenRecords(paths).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto cursor = source->NewCursor();
      for (std::uint64_t round = 0; round < 200; ++round) {
        const std::uint64_t first = (round * 977 + thread * 31) % (all.size() - 50);
        const auto read = ReadRange(*cursor, {first, 50});
        const auto start = all.begin() + static_cast<std::ptrdiff_t>(first);
        if (!read.ok() || *read != Records(start, start + 50)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParseFormat, KnowsTheNamesThatItPrints) {
  for (const Format format : {Format::kAuto, Format::kRecordIo, Format::kCsv, Format::kIdx}) {
    EXPECT_EQ(ParseFormat(NameOf(format)).value(), format);
  }
  EXPECT_EQ(Message(ParseFormat("tfrecord").status()),
            "unknown format 'tfrecord': there are auto, recordio, csv and idx");
}

}  // namespace
}  // namespace trainyard::data
